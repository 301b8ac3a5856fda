"""The kitchen's tasks and the numbers of its states: what can be told of it without a simulator."""

from __future__ import annotations

from typing import Literal

from tailo_pl.errors import UserError

Layout = Literal["robotics", "d4rl"]
SUBTASKS = (
    "microwave",
    "kettle",
    "bottom burner",
    "top burner",
    "light switch",
    "slide cabinet",
    "hinge cabinet",
)
TASKS: dict[str, tuple[str, ...]] = {
    "mixed": ("microwave", "kettle", "bottom burner", "light switch"),
    "complete": ("microwave", "kettle", "light switch", "slide cabinet"),
    **{subtask: (subtask,) for subtask in SUBTASKS},
}
ARM = 7  # joints of the arm; the next two are its fingers
ROBOT = 9
POSITIONS = 30  # of the robot's joints and then of everything that moves
OBSERVED = 59


def wanted(task: str) -> tuple[str, ...]:
    """The subtasks of a task: `mixed`, `complete`, or one subtask by its name."""
    if task not in TASKS:
        raise UserError(f"env.task: {task!r} given, expected one of {', '.join(TASKS)}")
    return TASKS[task]
