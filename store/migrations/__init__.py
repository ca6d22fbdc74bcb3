"""The schema's history, forward only: a migration adds, names its constraints, and carries rows over."""
