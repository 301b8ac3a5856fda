"""Head: how a policy's actions and its loss follow from the numbers that its network gives."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from tailo_pl.models.description import Described


class Head(Described, nn.Module, ABC):
    """Base of the heads. Actions are in [-1, 1] here; one head belongs to one policy."""

    @abstractmethod
    def width(self, action_dim: int) -> int:
        """How many numbers the network gives for an action.

        Args:
            action_dim: numbers in an action.
        """

    @abstractmethod
    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        """What training minimises, one number per row.

        Args:
            outputs: what the network gives, (rows, width).
            actions: recorded actions, (rows, action_dim).
            noise: standard normal numbers of the step, (rows, action_dim), where the batch has them.
        """

    @abstractmethod
    def act(self, outputs: Tensor) -> Tensor:
        """The deterministic action, (rows, action_dim): what is played, and what is exported.

        Args:
            outputs: what the network gives, (rows, width).
        """

    def prepare(self, action_dim: int) -> None:
        """Make the weights of its own, if it has any beside the network's; called once, when its policy is built.

        Args:
            action_dim: numbers in an action.
        """
        return None
