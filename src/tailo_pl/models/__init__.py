"""What the stages train."""

from tailo_pl.errors import UserError
from tailo_pl.models.discriminator import PUDiscriminator
from tailo_pl.models.dwbc import DWBC
from tailo_pl.models.iql import IQL
from tailo_pl.models.lobsdice import LobsDICE
from tailo_pl.models.marwil import MARWIL
from tailo_pl.models.policy import WeightedBCPolicy
from tailo_pl.models.rce import RCE
from tailo_pl.models.smodice import SMODICE
from tailo_pl.models.stage import StageModule
from tailo_pl.models.td3bc import TD3BC

__all__ = [
    "DWBC",
    "IQL",
    "MARWIL",
    "RCE",
    "SMODICE",
    "TD3BC",
    "LobsDICE",
    "PUDiscriminator",
    "WeightedBCPolicy",
    "module_class",
]
_MODULES: tuple[type[StageModule], ...] = (
    DWBC, IQL, MARWIL, RCE, SMODICE, TD3BC, LobsDICE, PUDiscriminator, WeightedBCPolicy,
)  # fmt: skip


def module_class(class_path: str) -> type[StageModule]:
    """The module of this class path; only the package's own are loaded from a run."""
    known = {f"{__name__}.{module.__name__}": module for module in _MODULES}
    if class_path not in known:
        raise UserError(f"model: class_path {class_path!r} found, expected one of {', '.join(known)}")
    return known[class_path]
