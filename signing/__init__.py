"""Who said it: keys, and the statements that are signed with them. Whoever only checks holds no private key."""
