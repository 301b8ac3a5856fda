"""PUDiscriminator: tells the expert's states from the rest, learning from positives and unlabelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from tailo_pl.data.batches import PairBatch
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range
from tailo_pl.losses.discriminator import (
    LogitTerms,
    Objective,
    discriminator_loss,
    interpolate,
    lipschitz_terms,
    logit_terms,
)
from tailo_pl.models.networks import mlp, network_gradients, with_absorbing
from tailo_pl.models.reduction import batch_means
from tailo_pl.models.stage import StageModule

_BEST = 100  # the step of TA with so many that score higher: what TA comes to, whatever a few outliers do


class PUDiscriminator(StageModule):
    """c(s) = sigmoid(D(s)): is this a state the expert visits? The score R(s) = log c/(1-c) is the logit D(s) itself.

    Args:
        observation_dim: numbers in a state.
        objective: `debiased` (PU loss with its max), `debiased_unbounded` (without: ablation), `cross_entropy`
            (everything that is not TS is negative), `mixed` (beta_2*debiased + (1-beta_2)*cross_entropy).
        eta_p: assumed share of expert states among the unlabelled, in (0, 1).
        beta_2: weight of the debiased loss in `mixed`, in [0, 1]: 0 when TS and TA share a body, 1 when they differ.
        lipschitz: weight lambda of the penalty (||grad D|| - 1)^2 between the two sides; 0 switches it off.
        learning_rate: Adam's step size.
        absorbing: states have one more number, 1 for the absorbing state behind the end of an episode, 0 for all
            others; the data then draw it too.
        hidden: widths of the hidden (tanh) layers.
        dimensions: which numbers of a state it looks at; None: all.
    """

    compilable = True
    dimensions: Tensor

    def __init__(
        self,
        observation_dim: int,
        objective: Objective = "debiased",
        eta_p: float = 0.2,
        beta_2: float = 0.0,
        lipschitz: float = 10.0,
        learning_rate: float = 3e-4,
        absorbing: bool = False,
        hidden: Sequence[int] = (256, 256),
        dimensions: Sequence[int] | None = None,
    ) -> None:
        super().__init__(observation_dim, learning_rate)
        require_range("eta_p", eta_p, 0, 1)
        require_range("beta_2", beta_2, 0, 1, closed="[]")
        require_range("lipschitz", lipschitz, 0, closed="[)")
        self.objective = objective
        self.eta_p = eta_p
        self.beta_2 = beta_2
        self.lipschitz = lipschitz
        self.absorbing = absorbing
        seen = range(observation_dim) if dimensions is None else dimensions
        if not seen or len(set(seen)) < len(seen) or not set(seen) <= set(range(observation_dim)):
            raise UserError(
                f"dimensions: {list(seen)} given, expected different numbers from 0 to {observation_dim - 1}"
            )
        self._all = dimensions is None
        self.register_buffer("dimensions", torch.tensor(list(seen)), persistent=False)
        self.network = mlp(len(seen) + absorbing, hidden, 1, nn.Tanh)

    def forward(self, states: Tensor) -> Tensor:
        """Logits D(s) of raw states."""
        logits: Tensor = self.network(self._inputs(states, None))
        return logits.squeeze(-1)

    def _inputs(self, states: Tensor, absorbing: Tensor | None) -> Tensor:
        """What the network sees of raw states; `absorbing` marks rows that stand for the absorbing state."""
        states = self.standardise(states)
        if not self._all:
            states = states.index_select(-1, self.dimensions)
        return with_absorbing(states, absorbing) if self.absorbing else states

    def row_losses(self, batch: PairBatch) -> tuple[list[Tensor], Tensor, Tensor]:
        """The terms of the loss and the penalty of each row; then the logits of both sides."""
        ts, u = self._inputs(batch.ts, batch.ts_absorbing), self._inputs(batch.u, batch.u_absorbing)
        logits_ts, logits_u = self.network(torch.cat([ts, u])).squeeze(-1).float().split([len(ts), len(u)])
        rows = list(logit_terms(logits_ts, logits_u))
        if self.lipschitz > 0:
            rows.append(lipschitz_terms(self._input_gradients(interpolate(ts, u, batch.mix))))
        return rows, logits_ts, logits_u

    def training_step(self, batch: PairBatch, batch_idx: int) -> Tensor:
        rows, logits_ts, logits_u = self.row_losses(batch)
        # The max of the debiased loss is not linear in these means, so they are taken over the global batch first.
        means = batch_means(rows, [batch.size] * len(rows))
        terms = LogitTerms(*means[:3])
        loss = discriminator_loss(terms, self.objective, eta_p=self.eta_p, beta_2=self.beta_2)
        penalty = {"penalty": means[3]} if self.lipschitz > 0 else {}
        total = loss + self.lipschitz * means[3] if penalty else loss
        self.log_now_and_then(
            total,
            lambda: {"loss": loss, "logit_ts": logits_ts.mean(), "logit_u": logits_u.mean(), **penalty},
        )
        return total

    def _input_gradients(self, points: Tensor) -> Tensor:
        """grad_x D(x), in float32: the penalty's curvature is below what half precision resolves."""
        with torch.autocast(points.device.type, enabled=False):
            return network_gradients(self.network, points.float())

    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        """R(s) of every step of TA, and of the absorbing state where there is one."""
        outputs: dict[str, NDArray[Any]] = {"scores": self.scores(task.ta)}
        if self.absorbing:
            with torch.inference_mode():
                state = torch.zeros(1, len(self.dimensions), device=self.device)
                logit = self.network(with_absorbing(state, torch.ones(1, device=self.device)))[0]
            outputs["absorbing_score"] = logit.float().cpu().numpy()
        return outputs

    def quality(self, task: Task, outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """How well TS and TA are told apart. TA may hold expert states too, so perfect separation is not expected.

        Returns:
            `auroc`: probability that a state of TS scores higher than one of TA; `ts_score`, `ta_score`: their mean
            scores; `ta_share`: share of TA's trajectories whose mean score is above 0, taken for the expert's; `reach`:
            how far TA's best steps come from TA's mean score to TS's, 1 being all the way.
        """
        ts, ta = np.sort(self.scores(task.ts)), outputs["scores"]
        some = ta[:: 1 + len(ta) // 1_000_000]
        # Ranks of TA's scores among those of TS; ties count half.
        ranks = [np.searchsorted(ts, some, side=side).mean() for side in ("left", "right")]
        count = min(_BEST, len(some))
        best, middle, top = np.partition(some, -count)[-count], ta.mean(dtype=np.float64), ts.mean(dtype=np.float64)
        return {
            "auroc": float(1 - np.mean(ranks) / len(ts)),
            "ts_score": float(top),
            "ta_score": float(middle),
            "ta_share": float((task.ta.mean(ta) > 0).mean()),
            "reach": float((best - middle) / max(top - middle, 1e-9)),
        }

    def scores(self, trajectories: Trajectories, batch: int = 1 << 12) -> NDArray[np.float32]:
        """R(s) = D(s) of every kept step, a batch of rows at a time: so few that hidden layers stay in the cache."""
        scores = np.empty(trajectories.steps, dtype=np.float32)
        done = 0
        with torch.inference_mode():
            for chunk in trajectories.chunks(trajectories.recording.observations):
                for begin in range(0, len(chunk), batch):
                    states = torch.from_numpy(chunk[begin : begin + batch]).to(self.device, torch.float32)
                    scores[done : done + len(states)] = self(states).float().cpu().numpy()
                    done += len(states)
        return scores

    def configure_optimizers(self) -> Optimizer:
        return torch.optim.Adam(self.network.parameters(), lr=self.learning_rate, fused=True)
