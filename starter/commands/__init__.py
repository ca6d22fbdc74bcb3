"""The commands, one module a family; each command returns its exit code."""
