"""What the stages train."""

from tailo_pl.models.dilo import DILO, DILOWeights
from tailo_pl.models.discriminator import PUDiscriminator
from tailo_pl.models.dwbc import DWBC
from tailo_pl.models.dynamics import Dynamics
from tailo_pl.models.ensemble import Ensemble
from tailo_pl.models.iql import IQL, IQLWeights
from tailo_pl.models.lobsdice import LobsDICE, LobsDICEWeights
from tailo_pl.models.marwil import MARWIL, MARWILWeights
from tailo_pl.models.mopo import MOPO
from tailo_pl.models.morel import ClonedStart, MOReL
from tailo_pl.models.policy import WeightedBCPolicy
from tailo_pl.models.rce import RCE
from tailo_pl.models.recoil import ReCOIL, ReCOILWeights
from tailo_pl.models.smodice import SMODICE, SMODICEWeights
from tailo_pl.models.td3bc import TD3BC

__all__ = [
    "DILO",
    "DWBC",
    "IQL",
    "MARWIL",
    "MOPO",
    "RCE",
    "SMODICE",
    "TD3BC",
    "ClonedStart",
    "DILOWeights",
    "Dynamics",
    "Ensemble",
    "IQLWeights",
    "LobsDICE",
    "LobsDICEWeights",
    "MARWILWeights",
    "MOReL",
    "PUDiscriminator",
    "ReCOIL",
    "ReCOILWeights",
    "SMODICEWeights",
    "WeightedBCPolicy",
]
