"""How checkpoints reach the disk: whole or not at all, read without running anything they hold."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from tailo_pl.errors import UserError
from tailo_pl.files import whole_file


class WholeCheckpoints(TorchCheckpointIO):
    """Writes beside the target and renames, so that a killed process leaves the last good checkpoint in place."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any | None = None
    ) -> None:
        target = Path(path)
        content = io.BytesIO()
        torch.save(checkpoint, content)  # not to the file: torch's own complaint about a full disk does not say so
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(target) as scratch, scratch.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(target.parent)
        except OSError as error:
            raise UserError(f"{target}: cannot write the checkpoint ({_reason(error)}); the last one stands") from error

    def load_checkpoint(
        self, path: str | os.PathLike[str], map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        try:
            checkpoint: dict[str, Any] = torch.load(path, map_location=map_location or "cpu", weights_only=True)
        except Exception as error:  # whatever a damaged file makes torch raise
            raise UserError(
                f"{path}: cannot be read ({_reason(error)}); delete it to train this stage from its beginning"
            ) from error
        return checkpoint


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or " ".join(str(error).split()))[:200]
