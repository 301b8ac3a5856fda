"""What the log says while a command runs."""

from __future__ import annotations

import logging
import warnings

from tailo_pl.runs.launch import terminal


def quieten() -> None:
    """Show what our own log says, and keep libraries' start-up chatter away from what the user asked to see."""
    ours = logging.getLogger("tailo_pl")
    ours.setLevel(logging.INFO)
    ours.propagate = False  # Hydra silences the root logger
    handler = logging.StreamHandler(terminal())
    handler.setFormatter(logging.Formatter("tailo: %(message)s"))
    ours.handlers = [handler]
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(f"{package}.utilities.rank_zero").setLevel(logging.ERROR)
    logging.getLogger("lightning.fabric.utilities.seed").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=r"torch\.distributed\.nn\.functional", category=FutureWarning)
    for module in (r"lightning\..*", r"gymnasium.*", r"torch\.utils\.data.*"):
        warnings.filterwarnings("ignore", module=module)
