"""Lightning callbacks: each does one thing and says when it fires."""

from tailo_pl.callbacks.checkpoint import StageCheckpoint
from tailo_pl.callbacks.compiled import Compiled
from tailo_pl.callbacks.held_out import HeldOutChoice
from tailo_pl.callbacks.progress import StageProgress
from tailo_pl.callbacks.rollout import RolloutScore
from tailo_pl.callbacks.settled import Settled
from tailo_pl.callbacks.threads import Threads

__all__ = ["Compiled", "HeldOutChoice", "RolloutScore", "Settled", "StageCheckpoint", "StageProgress", "Threads"]
