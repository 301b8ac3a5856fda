"""A run: its folder, what came out of it, and runs side by side."""
