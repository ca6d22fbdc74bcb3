"""The webhooks' door: verify, write down, answer, then nudge. A delivery is a hint and never moves anything."""
