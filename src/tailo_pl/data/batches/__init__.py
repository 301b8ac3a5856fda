"""The batches that stages train on: one class per kind, which rows they hold a pure function of (seed, stage, step)."""

from tailo_pl.data.batches.dynamics import DynamicsBatch, DynamicsBatches
from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.pairs import PairBatch, PairBatches
from tailo_pl.data.batches.rollouts import PathBatch, PathBatches, RolloutBatch, RolloutBatches, RolloutDraws
from tailo_pl.data.batches.step_tables import KnownSteps, known_steps
from tailo_pl.data.batches.transitions import ExpertRows, TransitionBatch, TransitionBatches
from tailo_pl.data.batches.triples import TripleBatch, TripleBatches, Triples
from tailo_pl.data.batches.weighted import WeightedBatch, WeightedBatches

__all__ = [
    "Batches",
    "DynamicsBatch",
    "DynamicsBatches",
    "ExpertRows",
    "KnownSteps",
    "PairBatch",
    "PairBatches",
    "PathBatch",
    "PathBatches",
    "RolloutBatch",
    "RolloutBatches",
    "RolloutDraws",
    "TransitionBatch",
    "TransitionBatches",
    "TripleBatch",
    "TripleBatches",
    "Triples",
    "WeightedBatch",
    "WeightedBatches",
    "known_steps",
]
