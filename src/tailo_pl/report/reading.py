"""Reading runs for a report: everything that is there, and a line for everything that is not."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.layout import LAYOUT, Layout
from tailo_pl.data.task_names import task_fingerprint
from tailo_pl.data.timeline import TIMELINE, Timeline
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml
from tailo_pl.runs.summary import SCHEMA, is_number, read_data, read_stage, read_summary

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StageRecord:
    """A stage as its folder shows it.

    Args:
        name: of the stage.
        config: its part of the run's configuration.
        result: what `stage.json` or the summary says of it; empty while it is unfinished.
        metrics: for each name in `metrics.csv` the steps and values.
        scores: R(s), one per step of TA, if it hands on scores.
        weights: W(s, a), one per step of TA, if it was trained with weights.
    """

    name: str
    config: Mapping[str, Any]
    result: Mapping[str, Any]
    metrics: Mapping[str, tuple[Numbers, Numbers]]
    scores: NDArray[np.float32] | None
    weights: NDArray[np.float32] | None

    def input(self, name: str) -> Mapping[str, Any]:
        """How one of its inputs was made; empty where it has none of this name."""
        return table(self.config, "inputs", name)

    @property
    def seconds(self) -> float | None:
        """How long it took, also where another run did the work."""
        found = self.result.get("seconds")
        return float(found) if is_number(found) else None


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A run as its folder shows it; `missing` has a line for everything that could not be read."""

    path: Path
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    data: Mapping[str, Any]
    stages: Mapping[str, StageRecord]
    layout: Layout | None
    missing: list[str] = field(default_factory=list)
    timeline: Timeline | None = None

    def named(self, group: str) -> str:
        """What was chosen of a configuration group."""
        return str(table(self.config, group).get("name") or "?")

    @property
    def seed(self) -> int | str:
        found = self.config.get("seed")
        return found if isinstance(found, int) else "?"

    @property
    def evaluations(self) -> list[tuple[int, float, float]]:
        """Step, score and its deviation over episodes, of all evaluations so far."""
        found = self.summary.get("evaluations")
        if isinstance(found, list):
            rows: list[list[Any]] = [[one.get(key) for key in ("step", "score", "score_std")] for one in _items(found)]
            return [(int(step), score, std) for step, score, std in rows if all(map(is_number, (step, score, std)))]
        for stage in reversed(list(self.stages.values())):
            if "rollout/score" in stage.metrics:
                steps, scores = stage.metrics["rollout/score"]
                _, deviations = stage.metrics.get("rollout/score_std", (steps, np.zeros(len(steps))))
                return list(zip(steps.astype(int).tolist(), scores.tolist(), deviations.tolist(), strict=False))
        return []

    @property
    def score(self) -> float | None:
        """The score of the finished run."""
        found = self.summary.get("score")
        return float(found) if is_number(found) else None

    @property
    def expert_score(self) -> float | None:
        """Normalised mean return of the expert's trajectories in TA, where the data and its origins tell."""
        reference, origins = table(self.summary, "reference"), table(self.data, "ta", "origins")
        low: Any = reference.get("low")
        high: Any = reference.get("high")
        experts = _expert_labels(self.layout, origins)
        parts = [table(origins, label) for label in experts]
        known = [(part.get("mean_return"), part.get("trajectories")) for part in parts]
        if not known or low == high or not all(map(is_number, (low, high, *itertools.chain(*known)))):
            return None
        returns, counts = zip(*known, strict=True)
        if min(counts) <= 0:
            return None
        return float(100 * (np.average(returns, weights=counts) - low) / (high - low))

    @property
    def weighting(self) -> StageRecord | None:
        """The last stage that was trained with weights."""
        return next((stage for stage in reversed(list(self.stages.values())) if stage.input("weights")), None)

    @property
    def choosing(self) -> StageRecord | None:
        """The last stage that was trained on safe negatives."""
        return next((stage for stage in reversed(list(self.stages.values())) if stage.input("negatives")), None)

    def scores_of(self, stage: StageRecord | None, use: str) -> NDArray[np.float32] | None:
        """The scores a stage's weights or negatives were made of."""
        if stage is None:
            return None
        source = self.stages.get(str(stage.input(use).get("scores")))
        return None if source is None else source.scores


def table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The mapping below these keys; empty where something else is."""
    found: Any = value
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def read_run(path: Path) -> RunRecord:
    """Read a run's folder. A folder without a run's configuration is the user's mistake; all else is noted."""
    config = read_yaml(path / "config.yaml", "the folder of a run")
    if not isinstance(config, dict) or not table(config, "method", "stages"):
        raise UserError(f"{path / 'config.yaml'}: no method.stages found, expected a run's configuration")
    missing: list[str] = []
    if config.get("schema") != SCHEMA:
        missing.append(
            f"schema {config.get('schema')!r} found, this version writes {SCHEMA}: read as far as it is understood"
        )
    summary = _noted(read_summary, path / "summary.json", "the run is not finished", missing)
    data = table(summary, "data") or _noted(read_data, path / "data.json", "nothing is known of its data", missing)
    if failure := table(summary, "failure"):
        missing.append(f"stage {failure.get('stage')} ended in a numerical error at step {failure.get('step')}")
    layout = _layout(path, config, missing)
    results = {str(table(stage).get("stage")): stage for stage in _items(summary.get("stages"))}
    stages = {
        str(name): _stage(path / str(name), str(name), stage, results, layout, missing)
        for name, stage in table(config, "method", "stages").items()
        if isinstance(stage, dict)
    }
    return RunRecord(path, config, summary, data, stages, layout, missing, _timeline(path, missing))


def _stage(
    folder: Path,
    name: str,
    config: dict[str, Any],
    results: Mapping[str, Any],
    layout: Layout | None,
    missing: list[str],
) -> StageRecord:
    if not folder.is_dir():
        missing.append(f"{name}/ not there: the stage was not begun")
        return StageRecord(name, config, {}, {}, None, None)
    recorded = (folder / "stage.json").exists() or name not in results
    unfinished = f"stage {name} is not finished"
    result = _noted(read_stage, folder / "stage.json", unfinished, missing) if recorded else results[name]
    failed = result.get("diverged") is not None
    scores = weights = None
    kind = str(table(config, "batches").get("class_path"))
    if kind.endswith(".PairBatches") and result and not failed:
        scores = _array(folder / "scores.npy", layout, missing)
    if table(config, "inputs", "weights"):
        weights = _array(folder / "weights.npy", layout, missing)
    return StageRecord(name, config, result, _metrics(folder / "metrics.csv", missing), scores, weights)


def _noted(
    read: Callable[[Path], Mapping[str, Any]], path: Path, meaning: str, missing: list[str]
) -> Mapping[str, Any]:
    """What a file says, read by its reader from its folder; nothing and a note where it is not there or damaged."""
    if not path.exists():
        missing.append(f"{_place(path)} not there: {meaning}")
        return {}
    try:
        return read(path.parent)
    except UserError as error:
        missing.append(str(error))
        return {}


def _layout(path: Path, config: dict[str, Any], missing: list[str]) -> Layout | None:
    """As the run recorded it; for runs that did not, from the data itself where it is the same still."""
    try:
        if (path / LAYOUT).exists():
            return Layout.read(path / LAYOUT)
        from tailo_pl.runs.folder import load_run  # with all that training needs, which takes seconds to import

        experiment = load_run(path)
        known = read_data(path)["fingerprint"]
        if task_fingerprint(experiment.source, experiment.setting) != known:
            raise UserError("its data has changed since")
        return Layout.of(experiment.task)
    except UserError as error:
        missing.append(f"{LAYOUT} not there or unreadable, so nothing per trajectory is shown ({error})")
        return None


def _timeline(path: Path, missing: list[str]) -> Timeline | None:
    """Which subtasks were done in the data, where the run's environment knows any."""
    try:
        return Timeline.read(path / TIMELINE) if (path / TIMELINE).exists() else None
    except UserError as error:
        missing.append(str(error))
        return None


def _array(path: Path, layout: Layout | None, missing: list[str]) -> NDArray[np.float32] | None:
    if not path.exists():
        missing.append(f"{_place(path)} not there")
        return None
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        missing.append(f"{_place(path)}: cannot be read ({' '.join(str(error).split())[:200]})")
        return None
    expected = f"{layout.steps:,}" if layout else "one"
    if array.ndim != 1 or array.dtype.kind != "f" or (layout is not None and len(array) != layout.steps):
        missing.append(
            f"{_place(path)}: {array.dtype} of shape {array.shape} found, expected {expected} numbers, "
            "one per step of TA"
        )
        return None
    if not np.isfinite(array).all():
        missing.append(f"{_place(path)}: a number in it is not finite")
        return None
    return array


def _metrics(path: Path, missing: list[str]) -> dict[str, tuple[Numbers, Numbers]]:
    """The columns of a metrics file, each with the steps at which it has a value."""
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        columns: dict[str, tuple[list[float], list[float]]] = {}
        for row in rows:
            step = float(row["step"])
            for name, value in row.items():
                if value and name not in ("step", "epoch"):
                    steps, values = columns.setdefault(name, ([], []))
                    steps.append(step)
                    values.append(float(value))
    except FileNotFoundError:
        missing.append(f"{_place(path)} not there")
        return {}
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        missing.append(f"{_place(path)}: not a table of numbers by step ({error})")
        return {}
    arrays = {name: (np.array(steps), np.array(values)) for name, (steps, values) in columns.items()}
    finite = {name: np.isfinite(values) for name, (_, values) in arrays.items()}
    return {name: (steps[finite[name]], values[finite[name]]) for name, (steps, values) in arrays.items()}


def _expert_labels(layout: Layout | None, origins: Mapping[str, Any]) -> list[str]:
    if layout is not None:
        experts = layout.experts
        return [] if experts is None else list(dict.fromkeys(layout.origins[experts].tolist()))
    return [label for label in origins if label == "expert"]


def _place(path: Path) -> str:
    """A file of a run as its notes name it: with its stage, if it is a stage's."""
    return path.name if path.name in ("summary.json", "data.json") else f"{path.parent.name}/{path.name}"


def _items(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
