"""How checkpoints reach the disk: whole or not at all, read without running anything they hold."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, TypeVar

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from tailo_pl.config.parsing import build
from tailo_pl.errors import UserError
from tailo_pl.files import whole_file
from tailo_pl.models.stage import MODULE_KEY, StageModule, require_schema

ModuleT = TypeVar("ModuleT", bound=StageModule)


def load_checkpoint(path: Path, kind: type[ModuleT]) -> ModuleT:
    """The module of a checkpoint, on the CPU, ready to use.

    The checkpoint says which class it is and with which arguments; only classes a configuration may name are built.

    Args:
        path: the checkpoint.
        kind: what it must be.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        require_schema(checkpoint)
        with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
            module = _described(checkpoint[MODULE_KEY], kind)
        module.load_state_dict(checkpoint["state_dict"])
    except Exception as error:  # whatever a damaged file, or one with something else in it, makes torch raise
        raise UserError(f"{path}: cannot be read as a {kind.__name__} ({_reason(error)})") from error
    for name, weights in module.state_dict().items():
        if not bool(torch.isfinite(weights).all()):
            raise UserError(f"{path}: {name}: a number that is not finite found, expected finite weights")
    return module.eval()


def _described(description: Any, kind: type[ModuleT]) -> ModuleT:
    """Build a module from its description."""
    if not isinstance(description, dict):  # jsonargparse would take text for the path of a file
        raise UserError(f"{MODULE_KEY}: {description!r} found, expected class_path and init_args")
    return build(kind, description, MODULE_KEY)


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
