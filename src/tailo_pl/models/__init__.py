"""What the stages train."""

from tailo_pl.models.dilo import DILO
from tailo_pl.models.discriminator import PUDiscriminator
from tailo_pl.models.dwbc import DWBC
from tailo_pl.models.iql import IQL
from tailo_pl.models.lobsdice import LobsDICE
from tailo_pl.models.marwil import MARWIL
from tailo_pl.models.policy import WeightedBCPolicy
from tailo_pl.models.rce import RCE
from tailo_pl.models.recoil import ReCOIL
from tailo_pl.models.smodice import SMODICE
from tailo_pl.models.td3bc import TD3BC

__all__ = [
    "DILO",
    "DWBC",
    "IQL",
    "MARWIL",
    "RCE",
    "SMODICE",
    "TD3BC",
    "LobsDICE",
    "PUDiscriminator",
    "ReCOIL",
    "WeightedBCPolicy",
]
