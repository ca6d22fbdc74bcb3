"""What the doors have in common: how they are told, how they find Temporal, how they open and close."""
