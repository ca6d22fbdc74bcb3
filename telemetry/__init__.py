"""What the doors say of themselves to whoever operates them: logs, and nothing that is a secret."""
