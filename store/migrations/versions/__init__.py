"""One module a migration, numbered in their order."""
