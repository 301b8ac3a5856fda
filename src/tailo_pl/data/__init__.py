"""Recorded data: trajectories, where they come from, how TS and TA are cut, and the batches made of them."""
