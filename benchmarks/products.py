"""How fast this machine multiplies: the products of a layer of 256, forward and backward, in 32 bits.

    python benchmarks/products.py

One thread. On an AMD processor see docs/usage.md: the library that PyTorch calls may use half of its width.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from rows import Row, show

WIDTH, REPEATS, ROUNDS = 256, 200, 5


def main() -> None:
    torch.set_num_threads(1)
    show([row(count) for count in (128, 256, 512, 1024)], "products of a layer, one thread")


def row(count: int) -> Row:
    """GFLOP/s of a layer's three products: its outputs, the gradients of its inputs and those of its weights."""
    values, gradients, weights = (torch.randn(rows, WIDTH) for rows in (count, count, WIDTH))

    def products() -> None:
        torch.mm(values, weights.T)
        torch.mm(gradients, weights)
        torch.mm(gradients.T, values)

    products()
    least = min(seconds(products) for _ in range(ROUNDS))
    return Row(f"{count} rows", 3 * 2 * count * WIDTH * WIDTH / least / 1e9, unit="GFLOP/s")


def seconds(products: Callable[[], None]) -> float:
    """CPU seconds of one round of them."""
    began = time.process_time()
    for _ in range(REPEATS):
        products()
    return (time.process_time() - began) / REPEATS


if __name__ == "__main__":
    main()
