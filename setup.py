"""What pyproject.toml cannot say: a checkout without its two links has no configs and no callbacks to install."""

from pathlib import Path

from setuptools import setup

for name in ("configs", "callbacks"):
    link = Path(__file__).parent / "src" / "tailo_pl" / name
    if not link.is_dir():
        raise SystemExit(
            f"tailo_pl: src/tailo_pl/{name} is no folder, expected a link to {name}/; check out with links "
            "(git config core.symlinks true, then git checkout -- src)"
        )

setup()
