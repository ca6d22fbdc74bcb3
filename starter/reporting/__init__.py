"""Reports: what was asked, what landed with what proof, what it cost, and what waits for whom."""
