"""What torch.compile is worth: TAILO's stages under Lightning with `compile=true` against those without.

    python benchmarks/compiled.py

Steps are timed after the first two, in which it compiles. One thread; ratios are medians of rounds that take turns.
"""

from __future__ import annotations

import torch
from rows import Row, in_turns, ratio, show
from steps import made_up_task, ours


def main() -> None:
    torch.set_num_threads(1)
    task, found = made_up_task(), []
    for stage, batch, steps in (("policy", 512, 150), ("policy", 8192, 10), ("formal", 512, 50)):
        sides = {
            name: ours(task, stage, batch, steps, "32-true", f"compile={name == 'compiled'}")
            for name in ("as it is", "compiled")
        }
        found.append(
            Row(f"{stage} step, batch {batch}: compiled vs not", ratio(in_turns(sides, 3), "as it is", "compiled"))
        )
    show(found, "torch.compile, one thread")


if __name__ == "__main__":
    main()
