"""What numbers without a simulator are worth: a grid of small runs on right and wrong data, and what it shows."""
