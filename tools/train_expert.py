"""Train a policy of the package again, or a new one: TRPO or TD3 on a locomotion task, in any of its bodies.

    python tools/train_expert.py hopper
    python tools/train_expert.py halfcheetah --body half-torso --steps 450000
    python tools/train_expert.py ant --body crippled-leg --start --steps 2000000    # goes on from the package's policy
    python tools/train_expert.py halfcheetah --body half-torso --start --rows 8     # eight steps for one of learning

needs the extra `[experts]`. A run lives in `<out>/<task>-<body>-<algorithm>-seed<seed>`:

    policies/<steps>.npz   every policy evaluated on the way (an early one makes a medium policy)
    best.npz               the one with the highest mean return
    save-<steps>/          what training needs to go on; only the newest is kept

Started again with the same command, a run goes on from its last save; a run that was killed loses at most what came
after that. No save needs to be unpickled.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

# One core per run: two runs side by side use two cores better than one run with two threads does. jax reads this once.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from tailo_pl.envs.bodies import STOCK, TASKS, bodies
from tailo_pl.envs.evaluation import run_episodes
from tailo_pl.envs.locomotion import LocomotionRows
from tailo_pl.experts import CLIPPED, SQUASHED, NpzPolicy, load_expert

ALGORITHM = {"ant": "trpo", "halfcheetah": "td3", "hopper": "trpo", "walker2d": "trpo"}
STEPS = {"ant": 1_500_000, "halfcheetah": 475_000, "hopper": 300_000, "walker2d": 1_300_000}
EPISODES = 10
EVALUATION_SEED = 1_000_000  # far from any seed training draws first


@dataclass(frozen=True)
class Evaluation:
    """How good the policy was after so many steps."""

    steps: int
    return_mean: float
    return_std: float


class LocomotionVecEnv(VecEnv):
    """`LocomotionRows` as Stable-Baselines3 wants it: finished rows start again by themselves."""

    def __init__(self, simulator: LocomotionRows, seed: int) -> None:
        self._simulator = simulator
        self._rows = np.arange(simulator.rows)
        self._rng = np.random.default_rng(seed)
        self._actions: NDArray[np.float32]
        low, high = (bound.astype(np.float32) for bound in (simulator.action_low, simulator.action_high))
        super().__init__(
            simulator.rows,
            spaces.Box(-np.inf, np.inf, (simulator.observation_dim,), np.float32),
            spaces.Box(low, high, dtype=np.float32),
        )

    def _restart(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        observations = self._simulator.reset(rows, self._rng.integers(2**31, size=len(rows)))
        return observations.astype(np.float32)

    def reset(self) -> NDArray[np.float32]:
        return self._restart(self._rows)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        step = self._simulator.step(self._rows, self._actions)
        observations = step.observations.astype(np.float32)
        done = step.terminated | step.truncated
        infos: list[dict[str, Any]] = [{} for _ in self._rows]
        for row in np.flatnonzero(done):
            timed_out = bool(step.truncated[row] and not step.terminated[row])
            infos[row] = {"terminal_observation": observations[row].copy(), "TimeLimit.truncated": timed_out}
        observations[done] = self._restart(np.flatnonzero(done))
        return observations, step.rewards.astype(np.float32), done, infos

    def close(self) -> None:
        self._simulator.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Learner(Protocol):
    """An algorithm in training. A resumed one starts new episodes and new random streams, seeded by its steps."""

    @property
    def steps(self) -> int:
        """Environment steps taken so far."""
        ...

    def learn(self, steps: int) -> None:
        """Train for about so many steps more."""
        ...

    def policy(self) -> NpzPolicy:
        """The policy as it is now."""
        ...

    def save(self, folder: Path) -> None:
        """Write all that `__init__` needs to go on from here."""
        ...


KNOWN_STEPS = 1e6  # that the standardisation of a policy to start with counts as


class TRPOLearner:
    """TRPO on standardised observations, in several environments side by side."""

    _LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")

    def __init__(
        self, task: str, body: str, seed: int, steps: int, rows: int, saved: Path | None, start: NpzPolicy | None = None
    ) -> None:
        from sb3_contrib import TRPO

        torch.set_num_threads(1)
        self._env = VecNormalize(
            VecMonitor(LocomotionVecEnv(LocomotionRows(task, rows, body=body, threads=1), seed + steps)), gamma=0.99
        )
        self._model = TRPO(
            "MlpPolicy",
            self._env,
            n_steps=1024,
            batch_size=128,
            learning_rate=1e-3,
            gamma=0.99,
            gae_lambda=0.95,
            cg_max_steps=25,
            cg_damping=0.1,
            n_critic_updates=20,
            sub_sampling_factor=1,
            target_kl=0.02,
            policy_kwargs={"net_arch": {"pi": [128, 128], "vf": [128, 128]}, "activation_fn": torch.nn.Tanh},
            seed=seed + steps,
            device="cpu",
        )
        if saved is not None:
            self._model.num_timesteps = steps
            state = torch.load(saved / "networks.pt", weights_only=True)
            self._model.policy.load_state_dict(state["policy"])
            self._model.policy.optimizer.load_state_dict(state["optimizer"])
            with np.load(saved / "statistics.npz", allow_pickle=False) as statistics:
                for name, of in self._running_statistics().items():
                    of.mean, of.var = statistics[f"{name}_mean"], statistics[f"{name}_var"]
                    of.count = float(statistics[f"{name}_count"])
        elif start is not None:
            self._begin_with(start)

    def _begin_with(self, start: NpzPolicy) -> None:
        """Take over a policy with its standardisation and noise; the value is learnt anew."""
        layers = zip(self._LAYERS, start.weights, start.biases, strict=True)
        known = {"log_std": torch.from_numpy(np.log(start.noise_std))}
        for layer, weight, bias in layers:
            known |= {f"{layer}.weight": torch.from_numpy(weight.T.copy()), f"{layer}.bias": torch.from_numpy(bias)}
        self._model.policy.load_state_dict({**self._model.policy.state_dict(), **known})
        statistics: Any = self._env.obs_rms
        statistics.mean = start.obs_mean.astype(np.float64)
        statistics.var = np.maximum(start.obs_std.astype(np.float64) ** 2 - self._env.epsilon, 0.0)
        statistics.count = KNOWN_STEPS

    def _running_statistics(self) -> dict[str, Any]:
        return {"observation": self._env.obs_rms, "return": self._env.ret_rms}

    @property
    def steps(self) -> int:
        return int(self._model.num_timesteps)

    def learn(self, steps: int) -> None:
        self._model.learn(steps, reset_num_timesteps=False)

    def policy(self) -> NpzPolicy:
        state = {name: tensor.numpy().copy() for name, tensor in self._model.policy.state_dict().items()}
        layers = self._LAYERS
        statistics: Any = self._env.obs_rms
        return NpzPolicy(
            kind=CLIPPED,
            weights=tuple(state[f"{layer}.weight"].T for layer in layers),
            biases=tuple(state[f"{layer}.bias"] for layer in layers),
            obs_mean=statistics.mean.astype(np.float32),
            obs_std=np.sqrt(statistics.var + self._env.epsilon).astype(np.float32),
            noise_std=np.exp(state["log_std"]),
        )

    def save(self, folder: Path) -> None:
        policy = self._model.policy
        state = {"policy": policy.state_dict(), "optimizer": policy.optimizer.state_dict()}
        torch.save(state, folder / "networks.pt")
        statistics = {
            f"{name}_{part}": np.asarray(getattr(of, part))
            for name, of in self._running_statistics().items()
            for part in ("mean", "var", "count")
        }
        np.savez(folder / "statistics.npz", allow_pickle=False, **statistics)


class TD3Learner:
    """TD3 with Gaussian exploration noise; it learns once for a step of all environments."""

    NOISE = 0.1
    CRITIC_FIRST = 25_000  # updates in which a policy to start with stays as it is: its critic knows nothing yet
    _BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")

    def __init__(
        self, task: str, body: str, seed: int, steps: int, rows: int, saved: Path | None, start: NpzPolicy | None = None
    ) -> None:
        import jax
        from sbx import TD3
        from stable_baselines3.common.noise import NormalActionNoise

        simulator = LocomotionRows(task, rows, body=body, threads=1)
        actions = simulator.action_dim
        self._model = TD3(
            "MlpPolicy",
            VecMonitor(LocomotionVecEnv(simulator, seed + steps)),
            learning_starts=10_000 if start is None else 256,
            batch_size=256,
            learning_rate=1e-3,
            action_noise=NormalActionNoise(np.zeros(actions), np.full(actions, self.NOISE)),
            policy_kwargs={"net_arch": [256, 256]},
            seed=seed + steps,
        )
        self._jax, self._waits = jax, self.CRITIC_FIRST * rows if start is not None else 0
        if saved is None and start is not None:
            layers = zip(start.weights, start.biases, strict=True)
            params = {"params": {f"Dense_{i}": {"kernel": w, "bias": b} for i, (w, b) in enumerate(layers)}}
            params = jax.tree.map(jax.numpy.asarray, params)
            state = self._model.policy.actor_state
            self._model.policy.actor_state = state.replace(params=params, target_params=params)
        if saved is not None:
            self._model.num_timesteps = steps
            policy, buffer = self._model.policy, self._replay_buffer()
            structure: Any = jax.tree.structure((policy.actor_state, policy.qf_state))
            with np.load(saved / "networks.npz", allow_pickle=False) as npz:
                leaves = [jax.numpy.asarray(npz[f"leaf{i}"]) for i in range(structure.num_leaves)]
            policy.actor_state, policy.qf_state = jax.tree.unflatten(structure, leaves)
            with np.load(saved / "buffer.npz", allow_pickle=False) as npz:
                for name in self._BUFFER:
                    stored = npz[name]
                    getattr(buffer, name)[: len(stored)] = stored
                buffer.pos, buffer.full = int(npz["pos"]), bool(npz["full"])

    def _replay_buffer(self) -> ReplayBuffer:
        assert self._model.replay_buffer is not None
        return self._model.replay_buffer

    @property
    def steps(self) -> int:
        return int(self._model.num_timesteps)

    def learn(self, steps: int) -> None:
        with self._still_actor() if self.steps < self._waits else nullcontext():
            self._model.learn(steps, reset_num_timesteps=False)

    @contextmanager
    def _still_actor(self) -> Iterator[None]:
        """Meanwhile the actor's updates are zero."""
        import optax

        policy, still = self._model.policy, optax.set_to_zero()
        moving = policy.actor_state
        policy.actor_state = moving.replace(tx=still, opt_state=still.init(moving.params))
        try:
            yield
        finally:
            policy.actor_state = policy.actor_state.replace(tx=moving.tx, opt_state=moving.opt_state)

    def policy(self) -> NpzPolicy:
        layers = self._model.policy.actor_state.params["params"]
        weights = tuple(np.asarray(layers[f"Dense_{i}"]["kernel"]) for i in range(3))
        return NpzPolicy(
            kind=SQUASHED,
            weights=weights,
            biases=tuple(np.asarray(layers[f"Dense_{i}"]["bias"]) for i in range(3)),
            obs_mean=np.zeros(weights[0].shape[0], np.float32),
            obs_std=np.ones(weights[0].shape[0], np.float32),
            noise_std=np.full(weights[-1].shape[1], self.NOISE, np.float32),
        )

    def save(self, folder: Path) -> None:
        policy, buffer = self._model.policy, self._replay_buffer()
        leaves = self._jax.tree.leaves((policy.actor_state, policy.qf_state))
        networks = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        np.savez(folder / "networks.npz", allow_pickle=False, **networks)
        stored = {name: getattr(buffer, name)[: buffer.size()] for name in self._BUFFER}
        np.savez(folder / "buffer.npz", allow_pickle=False, pos=buffer.pos, full=buffer.full, **stored)


LEARNERS: dict[str, Callable[[str, str, int, int, int, Path | None, NpzPolicy | None], Learner]] = {
    "td3": TD3Learner,
    "trpo": TRPOLearner,
}
ROWS = {"td3": 1, "trpo": 4}
"""Environments side by side."""
CHUNK = 25_000
"""Steps of each environment between two evaluations, each followed by a save."""


def newest_save(run: Path) -> tuple[Path | None, list[Evaluation]]:
    """The save to go on from, if there is one, and the evaluations up to it."""
    saves = sorted(run.glob("save-*"), key=lambda folder: int(folder.name.removeprefix("save-")))
    if not saves:
        return None, []
    entries = json.loads((saves[-1] / "evaluations.json").read_text())
    return saves[-1], [Evaluation(**entry) for entry in entries]


def write_save(run: Path, learner: Learner, evaluations: list[Evaluation]) -> None:
    """Write a save under another name first: what is called `save-...` is whole. Then drop the older ones."""
    unfinished = run / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    learner.save(unfinished)
    (unfinished / "evaluations.json").write_text(json.dumps([asdict(e) for e in evaluations], indent=1))
    older = list(run.glob("save-*"))
    unfinished.rename(run / f"save-{learner.steps}")
    for folder in older:
        shutil.rmtree(folder)


def publish_best(run: Path, evaluations: list[Evaluation]) -> Evaluation:
    """Make `best.npz` the policy of the best evaluation that a save knows of."""
    best = max(evaluations, key=lambda e: e.return_mean)
    unfinished = run / "unfinished.npz"
    shutil.copyfile(run / "policies" / f"{best.steps}.npz", unfinished)
    unfinished.replace(run / "best.npz")
    return best


def train(
    task: str, body: str, algorithm: str, steps: int, seed: int, rows: int, run: Path, start: NpzPolicy | None = None
) -> None:
    """Train up to `steps`, going on from the last save in `run`, or beginning with a policy."""
    (run / "policies").mkdir(parents=True, exist_ok=True)
    save, evaluations = newest_save(run)
    taken = evaluations[-1].steps if evaluations else 0
    learner: Learner = LEARNERS[algorithm](task, body, seed, taken, rows, save, start)
    simulator = LocomotionRows(task, EPISODES, body=body, threads=1)
    seeds = EVALUATION_SEED + np.arange(EPISODES)
    began = time.monotonic()
    while learner.steps < steps:
        learner.learn(min(CHUNK * rows, steps - learner.steps))
        policy = learner.policy()
        returns = run_episodes(simulator, policy.act, seeds).returns
        evaluations.append(Evaluation(learner.steps, float(returns.mean()), float(returns.std())))
        policy.save(run / "policies" / f"{learner.steps}.npz")
        write_save(run, learner, evaluations)
        best = publish_best(run, evaluations)
        print(
            f"{run.name}: {learner.steps} steps, {time.monotonic() - began:.0f} s, "
            f"return {returns.mean():.0f} ± {returns.std():.0f}, best {best.return_mean:.0f} at {best.steps}",
            flush=True,
        )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--body", default=STOCK, choices=sorted({body for task in TASKS for body in bodies(task)}))
    parser.add_argument("--algorithm", choices=sorted(LEARNERS), help="default: what the task's expert was trained by")
    parser.add_argument("--steps", type=int, help="environment steps in all; default: as many as the task's expert had")
    parser.add_argument("--start", action="store_true", help="begin with the package's policy of this task and body")
    parser.add_argument("--rows", type=int, help="environments side by side; default: 1 for TD3, 4 for TRPO")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/experts"))
    given = parser.parse_args(argv)
    if given.body not in bodies(given.task):
        parser.error(f"{given.task} has no body {given.body}, only {', '.join(bodies(given.task))}")
    algorithm = given.algorithm or ALGORITHM[given.task]
    run = given.out / f"{given.task}-{given.body}-{algorithm}-seed{given.seed}"
    start = load_expert(given.task if given.body == STOCK else f"{given.task}-{given.body}") if given.start else None
    steps, rows = given.steps or STEPS[given.task], given.rows or ROWS[algorithm]
    train(given.task, given.body, algorithm, steps, given.seed, rows, run, start)


if __name__ == "__main__":
    main()
