"""Hydra groups: one folder per group, one file per choice."""
