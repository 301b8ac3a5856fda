"""Actor: a policy's network, or several side by side, and the head that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from torch import Tensor, nn

from tailo_pl.models.heads.head import Head
from tailo_pl.models.networks import Norm, mlp

HeadT = TypeVar("HeadT", bound=Head)


class Actor(nn.Module, Generic[HeadT]):
    """From standardised states to actions in [-1, 1]. Several members act by the mean of their actions.

    Args:
        head: what is made of the network's numbers; members share it.
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
        hidden: widths of the hidden (ReLU) layers.
        norm: `layer` normalises each hidden layer.
        members: networks side by side, each with initial weights and rows of the batch of its own.
    """

    def __init__(
        self,
        head: HeadT,
        observation_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        *,
        norm: Norm = "none",
        members: int = 1,
    ) -> None:
        super().__init__()
        head.prepare(action_dim)
        width = head.width(action_dim)
        self.network = mlp(observation_dim, hidden, width, nn.ReLU, norm=norm, members=members)
        self.head = head
        self.members = members

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action."""
        if self.members == 1:
            return self.head.act(self.outputs(states))
        return self.member_actions(states).mean(0)

    def member_actions(self, states: Tensor) -> Tensor:
        """The deterministic action of every member at every state, (members, rows, action_dim)."""
        actions = self.head.act(self.member_outputs(states).flatten(0, 1))
        return actions.view(self.members, -1, actions.shape[-1])

    def member_outputs(self, states: Tensor) -> Tensor:
        """What the head reads of every member at every state, (members, rows, width)."""
        if self.members == 1:
            return self.outputs(states)[None]
        return self.outputs(states.expand(self.members, -1, -1))

    def outputs(self, states: Tensor) -> Tensor:
        """What the head reads: in float32, also where the network computes with less.

        Args:
            states: (rows, dim); where there are several members (members, rows, dim).
        """
        outputs: Tensor = self.network(states).float()
        return outputs

    def losses(self, states: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        """What training minimises, per row. Row i is that of member i % members; no other member sees it.

        Args:
            states: (rows, dim).
            actions: as `Head.losses` takes them.
            noise: as `Head.losses` takes it.
        """
        if self.members == 1:
            outputs = self.outputs(states)
        else:
            own = states.view(-1, self.members, states.shape[-1]).transpose(0, 1)
            outputs = self.outputs(own).transpose(0, 1).flatten(0, 1)
        return self.head.losses(outputs, actions, noise)
