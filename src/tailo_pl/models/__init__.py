"""What the stages train."""

from tailo_pl.models.discriminator import PUDiscriminator
from tailo_pl.models.policy import WeightedBCPolicy

__all__ = ["PUDiscriminator", "WeightedBCPolicy"]
