"""File formats of recorded steps: one module each."""
