"""The relay: the only door that an agent can reach. Its model, its brief, its word; nothing else of ours."""
