"""What heads do where logs disagree: an obstacle that some pass on one side and some on the other."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from numpy.typing import NDArray
from torch import nn

from tailo_pl.models.heads import Gaussian, Head, Mixture, Regression

from .canvas import ACCENT, OTHER, PALE, panels, save

STEPS, LOGS, EPISODES = 60, 100, 40
LARGEST = 0.1  # of an action
FORWARD, SWERVE = 0.04, 0.08  # of a step
RADIUS, AROUND = 0.25, 0.45  # of the obstacle, and how far beside it logs pass


def obstacle() -> None:
    """Logs, and where a small network goes that cloned them with each head."""
    random = np.random.default_rng(0)
    logs = [_log(random, side) for side in (-1, 1) for _ in range(LOGS // 2)]
    heads = {"regression": Regression(), "gaussian": Gaussian("squashed"), "mixture": Mixture(Regression())}
    figure, axes = panels(1 + len(heads), 2.1)
    for path, _ in logs[:: LOGS // EPISODES]:
        axes[0].plot(*path.T, color=PALE, linewidth=0.8)
    _finish(axes[0], f"{LOGS} logs")
    states, actions = (torch.tensor(np.concatenate(one), dtype=torch.float32) for one in zip(*logs, strict=True))
    for axis, (name, head) in zip(axes[1:], heads.items(), strict=True):
        network = _cloned(head, states, actions)
        state = torch.tensor(np.stack([_start(random) for _ in range(EPISODES)]), dtype=torch.float32)
        paths = [state]
        with torch.no_grad():
            for _ in range(STEPS):
                state = state + LARGEST * head.act(network(state))
                paths.append(state)
        went = torch.stack(paths, 1).numpy()
        hit = (np.linalg.norm(went, axis=2) < RADIUS).any(1)
        for path, bad in zip(went, hit, strict=True):
            axis.plot(*path.T, color=OTHER if bad else ACCENT, linewidth=0.8)
        _finish(axis, f"{name}: {hit.sum()} of {EPISODES} hit it")
    save(figure, "heads.png")


def _cloned(head: Head, states: torch.Tensor, actions: torch.Tensor, steps: int = 600) -> nn.Module:
    torch.manual_seed(0)
    head.prepare(actions.shape[1])
    network = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, head.width(actions.shape[1]))
    )
    adam = torch.optim.Adam([*network.parameters(), *head.parameters()], 3e-3)
    for _ in range(steps):
        rows = torch.randint(len(states), (128,))
        loss = head.losses(network(states[rows]), actions[rows] / LARGEST).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return network


def _start(random: np.random.Generator) -> NDArray[np.float64]:
    return np.array([-1.2, random.normal(0, 0.03)])


def _log(random: np.random.Generator, side: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Straight on, aside somewhere before the obstacle, and on beside it."""
    state, turn = _start(random), random.uniform(-0.9, -0.5)
    states, actions = [], []
    for _ in range(STEPS):
        aside = np.clip(side * AROUND - state[1], -SWERVE, SWERVE) if state[0] > turn else 0.0
        action = np.array([FORWARD, aside]) + random.normal(0, 0.003, 2)
        states.append(state)
        actions.append(action)
        state = state + action
    return np.array(states), np.array(actions)


def _finish(axis: Axes, title: str) -> None:
    axis.add_patch(Circle((0, 0), RADIUS, color="#444444"))
    axis.set_aspect("equal")
    axis.set(xlim=(-1.25, 1.2), ylim=(-0.8, 0.8))
    axis.set_title(title, fontsize=9)
