"""Lightning callbacks: each does one thing and says when it fires.

A callback of the configuration is any of Lightning's. Three class attributes say what is special about one:

- `modules`: the class of modules it is for; other stages train without it. All, if it says nothing.
- `needs`: names of constructor arguments that the run fills in: `environment` (without one the callback is left out)
  and `seed`, that of the stage.
- `without_effect`: True where it changes nothing of what a stage learns or reports; such a callback does not decide
  whether a finished stage can be reused.
"""

from tailo_pl.callbacks.checkpoint import StageCheckpoint
from tailo_pl.callbacks.compiled import Compiled
from tailo_pl.callbacks.expert_scores import ExpertScores
from tailo_pl.callbacks.held_out import HeldOutChoice
from tailo_pl.callbacks.progress import StageProgress
from tailo_pl.callbacks.rollout import RolloutScore
from tailo_pl.callbacks.settled import Settled
from tailo_pl.callbacks.threads import Threads

__all__ = [
    "Compiled",
    "ExpertScores",
    "HeldOutChoice",
    "RolloutScore",
    "Settled",
    "StageCheckpoint",
    "StageProgress",
    "Threads",
]
