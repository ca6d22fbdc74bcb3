"""The worker's door: settings, wiring, and the two workers of one host."""
