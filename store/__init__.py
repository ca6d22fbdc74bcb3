"""The work graph: facts as rows, the moves that change them, the receipts that prove it; nothing remote."""
