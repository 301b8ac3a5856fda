"""MOReL: natural policy gradients in a learnt model that ends where its members disagree (Kidambi et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tailo_pl.data.batches import PathBatch, PathBatches
from tailo_pl.data.settings import Task
from tailo_pl.errors import require_range
from tailo_pl.losses.dynamics import disagreement, unknown
from tailo_pl.losses.npg import advantages, conjugate_gradient, gaussian_divergence, natural_step
from tailo_pl.models.actor import Actor
from tailo_pl.models.ensemble import Ensemble
from tailo_pl.models.heads import TanhMeanGaussian
from tailo_pl.models.networks import mlp
from tailo_pl.models.policy import PolicyModule, WeightedBCPolicy
from tailo_pl.models.stage import value_range

_FIT_ROWS = 256  # of the value's batches


class ClonedStart(WeightedBCPolicy):
    """Behaviour cloning that hands on `actor`, its weights as one vector: where MOReL begins.

    Arguments are those of WeightedBCPolicy.
    """

    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        return {"actor": parameters_to_vector(self.acting.parameters()).detach().cpu().numpy()}

    def quality(self, task: Task, outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        return {}  # it is not what the run is judged by


class Paths(NamedTuple):
    """Paths in the model, (steps, paths, …); what lies behind the end of a path means nothing."""

    states: Tensor
    """standardised"""
    actions: Tensor
    """as drawn: they may lie beyond the bounds, at which the model took them"""
    rewards: Tensor
    there: Tensor
    """1 for steps of the path, 0 behind its end"""
    ended: Tensor
    """1 where the step ended the path: a fall, or the unknown"""
    last_states: Tensor
    """(paths, dim): standardised, where each path has come to"""
    cut: Tensor
    """share of the paths that ended in the unknown"""


class MOReL(PolicyModule):
    """A step is one iteration: paths of the policy in every member, advantages along them, one natural gradient step.

    The natural step is handed to plain gradient descent as the gradient of a linear loss. The value is fitted to the
    paths behind it, by an Adam of the iteration's own.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        ensemble: the models, as the stage that trains them has them; None: those of MOReL.
        unknown_share: of the largest disagreement on the data, above which a step leads into the unknown.
        unknown_penalty: taken from the reward of such a step, which ends its path.
        step_size: length of the natural step, squared, in units of the policy's divergence.
        damping: added to the Fisher matrix's diagonal.
        iterations: of the conjugate gradients.
        discount: g.
        trace: lambda of the advantages.
        log_std: logarithm of the actions' deviation in the beginning.
        least_log_std: below which it does not fall.
        learning_rate: of the value.
        hidden: widths of the policy's hidden (ReLU) layers.
        value_hidden: widths of the value's.
    """

    full_precision = True
    several_processes = False  # paths are those of one process
    usual_steps = 20

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        ensemble: Ensemble | None = None,
        unknown_share: float = 1 / 3,
        unknown_penalty: float = 0.0,
        step_size: float = 0.02,
        damping: float = 1e-3,
        iterations: int = 20,
        discount: float = 0.999,
        trace: float = 0.97,
        log_std: float = -0.25,
        least_log_std: float = -1.0,
        learning_rate: float = 1e-3,
        hidden: Sequence[int] = (64, 64),
        value_hidden: Sequence[int] = (128, 128),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("unknown_share", unknown_share, 0)
        require_range("unknown_penalty", unknown_penalty, 0, closed="[)")
        require_range("step_size", step_size, 0)
        require_range("damping", damping, 0, closed="[)")
        require_range("iterations", iterations, 1, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("trace", trace, 0, 1, closed="[]")
        require_range("log_std", log_std, least_log_std, closed="[)")
        self.unknown_share, self.unknown_penalty = unknown_share, unknown_penalty
        self.step_size, self.damping, self.iterations = step_size, damping, iterations
        self.discount, self.trace = discount, trace
        self.log_std, self.least_log_std = log_std, least_log_std
        self.ensemble = ensemble or Ensemble(4, 4, (512, 512), "relu", probabilistic=False)
        self.ensemble.prepare(observation_dim, self.action_dim)
        self.ensemble.requires_grad_(False)
        self.actor = Actor(TanhMeanGaussian(), observation_dim, self.action_dim, hidden)
        self.value = mlp(observation_dim + 1, value_hidden, 1, nn.ReLU)

    @property
    def members(self) -> int:
        """How many models have paths of their own."""
        return self.ensemble.members

    def setup(self, stage: str) -> None:
        super().setup(stage)
        if stage != "fit":
            return
        packed = self.data.input("dynamics", len(self.ensemble.pack()))
        if packed is not None:
            self.ensemble.unpack(torch.from_numpy(packed))
        weights = list(self.actor.parameters())
        cloned = self.data.input("actor", sum(weight.numel() for weight in weights))
        if cloned is not None:
            vector_to_parameters(torch.from_numpy(cloned), weights)
        self.actor.head.log_std.data.fill_(self.log_std)

    def training_step(self, batch: PathBatch, batch_idx: int) -> Tensor:
        paths = self.paths(batch)
        there = paths.there > 0
        values, found = self._advantages(paths)
        states, actions, gains = paths.states[there], paths.actions[there], found[there]
        step = self._natural_step(states, actions, (gains - gains.mean()) / (gains.std() + 1e-8))
        self._fit_value(paths, there, values + found)
        loss = -torch.cat([weight.flatten() for weight in self.actor.parameters()]) @ step
        self.log_now_and_then(
            loss,
            lambda: {
                "model_return": (paths.rewards * paths.there).sum(0).mean(),
                "model_length": paths.there.sum(0).mean(),
                "cut": paths.cut,
                "deviation": torch.exp(self.actor.head.log_std).mean(),
                **value_range(values[there]),
            },
        )
        return loss

    @torch.no_grad()
    def paths(self, batch: PathBatch) -> Paths:
        """Paths of the policy, some in each member, until the environment's rule, disagreement or the horizon ends
        them."""
        batches = self.data.batches
        assert isinstance(batches, PathBatches)
        horizon, count = batch.noise.shape[:2]
        member = torch.arange(count, device=self.device) // (count // self.members)
        states = batch.starts.new_zeros(horizon, count, self.observation_dim)
        actions = torch.zeros_like(batch.noise)
        rewards, there, ended = (batch.starts.new_zeros(horizon, count) for _ in range(3))
        cut, observations = batch.starts.new_zeros(count), batch.starts.clone()
        going = torch.arange(count, device=self.device)
        deviation = torch.exp(self.actor.head.log_std)
        for step in range(horizon):
            standardised = self.standardise(observations[going])
            drawn = self.actor(standardised) + deviation * batch.noise[step, going]
            means, _ = self.ensemble.predict(standardised, drawn.clamp(-1, 1))
            outcomes = means[member[going], torch.arange(len(going), device=self.device)]
            nexts = observations[going] + outcomes[:, 1:]
            strange = unknown(disagreement(means[..., 1:]), self.ensemble.largest_disagreement, self.unknown_share)
            stops = strange | batches.ended(nexts)
            states[step, going], actions[step, going] = standardised, drawn
            rewards[step, going] = outcomes[:, 0] - self.unknown_penalty * strange
            there[step, going], ended[step, going] = 1.0, stops.float()
            observations[going] = nexts
            cut[going[strange]] = 1.0
            going = going[~stops]
            if not len(going):
                break
        steps = slice(0, step + 1)
        last = self.standardise(observations)
        return Paths(states[steps], actions[steps], rewards[steps], there[steps], ended[steps], last, cut.mean())

    def values_at(self, states: Tensor, steps: Tensor) -> Tensor:
        """V at standardised states, so many steps behind the beginning.

        In units of what a deviation of the reward is worth over the steps that an advantage looks at: a first guess is
        then off by little even where the unknown ends paths after a few steps.
        """
        inputs = torch.cat([states, (steps / self._horizon).expand(states.shape[:-1])[..., None]], -1)
        values: Tensor = self.value(inputs).squeeze(-1)
        return values

    @property
    def _horizon(self) -> int:
        batches = self.data.batches
        assert isinstance(batches, PathBatches)
        return batches.horizon

    @property
    def _scale(self) -> Tensor:
        return self.ensemble.targets.std[0] / (1 - self.discount * self.trace)

    @torch.no_grad()
    def _advantages(self, paths: Paths) -> tuple[Tensor, Tensor]:
        """V(s_t), and the advantages; both in the data's units."""
        steps = torch.arange(len(paths.states), device=self.device, dtype=torch.float32)[:, None]
        values = self._scale * self.values_at(paths.states, steps)
        lengths = paths.there.sum(0)
        last_values = self._scale * self.values_at(paths.last_states, lengths)
        going = torch.zeros_like(paths.there)
        going[:-1] = paths.there[1:]
        behind = torch.zeros_like(values)
        behind[:-1] = values[1:]
        behind = torch.where(going > 0, behind, last_values) * (1 - paths.ended)
        found = advantages(paths.rewards, values, self.discount * behind, going, self.discount * self.trace)
        return values, found

    def _natural_step(self, states: Tensor, actions: Tensor, gains: Tensor) -> Tensor:
        """What is added to the actor's weights, as one vector."""
        weights = list(self.actor.parameters())
        likelihoods = -self.actor.losses(states, actions)
        gradient = _flat(torch.autograd.grad((likelihoods * gains).mean(), weights))
        means, log_std = self.actor(states), self.actor.head.log_std
        divergence = gaussian_divergence(means, log_std, means.detach(), log_std.detach()).mean()
        first = _flat(torch.autograd.grad(divergence, weights, create_graph=True))

        def product(vector: Tensor) -> Tensor:
            second = torch.autograd.grad(first @ vector, weights, retain_graph=True)
            return _flat(second) + self.damping * vector

        return natural_step(gradient, conjugate_gradient(product, gradient, self.iterations), self.step_size)

    def _fit_value(self, paths: Paths, there: Tensor, returns: Tensor) -> None:
        """One pass of regression on the returns of all steps."""
        steps = torch.arange(len(there), device=self.device, dtype=torch.float32)[:, None].expand_as(paths.there)
        states, steps, targets = paths.states[there], steps[there], (returns / self._scale)[there]
        generator = self.data.generator_of("value").at(self.global_step)
        order = torch.randperm(len(states), generator=generator).to(self.device)
        adam = torch.optim.Adam(self.value.parameters(), lr=self.learning_rate, fused=True)
        for rows in torch.split(order, _FIT_ROWS):
            loss = (self.values_at(states[rows], steps[rows]) - targets[rows]).square().mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        adam.zero_grad()

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        self.actor.head.log_std.data.clamp_(min=self.least_log_std)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.actor.parameters(), lr=1.0)


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])
