"""The folder of a run as one piece of bytes, for what travels without its folder."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path


def packed(run_dir: Path) -> bytes:
    """All files of a run."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as files:
        for path in sorted(run_dir.rglob("*")):
            if path.is_file():
                files.write(path, path.relative_to(run_dir))
    return content.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Write what `packed` has read into a folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        files.extractall(folder)
