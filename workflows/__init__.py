"""What happens next. Deterministic: everything observed comes in through activities, every fact goes out as a move."""
