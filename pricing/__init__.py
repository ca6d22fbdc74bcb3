"""What tokens cost: asked by the relay before and after a call, and by whoever proves the ledger."""
