"""What a run says of itself in `summary.json`, `stage.json` and `data.json`: read whole and well-formed, or not at all.

A run's folder may come from anyone, so every field is compared with its type before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    NotRequired,
    TypedDict,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from tailo_pl.errors import UserError, one_line
from tailo_pl.files import can_be_written, read_json

SCHEMA = 6  # of a run's files
LARGEST_INT, LARGEST_FLOAT = 1 << 63, 1e150  # what numpy can count with; squares and sums stay finite
FileT = TypeVar("FileT")


class OriginPart(TypedDict, total=False):
    """What TA has of one origin; nobody recorded returns where there is no mean of them."""

    trajectories: int
    steps: int
    mean_return: float


class StatesPart(TypedDict):
    """What TS has."""

    trajectories: int
    states: int


class ActionsPart(TypedDict):
    """What TA has."""

    trajectories: int
    steps: int
    origins: dict[str, OriginPart]


class Data(TypedDict):
    """What a run learnt from."""

    source: str
    fingerprint: str
    recipe: str
    """what it comes from: equal on every machine, where one that makes its data may round differently"""
    ts: StatesPart
    ta: ActionsPart


class Failure(TypedDict):
    """Where a run ended in a numerical error."""

    stage: str
    step: int


class Reference(TypedDict):
    """The returns that score 0 and 100."""

    low: float
    high: float
    source: str


class EvaluationPart(TypedDict):
    """Episodes played in training."""

    step: int
    score: float
    score_std: float
    mean_return: float | None
    mean_length: float
    success: float | None
    episodes: int
    subtasks: NotRequired[dict[str, list[int | None]]]  # of tasks that know any: first steps, by episode


class StagePart(TypedDict):
    """A stage in a summary."""

    stage: str
    steps: int
    chosen_step: int
    stopped: str
    loss: Any  # shown only where it is a number
    quality: dict[str, Any]  # likewise
    seconds: float
    cpu_seconds: float
    reused_from: str | None


class VerdictPart(TypedDict):
    """What is to be thought of a run without a simulator."""

    level: str
    """good, doubtful, bad, or unknown"""
    text: str
    numbers: dict[str, float]


class Summary(TypedDict):
    """`summary.json`."""

    schema: int
    env: str
    source: str
    setting: str
    method: str
    preset: str
    seed: int
    score: float | None
    score_std: float | None
    episodes: int
    failure: Failure | None
    reference: Reference | None
    verdict: VerdictPart
    checkpoint: str
    data: Data
    evaluations: list[EvaluationPart]
    stages: list[StagePart]
    versions: dict[str, str]


class StageFile(TypedDict):
    """`stage.json`."""

    schema: int
    stage: str
    key: str
    steps: int
    loss: Any
    seconds: float
    cpu_seconds: float
    checkpoint: str
    evaluations: list[EvaluationPart]
    chosen_step: int
    stopped: str
    quality: dict[str, Any]
    diverged: int | None
    reused_from: str | None


def read_summary(run_dir: Path) -> Summary:
    """The summary of a finished run."""
    path = run_dir / "summary.json"
    summary = _read(path, "a finished run", Summary)
    if not summary["stages"]:
        raise UserError(f"{path}: stages: none found, expected at least one")
    return summary


def read_stage(stage_dir: Path) -> StageFile:
    """What is known of a finished stage."""
    return _read(stage_dir / "stage.json", "a finished stage", StageFile)


def read_data(run_dir: Path) -> Data:
    """What a run, finished or not, learns from."""
    return _read(run_dir / "data.json", "a run's file", Data)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number that can be counted with."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST_FLOAT


def stated_numbers(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Every number that stages say of themselves; of what several say, the last one's holds.

    Args:
        stages: `quality` of each, in order.
    """
    return {name: value for stage in stages for name, value in stage["quality"].items() if is_number(value)}


def _read(path: Path, expected: str, kind: Callable[..., FileT]) -> FileT:
    found = read_json(path, expected)
    if not isinstance(found, dict):
        raise UserError(f"{path}: {type(found).__name__} found, expected keys and values")
    if "schema" in _fields(kind) and found.get("schema") != SCHEMA:
        raise UserError(f"{path}: not a summary of schema {SCHEMA}")
    _require(path, "", found, kind)
    checked: FileT = found  # type: ignore[assignment]
    return checked


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _require(path: Path, field: str, value: Any, kind: Any) -> None:
    """Refuse a value that is not of a type, in the words of the file.

    Args:
        path: the file.
        field: where in it, for the message.
        value: what was found there.
        kind: `str`, `int`, `float`, `Any`, one of them or null, a list, a dictionary or a TypedDict of them.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # of something and null
        if value is not None:
            _require(path, field, value, next(part for part in parts if part is not NoneType))
    elif is_typeddict(kind):
        _require_kind(path, field, value, isinstance(value, dict), "keys and values")
        for name, part in _fields(kind).items():
            inner = f"{field}.{name}" if field else name
            if name in value:
                _require(path, inner, value[name], part)
            elif name in kind.__required_keys__:
                raise UserError(f"{path}: {inner}: not there, expected {_words(part)}")
    elif origin is dict:
        _require_kind(path, field, value, isinstance(value, dict), _words(kind))
        for name, item in value.items():
            _require(path, f"a name in {field}", name, str)
            _require(path, f"{field}.{one_line(name)}", item, parts[1])
    elif origin is list:
        _require_kind(path, field, value, isinstance(value, list), _words(kind))
        for number, item in enumerate(value):
            _require(path, f"{field}[{number}]", item, parts[0])
    elif kind is int:
        right = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_INT
        _require_kind(path, field, value, right, _words(kind))
    elif kind is float:
        _require_kind(path, field, value, is_number(value), _words(kind))
    elif kind is str:
        _require_kind(path, field, value, isinstance(value, str) and can_be_written(value), _words(kind))


def _require_kind(path: Path, field: str, value: Any, right: bool, expected: str) -> None:
    if not right:
        raise UserError(f"{path}: {field}: {_found(value)} found, expected {expected}")


def _found(value: Any) -> str:
    """A wrong value, or only its type where it may be large."""
    return type(value).__name__ if isinstance(value, (Mapping, list)) else one_line(repr(value))


def _words(kind: Any) -> str:
    """A type as people say it."""
    names = {int: "a whole number", float: "a finite number", str: "text", list: "a list"}
    return names.get(get_origin(kind) or kind, "keys and values" if kind is not Any else "a value")
