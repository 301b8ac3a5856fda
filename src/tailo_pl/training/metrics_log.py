"""MetricsLog: metrics.csv, which a resumed stage goes on with."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from tailo_pl.files import write_text


class MetricsLog(CSVLogger):
    """One row for each time something is logged, in `metrics.csv` of the log folder.

    Lightning's own logger deletes the file it finds and rewrites it in place. Here the file is replaced as a whole, so
    that it can be read at any moment, and `cut_back` takes up what an interrupted stage had logged.

    Args:
        save_dir: parent of the log folders.
        name: of the log.
        version: of the log.
        flush_logs_every_n_steps: steps between writes; a checkpoint writes as well.
    """

    def __init__(
        self, save_dir: str, name: str = "", version: int | str | None = None, flush_logs_every_n_steps: int = 100
    ) -> None:
        super().__init__(save_dir, name, version, flush_logs_every_n_steps=flush_logs_every_n_steps)
        self.rows: list[dict[str, Any]] = []
        self._unsaved = False

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.log_dir) / "metrics.csv"

    @property
    def experiment(self) -> None:  # type: ignore[override]
        """Nothing: making Lightning's writer, as Lightning does by asking for it, would delete the file."""

    @rank_zero_only
    def log_hyperparams(self, params: Any = None) -> None:
        """Nothing: the stage's config.yaml has them."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Tensor | float], step: int | None = None) -> None:  # type: ignore[override]
        numbers = {name: value.item() if isinstance(value, Tensor) else value for name, value in metrics.items()}
        step = len(self.rows) if step is None else step
        self.rows.append({**numbers, "step": step})
        self._unsaved = True
        if (step + 1) % self._flush_logs_every_n_steps == 0:
            self.save()

    @rank_zero_only
    def save(self) -> None:
        if not self._unsaved:
            return
        names = sorted({name for row in self.rows for name in row})
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self.rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, text.getvalue())
        self._unsaved = False

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self.save()

    @rank_zero_only
    def cut_back(self, rows: int) -> None:
        """Go on behind the first `rows` rows of the file, if it is there."""
        if self.path.exists():
            with self.path.open(newline="") as file:
                there = list(csv.DictReader(file))[:rows]
            self.rows = [{name: value for name, value in row.items() if value != ""} for row in there]
            self._unsaved = True
