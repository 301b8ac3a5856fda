"""Loggers beside metrics.csv, to look at a run while it trains: thin forms of Lightning's own.

All take where the stage's folder lies (`save_dir` and `name` below it), so that they can be chosen by name alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from lightning.pytorch.loggers import MLFlowLogger, TensorBoardLogger, WandbLogger

from tailo_pl.errors import UserError


class TensorBoardLog(TensorBoardLogger):
    """Event files in `tensorboard` of the stage's folder: `tensorboard --logdir runs` shows them.

    A resumed stage repeats the steps behind its last checkpoint number by number, so its curves lie on each other.

    Args:
        save_dir: parent of the stage's folder.
        name: of the stage.
    """

    def __init__(self, save_dir: str, name: str = "") -> None:
        super().__init__(save_dir, name, version="tensorboard")


class WandbLog(WandbLogger):
    """Weights & Biases, one of its runs per stage; offline unless told otherwise, so that no account is needed.

    Args:
        save_dir: parent of the stage's folder.
        name: of the stage.
        project: of Weights & Biases.
        offline: write to the stage's folder only; `wandb sync` uploads it later.
    """

    def __init__(self, save_dir: str, name: str = "", project: str = "tailo_pl", offline: bool = True) -> None:
        folder = Path(save_dir) / name
        super().__init__(f"{Path(save_dir).name}-{name}", folder, project=project, offline=offline)

    def finalize(self, status: str) -> None:
        """End its run: the next stage has one of its own."""
        super().finalize(status)
        if self._experiment is not None:
            self.experiment.finish(exit_code=0 if status == "success" else 1)
            self._experiment = None


class MlflowLog(MLFlowLogger):
    """MLflow, one of its runs per stage.

    Args:
        save_dir: parent of the stage's folder.
        name: of the stage.
        experiment_name: of MLflow.
        tracking_uri: a server or a database; None: the file `mlflow.db` in the stage's folder.
    """

    def __init__(
        self, save_dir: str, name: str = "", experiment_name: str = "tailo_pl", tracking_uri: str | None = None
    ) -> None:
        folder = (Path(save_dir) / name).resolve()
        run_name = f"{Path(save_dir).name}-{name}"
        if tracking_uri is not None:
            super().__init__(experiment_name, run_name, tracking_uri)
            return
        folder.mkdir(parents=True, exist_ok=True)
        artifacts = (folder / "mlartifacts").as_uri()
        super().__init__(experiment_name, run_name, f"sqlite:///{folder / 'mlflow.db'}", artifact_location=artifacts)


# What each needs that is not installed with this package.
_PACKAGES = {TensorBoardLog: "tensorboardX", WandbLog: "wandb", MlflowLog: "mlflow"}


def require_package(class_path: str) -> None:
    """Raise `UserError` where a logger of this module lacks its package."""
    for kind, package in _PACKAGES.items():
        if class_path == f"{kind.__module__}.{kind.__qualname__}" and find_spec(package) is None:
            raise UserError(f"logger: needs the package {package}: pip install {package}")
