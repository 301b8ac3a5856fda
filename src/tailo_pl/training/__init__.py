"""One stage after the other: building, training, what is kept of it."""
