"""The losses of all methods, as pure functions on tensors: one file per family.

What is not a plain mean over rows takes means that are already reduced over the whole (possibly distributed) batch.
"""
