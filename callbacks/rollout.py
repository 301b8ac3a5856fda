"""RolloutScore: what the policy is worth in its environment."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from torchmetrics import CatMetric

from tailo_pl.envs.environment import Environment
from tailo_pl.envs.evaluation import Episodes, Evaluation, episode_seeds, run_episodes, summarise
from tailo_pl.errors import require_range
from tailo_pl.models.acting import actor
from tailo_pl.models.policy import PolicyModule


class RolloutScore(Callback):
    """Plays deterministic episodes every N steps and when training ends, and logs score, return, length, success.

    Episodes have seeds of their own and the policy acts without randomness, so training is bit-identical with and
    without this callback. Under DDP each rank plays its share.

    Args:
        environment: where to play.
        every_n_steps: steps between evaluations; 0 evaluates only at the end.
        episodes: episodes per evaluation, all ranks together.
        seed: decides the episodes' initial states, the same at every evaluation.
    """

    modules: ClassVar[type[LightningModule]] = PolicyModule
    plays: ClassVar[bool] = True  # for modules that act
    needs: ClassVar[tuple[str, ...]] = ("environment", "seed")

    def __init__(self, environment: Environment, every_n_steps: int = 0, episodes: int = 10, seed: int = 0) -> None:
        require_range("rollout.every_n_steps", every_n_steps, 0, closed="[)")
        require_range("rollout.episodes", episodes, 1, closed="[)")
        self._environment = environment
        self._every = every_n_steps
        self._seeds = episode_seeds(seed, "rollout", episodes)
        self._simulator: Any = None
        self._metrics = [CatMetric(nan_strategy="disable") for _ in Episodes._fields]
        self.history: list[Evaluation] = []
        self._ended = False

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._ended = False
        if self._every and trainer.global_step % self._every == 0 and trainer.global_step < trainer.max_steps:
            self._evaluate(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self._ended:  # a stage that stopped early and was killed before it was recorded ends a second time
            self._evaluate(trainer, pl_module)
            self._ended = True

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._close()  # Lightning calls no teardown then

    def _close(self) -> None:
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None

    def planned(self, steps: int) -> list[int]:
        """The steps at which a training of so many steps evaluates."""
        every = self._every or steps
        return [*range(every, steps, every), steps]

    @property
    def episodes(self) -> int:
        """Episodes per evaluation."""
        return len(self._seeds)

    def state_dict(self) -> dict[str, Any]:
        return {"history": [asdict(evaluation) for evaluation in self.history], "ended": self._ended}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = [Evaluation(**evaluation) for evaluation in state_dict["history"]]
        self._ended = state_dict["ended"]

    def _evaluate(self, trainer: Trainer, policy: LightningModule) -> None:
        seeds = self._seeds[trainer.global_rank :: trainer.world_size]
        if self._simulator is None and len(seeds):
            self._simulator = self._environment.simulator(min(len(seeds), self._environment.rows))
        if len(seeds):
            played = run_episodes(self._simulator, actor(policy), seeds, self._environment)
            for metric, values in zip(self._metrics, played, strict=True):
                metric.to(policy.device)
                metric.update(torch.from_numpy(values.astype(np.float64).ravel()))
        returns, lengths, terminated, success, reached = map(_gathered, self._metrics)
        for metric in self._metrics:
            metric.reset()
        steps = reached.astype(np.int64).reshape(len(returns), len(self._environment.subtasks))
        episodes = Episodes(returns, lengths.astype(np.int64), terminated.astype(bool), success.astype(bool), steps)
        evaluation = summarise(episodes, self._environment, trainer.global_step)
        self.history.append(evaluation)
        numbers = {
            "score": evaluation.score,
            "score_std": evaluation.score_std,
            "return": evaluation.mean_return,
            "length": evaluation.mean_length,
            "success": evaluation.success,
        }
        logged = {f"rollout/{name}": value for name, value in numbers.items() if value is not None}
        for logger in trainer.loggers:
            logger.log_metrics(logged, step=trainer.global_step)


def _gathered(metric: CatMetric) -> NDArray[np.float64]:
    """The values of all ranks; a metric that was told nothing has none."""
    values = metric.compute()
    return np.atleast_1d(values.cpu().double().numpy()) if isinstance(values, torch.Tensor) else np.empty(0)
