"""What is done: thin methods over the store, the runtimes and the forge. Each says what a repeat does."""
