"""DILO: utilities of pairs of states, learnt from the expert's triples and TA's, and cloning weighted by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tailo_pl.data.batches import KnownSteps, TripleBatch
from tailo_pl.errors import require_range
from tailo_pl.losses.dilo import mixture_terms, orthogonal_sum, residual
from tailo_pl.losses.iql import advantage_weights
from tailo_pl.models.actor import Actor
from tailo_pl.models.critics import TwinCritics
from tailo_pl.models.heads import Head, Regression
from tailo_pl.models.networks import follower_of, move_towards
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing

WEIGHT_LIMIT = 100.0


class _Parts(NamedTuple):
    """What a step differentiates apart."""

    linear: Tensor
    forward: Tensor
    backward: Tensor
    actor_loss: Tensor | None


class DILO(Weighing):
    """Twin utilities V(s, s') that solve the dual of matching the expert's pairs in a mixture with TA's.

    The gradient through the next pair's utility counts only as far as it is orthogonal to the one through the pair's
    own (Mao et al. 2024); where one is differentiated the other is a slowly following copy. The actor learns from the
    same batch, by squared error weighted with exp(sharpness * V); its rate falls to zero.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        balance: l: weight of the conjugate beside the mean utility of TA.
        expert_share: b: the expert's share of the mixture.
        orthogonal: how much of the orthogonal gradient is added.
        sharpness: how sharply the actor prefers utility.
        discount: g.
        target_rate: how fast the copy follows.
        head: what is made of the actor's numbers; None: the action itself, by its squared error.
        learning_rate: Adam's step size, for the utilities.
        actor_learning_rate: Adam's step size, for the actor.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True
    several_processes = False  # gradients are put together by hand, behind the back of what averages them

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        balance: float = 0.8,
        expert_share: float = 0.5,
        orthogonal: float = 0.5,
        sharpness: float = 0.06,
        discount: float = 0.99,
        target_rate: float = 0.005,
        head: Head | None = None,
        learning_rate: float = 3e-4,
        actor_learning_rate: float = 1e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("balance", balance, 0, 1)
        require_range("expert_share", expert_share, 0, 1)
        require_range("orthogonal", orthogonal, 0, closed="[)")
        require_range("sharpness", sharpness, 0, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("target_rate", target_rate, 0, 1, closed="(]")
        require_range("actor_learning_rate", actor_learning_rate, 0)
        self.balance = balance
        self.expert_share = expert_share
        self.orthogonal = orthogonal
        self.sharpness = sharpness
        self.discount = discount
        self.target_rate = target_rate
        self.actor_learning_rate = actor_learning_rate
        self.utilities = TwinCritics(observation_dim, observation_dim, hidden)
        self.target_utilities = follower_of(self.utilities)
        self.actor = Actor(head or Regression(), observation_dim, self.action_dim, hidden)
        self._parts: _Parts | None = None

    def training_step(self, batch: TripleBatch, batch_idx: int) -> Tensor:
        rows = len(batch.actions)
        first, second, third = (
            self.standardise(torch.cat(both)) for both in zip(batch.states, batch.expert, strict=True)
        )  # TA's rows above TS's
        ta, ts = (
            torch.stack(self.utilities(first[part], second[part])) for part in (slice(rows), slice(rows, None))
        )  # (2, rows): both utilities; apart, so that TA's can be differentiated alone
        values, next_values = torch.cat([ta, ts], 1), torch.stack(self.utilities(second, third))
        with torch.no_grad():
            targets, next_targets = (
                torch.minimum(*self.target_utilities(*pair)) for pair in ((first, second), (second, third))
            )
        linear = (1 - self.balance) * ta.mean()
        forward = self._mixture(residual(next_targets, values, self.discount), rows)
        backward = self._mixture(residual(next_values, targets, self.discount), rows)
        utilities = ta.detach().min(0).values
        actor_loss = None
        if self.acts:
            weights = advantage_weights(utilities, self.sharpness, WEIGHT_LIMIT)
            actor_loss = (weights * self.actor.losses(first[:rows], self.bounds.normalise(batch.actions))).mean()
        self._parts = _Parts(linear, forward, backward, actor_loss)
        actor = {} if actor_loss is None else {"actor_loss": actor_loss}
        loss = sum(actor.values(), linear + forward)
        self.log_now_and_then(
            loss,
            lambda: {
                "value_loss": linear + forward,
                **actor,
                "expert_value": ts.mean(),
                **value_range(utilities),
            },
        )
        return loss

    def log_weights(self, steps: KnownSteps) -> Tensor:
        states, nexts = self.standardise(steps.observations), self.standardise(steps.next_observations)
        utilities = torch.minimum(*self.utilities(states, nexts))
        return torch.log(advantage_weights(utilities, self.sharpness, WEIGHT_LIMIT))

    def _mixture(self, y: Tensor, rows: int) -> Tensor:
        """l times the mean of the mixture's terms."""
        return self.balance * mixture_terms(y[:, rows:], y[:, :rows], self.expert_share).mean()

    def backward(self, loss: Tensor, *arguments: Any, **options: Any) -> None:
        """The gradients of the parts, those of the two pairs put together as `orthogonal_sum` says."""
        assert self._parts is not None
        parts, self._parts = self._parts, None
        weights = list(self.utilities.parameters())
        values = (parts.linear, parts.forward, parts.backward)
        linear, forward, backward = (list(torch.autograd.grad(part, weights, retain_graph=True)) for part in values)
        both = orthogonal_sum(forward, backward, self.orthogonal)
        for weight, one, other in zip(weights, linear, both, strict=True):
            weight.grad = one + other
        if parts.actor_loss is not None:
            parts.actor_loss.backward()  # type: ignore[no-untyped-call]

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        move_towards(self.target_utilities, self.utilities, self.target_rate)

    def configure_optimizers(self) -> Any:
        groups: list[dict[str, Any]] = [
            {"params": self.utilities.parameters()},
            {"params": self.actor.parameters(), "lr": self.actor_learning_rate},
        ]
        adam = torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
        return self.falling_rates(adam, [False, True])


class DILOWeights(HandsOnWeights, DILO):
    """DILO without its actor; arguments are those of DILO."""
