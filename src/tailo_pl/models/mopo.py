"""MOPO: soft actor-critic in a learnt model whose reward is lowered where the model is unsure (Yu et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tailo_pl.data.batches import RolloutBatch, RolloutBatches, RolloutDraws
from tailo_pl.errors import UserError, require_range
from tailo_pl.losses.dynamics import largest_deviation, penalised
from tailo_pl.losses.sac import soft_values, temperature_terms
from tailo_pl.losses.td3 import critic_terms, td_target
from tailo_pl.models.actor import Actor
from tailo_pl.models.critics import TwinCritics
from tailo_pl.models.ensemble import Ensemble
from tailo_pl.models.heads import ClippedGaussian, SquashedGaussian
from tailo_pl.models.networks import follower_of, frozen, move_towards
from tailo_pl.models.policy import PolicyModule
from tailo_pl.models.stage import value_range


class MOPO(PolicyModule):
    """Every so many steps the policy acts in the model, from recorded states; it learns from these rows and some real.

    Which rows the model has made follows from the policies that acted and from draws of the rollouts' number: a
    checkpoint holds the policies, and a run that goes on makes the rows anew.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        ensemble: the models, as the stage that trains them has them; they must be probabilistic.
        penalty: lambda: how much of the models' deviation is taken from the reward.
        length: steps of a rollout.
        rollouts: how many begin together.
        every: steps between rollouts.
        kept: how many times `every` steps the rows of a rollout are learnt from.
        discount: g.
        target_rate: how fast the target critics follow.
        target_entropy: that the temperature holds the policy to.
        head: what is made of the actor's numbers; None: a clipped Gaussian.
        learning_rate: Adam's step size, for all.
        schedule: `constant` learning rate, or `cosine` decay to zero at the last step.
        averaging: decay of an exponential average of the actor, which then acts, but not in the model; 0: none.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True
    several_processes = False  # the rows that the model makes are those of one process
    actors: Tensor

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        ensemble: Ensemble | None = None,
        penalty: float = 1.0,
        length: int = 5,
        rollouts: int = 50_000,
        every: int = 1_000,
        kept: int = 5,
        discount: float = 0.99,
        target_rate: float = 0.005,
        target_entropy: float = -3.0,
        head: SquashedGaussian | None = None,
        learning_rate: float = 3e-4,
        schedule: Literal["constant", "cosine"] = "constant",
        averaging: float = 0.0,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("penalty", penalty, 0, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("target_rate", target_rate, 0, 1, closed="(]")
        require_range("averaging", averaging, 0, 1, closed="[)")
        for name, count in (("length", length), ("rollouts", rollouts), ("every", every), ("kept", kept)):
            require_range(name, count, 1, closed="[)")
        self.penalty = penalty
        self.length, self.rollouts, self.every, self.kept = length, rollouts, every, kept
        self.discount = discount
        self.target_rate = target_rate
        self.target_entropy = target_entropy
        self.ensemble = ensemble or Ensemble()
        if not self.ensemble.probabilistic:
            raise UserError("ensemble.probabilistic: false given, expected true: the penalty is the models' deviation")
        self.ensemble.prepare(observation_dim, self.action_dim)
        self.ensemble.requires_grad_(False)
        self.actor = Actor(head or ClippedGaussian(9.0), observation_dim, self.action_dim, hidden)
        self.schedule = schedule
        self.averaging = averaging
        self.average = follower_of(self.actor) if averaging else None
        self.critics = TwinCritics(observation_dim, self.action_dim, hidden)
        self.target_critics = follower_of(self.critics)
        self.log_temperature = nn.Parameter(torch.zeros(()))
        self.register_buffer("actors", torch.zeros(kept, len(parameters_to_vector(self.actor.parameters()))))
        self._made: dict[int, Tensor] = {}  # rows that the model made, by the number of the rollouts
        self._rows = torch.empty(0)  # all of them

    @property
    def acting(self) -> nn.Module:
        return self.average or self.actor

    def setup(self, stage: str) -> None:
        super().setup(stage)
        if stage == "fit":
            packed = self.data.input("dynamics", len(self.ensemble.pack()))
            if packed is not None:
                self.ensemble.unpack(torch.from_numpy(packed))

    @property
    def _batches(self) -> RolloutBatches:
        batches = self.data.batches
        assert isinstance(batches, RolloutBatches)
        return batches

    def training_step(self, batch: RolloutBatch, batch_idx: int) -> Tensor:
        made = self._model_rows()
        places = (batch.places * len(made)).long().clamp_(max=len(made) - 1)
        widths = [self.observation_dim, self.action_dim, 1, self.observation_dim, 1]
        observations, actions, rewards, nexts, done = torch.split(
            torch.cat([self._real(batch), made[places]]), widths, 1
        )
        states, next_states = self.standardise(observations), self.standardise(nexts)

        temperature = torch.exp(self.log_temperature).detach()
        with torch.no_grad():
            following, likelihoods = self.actor.head.drawn(self.actor.outputs(next_states), batch.noise[1])
            believed = torch.minimum(*self.target_critics(next_states, following))
            next_values = soft_values(believed, likelihoods, temperature)
        target = td_target(rewards[:, 0], done[:, 0], next_values, self.discount)
        estimates = self.critics(states, actions)
        critic_loss = critic_terms(estimates, target).mean()

        drawn, likelihoods = self.actor.head.drawn(self.actor.outputs(states), batch.noise[0])
        with frozen(self.critics):
            values = torch.minimum(*self.critics(states, drawn))
        actor_loss = -soft_values(values, likelihoods, temperature).mean()
        temperature_loss = temperature_terms(self.log_temperature, likelihoods, self.target_entropy).mean()
        loss = critic_loss + actor_loss + temperature_loss
        self.log_now_and_then(
            loss,
            lambda: {
                "critic_loss": critic_loss,
                "actor_loss": actor_loss,
                "temperature": temperature,
                "model_reward": made[:, self.observation_dim + self.action_dim].mean(),
                **value_range(estimates[0]),
            },
        )
        return loss

    def _real(self, batch: RolloutBatch) -> Tensor:
        """The recorded rows with their actions in [-1, 1], as those of the model."""
        real, span = batch.real, slice(self.observation_dim, self.observation_dim + self.action_dim)
        return torch.cat([real[:, : span.start], self.bounds.normalise(real[:, span]), real[:, span.stop :]], 1)

    def _model_rows(self) -> Tensor:
        """What the model has made that counts at this step; made where it is not there."""
        number = self.global_step // self.every
        if number not in self._made:
            if self.global_step % self.every == 0:
                self.actors[number % self.kept] = parameters_to_vector(self.actor.parameters()).detach()
            counting = range(max(0, number - self.kept + 1), number + 1)
            self._made = {one: self._made[one] if one in self._made else self._roll_out(one) for one in counting}
            self._rows = torch.cat(list(self._made.values()))
        return self._rows

    @torch.no_grad()
    def _roll_out(self, number: int) -> Tensor:
        """The rows of the rollouts of this number, by the policy that was there then."""
        actor = follower_of(self.actor)
        vector_to_parameters(self.actors[number % self.kept], actor.parameters())
        draws = self._batches.draws(number, self.rollouts, self.length)
        return torch.cat(self._steps(actor, RolloutDraws(*(one.to(self.device) for one in draws))))

    def _steps(self, actor: Actor[SquashedGaussian], draws: RolloutDraws) -> list[Tensor]:
        observations, going = draws.starts, torch.arange(len(draws.starts), device=self.device)
        steps = []
        for step in range(self.length):
            states = self.standardise(observations)
            actions, _ = actor.head.drawn(actor.outputs(states), draws.actions[step, going])
            means, deviations = self.ensemble.predict(states, actions)
            assert deviations is not None
            best = self.ensemble.chosen[(draws.members[step, going] * self.ensemble.best).long()]
            rows = torch.arange(len(going), device=self.device)
            outcomes = means[best, rows] + deviations[best, rows] * draws.outcomes[step, going]
            rewards = penalised(outcomes[:, 0], largest_deviation(deviations), self.penalty)
            nexts = observations + outcomes[:, 1:]
            ended = self._batches.ended(nexts)
            steps.append(torch.cat([observations, actions, rewards[:, None], nexts, ended[:, None].float()], 1))
            observations, going = nexts[~ended], going[~ended]
        return steps

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        move_towards(self.target_critics, self.critics, self.target_rate)
        if self.average is not None:  # here, so that a step and its average are never apart in a checkpoint
            move_towards(self.average, self.actor, self.average_rate(self.averaging, self.global_step))

    def configure_optimizers(self) -> Any:
        trained = [*self.actor.parameters(), *self.critics.parameters(), self.log_temperature]
        adam = torch.optim.Adam(trained, lr=self.learning_rate, fused=True)
        return self.falling_rates(adam, [self.schedule == "cosine"])
