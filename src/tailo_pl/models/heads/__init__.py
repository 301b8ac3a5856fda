"""Policy heads: what is made of the numbers that a policy's network gives."""

from tailo_pl.models.heads.clipped_gaussian import ClippedGaussian
from tailo_pl.models.heads.gaussian import Gaussian
from tailo_pl.models.heads.head import Head
from tailo_pl.models.heads.mixture import Mixture
from tailo_pl.models.heads.regression import Regression
from tailo_pl.models.heads.squashed_gaussian import SquashedGaussian
from tailo_pl.models.heads.tanh_mean_gaussian import TanhMeanGaussian

__all__ = ["ClippedGaussian", "Gaussian", "Head", "Mixture", "Regression", "SquashedGaussian", "TanhMeanGaussian"]
