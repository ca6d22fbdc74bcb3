"""The `watchbill` command: what a person types, and the doors that it opens."""
