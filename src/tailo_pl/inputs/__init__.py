"""What a stage reads beside its task: one small class each, named by class_path in a method's stages."""

from tailo_pl.inputs.handed_on import HandedOn
from tailo_pl.inputs.negatives import SafeNegatives
from tailo_pl.inputs.neighbours import NeighbourRewards
from tailo_pl.inputs.rewards import RecordedRewards, ScoreReturns, ScoreRewards
from tailo_pl.inputs.stage_input import Origin, StageInput
from tailo_pl.inputs.transport import TransportRewards
from tailo_pl.inputs.weights import TrajectoryWeights

__all__ = [
    "HandedOn",
    "NeighbourRewards",
    "Origin",
    "RecordedRewards",
    "SafeNegatives",
    "ScoreReturns",
    "ScoreRewards",
    "StageInput",
    "TrajectoryWeights",
    "TransportRewards",
]
