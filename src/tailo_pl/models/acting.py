"""From a trained policy to actions: numpy in, numpy out, on whatever device the policy is."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tailo_pl.envs.evaluation import Actor


def actor(policy: nn.Module) -> Actor:
    """The policy's deterministic actions at raw observations."""
    device = next(policy.parameters()).device

    def act(observations: NDArray[np.float64]) -> NDArray[Any]:
        with torch.inference_mode():
            states = torch.from_numpy(observations.astype(np.float32)).to(device)
            actions: NDArray[Any] = policy(states).float().cpu().numpy()
        return actions

    return act
