"""Reading a file whole, for the tests of every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.formats.record_file import RecordFile
from tailo_pl.errors import UserError


def read_whole(reader: Callable[[Path], RecordFile], path: Path, *names: str) -> dict[str, np.ndarray]:
    """The named fields, or all of them, with their batches put together."""
    with reader(path) as file:
        batches = list(file.batches(names or list(file.fields)))
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def refusal(reader: Callable[[Path], RecordFile], path: Path, *names: str) -> str:
    """The one line with which a file is refused, without the path it begins with."""
    with pytest.raises(UserError) as caught:
        read_whole(reader, path, *names)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and message.isprintable()
    return message.removeprefix(f"{path}: ")
