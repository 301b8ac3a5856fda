"""The losses of the methods the paper compares with, as pure functions on tensors: one file per family.

As in `tailo_pl.objectives`, what is not a plain mean over rows takes means that are already reduced over the whole
(possibly distributed) batch.
"""
