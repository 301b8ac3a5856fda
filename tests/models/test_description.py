"""What a module was built with is part of it, of its copies and of its checkpoints; foreign classes are not built."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Trainer

from tailo_pl import load_policy
from tailo_pl.errors import UserError
from tailo_pl.models import (
    DILO,
    DWBC,
    IQL,
    MARWIL,
    MOPO,
    RCE,
    SMODICE,
    TD3BC,
    Ensemble,
    LobsDICE,
    MOReL,
    PUDiscriminator,
    ReCOIL,
    WeightedBCPolicy,
)
from tailo_pl.models.description import Described
from tailo_pl.models.heads import ClippedGaussian, Gaussian, Mixture, Regression
from tailo_pl.models.policy import PolicyModule
from tailo_pl.models.stage import StageModule
from tailo_pl.training.checkpoints import load_checkpoint

pytestmark = pytest.mark.usefixtures("seeded")
SIZES: Any = {"observation_dim": 3, "action_low": [-1.0, 0.0], "action_high": [3.0, 0.5], "hidden": (8, 8)}
POLICIES: dict[str, Callable[[], PolicyModule]] = {
    "tailo": lambda: WeightedBCPolicy(**SIZES, head=Gaussian("censored"), schedule="cosine", averaging=0.9),
    "bc": lambda: WeightedBCPolicy(**SIZES),
    "regression": lambda: WeightedBCPolicy(**SIZES, head=Regression("huber", delta=0.2), norm="layer"),
    "mixture": lambda: WeightedBCPolicy(**SIZES, head=Mixture(Gaussian(), 3), averaging=0.9),
    "members": lambda: WeightedBCPolicy(**SIZES, head=Regression(), norm="layer", members=3, averaging=0.9),
    "smodice": lambda: SMODICE(**SIZES, divergence="chi2", absorbing=True, head=ClippedGaussian(2.0)),
    "lobsdice": lambda: LobsDICE(**SIZES),
    "oril": lambda: TD3BC(**SIZES),
    "rce": lambda: RCE(**SIZES, alpha=1.0),
    "dwbc": lambda: DWBC(**SIZES),
    "marwil": lambda: MARWIL(**SIZES, beta=0.5),
    "otr": lambda: IQL(**SIZES),
    "recoil": lambda: ReCOIL(**SIZES, expert="pairs", temperature=5.0),
    "dilo": lambda: DILO(**SIZES, sharpness=0.1),
    "mopo": lambda: MOPO(**SIZES, ensemble=Ensemble(3, 2, (8,)), kept=2),
    "morel": lambda: MOReL(**SIZES, ensemble=Ensemble(2, 2, (8,), "relu", False), value_hidden=(8,)),
}


class Simple(Described):
    def __init__(self, size: int, names: tuple[str, ...] = ("a",), **others: Any) -> None:
        self.size, self.names, self.others = size, names, others


class Sloppy(Described):
    def __init__(self, *numbers: float) -> None:
        self.numbers = numbers


def saved(module: StageModule, path: Path) -> Path:
    """A checkpoint of a module whose weights are not those it begins with."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        module.standardise.set(torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.5, 1.0]))
    trainer = Trainer(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    trainer.strategy.connect(module)
    trainer.save_checkpoint(path, weights_only=True)
    return path


def changed(path: Path, **entries: Any) -> Path:
    torch.save({**torch.load(path, weights_only=True), **entries}, path)
    return path


@pytest.mark.parametrize("method", POLICIES)
def test_a_checkpoint_of_every_policy_acts_as_the_module(method: str, tmp_path: Path) -> None:
    module = POLICIES[method]().eval()
    path = saved(module, tmp_path / "x.ckpt")
    states = torch.randn(50, 3)
    with torch.no_grad():
        expected = module(states).numpy()
    policy = load_policy(path)
    assert (policy.observation_dim, policy.action_dim) == (3, 2)
    np.testing.assert_array_equal(policy(states.numpy()), expected)
    again = load_checkpoint(path, PolicyModule)
    assert type(again) is type(module) and not again.training and again.description() == module.description()


def test_loading_leaves_the_random_numbers_alone(tmp_path: Path) -> None:
    path = saved(POLICIES["tailo"](), tmp_path / "x.ckpt")
    before = torch.random.get_rng_state()
    load_policy(path)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_description_is_plain_and_whole() -> None:
    module = SMODICE(3, (-1.0,), np.array([1.0]), "chi2", head=ClippedGaussian(2.0), hidden=(8,))  # type: ignore[arg-type]
    assert module.description() == {
        "class_path": "tailo_pl.models.smodice.SMODICE",
        "init_args": {
            "observation_dim": 3,
            "action_low": [-1.0],
            "action_high": [1.0],
            "divergence": "chi2",
            "discount": 0.99,
            "absorbing": False,
            "head": {
                "class_path": "tailo_pl.models.heads.clipped_gaussian.ClippedGaussian",
                "init_args": {"mean_limit": 2.0, "likelihood": "squashed"},
            },
            "entropy_weight": 1.0,
            "learning_rate": 3e-4,
            "value_decay": 1e-4,
            "hidden": [8],
        },
    }
    assert Simple(2, other=np.float32(0.5)).description()["init_args"] == {"size": 2, "names": ["a"], "other": 0.5}


def test_copies_know_it_too() -> None:
    for made in (POLICIES["tailo"](), Gaussian("censored"), Simple(3, other=1)):
        for again in (copy.deepcopy(made), copy.copy(made), pickle.loads(pickle.dumps(made))):
            assert again.description() == made.description()


def test_what_cannot_be_described() -> None:
    with pytest.raises(UserError, match=r"Simple\.other: a function given, expected numbers, text, lists"):
        Simple(1, other=lambda: 0)
    with pytest.raises(UserError, match=r"Sloppy: \(1, 2\) given without names"):
        Sloppy(1, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        Gaussian(sise=1)  # type: ignore[call-arg]


HEAD = "tailo_pl.models.heads.Gaussian"


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"class_path": "subprocess.Popen", "init_args": {"args": ["touch", "owned"]}}, "'subprocess.Popen' given, expected a class of tailo_pl, lightning"),  # noqa: E501
        ({"class_path": "tailo_pl.models.IQL", "init_args": {**SIZES, "hidden": [8], "head": {"class_path": "subprocess.Popen", "init_args": {"args": ["touch", "owned"]}}}}, "'subprocess.Popen' given, expected a class of tailo_pl"),  # noqa: E501
        ({"class_path": "tailo_pl.models.PUDiscriminator", "init_args": {"observation_dim": 3}}, "PUDiscriminator"),
        ({"class_path": HEAD, "init_args": {}}, "Gaussian"),
        ({"class_path": "tailo_pl.models.Nothing", "init_args": {}}, "Nothing"),
        ({"class_path": "tailo_pl.models.IQL", "init_args": {**SIZES, "nothing": 1}}, "nothing"),
        ({"class_path": "tailo_pl.models.IQL", "init_args": {**SIZES, "learning_rate": -1}}, "learning_rate: -1"),
        ({"class_path": "tailo_pl.models.SMODICE", "init_args": {**SIZES, "head": {"class_path": "tailo_pl.models.heads.TanhMeanGaussian"}}}, "head"),  # noqa: E501
        ({"class_path": "tailo_pl.models.IQL", "init_args": {**SIZES, "hidden": [9, 9]}}, "size mismatch"),
        ({}, "module"),
        ("elsewhere.yaml", "'elsewhere.yaml' found, expected class_path and init_args"),
        (None, "None found, expected class_path and init_args"),
    ],
)  # fmt: skip
def test_a_false_description_is_refused_in_one_line(
    description: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = changed(saved(IQL(**SIZES), tmp_path / "x.ckpt"), tailo_module=description)
    with pytest.raises(UserError) as refused:
        load_policy(path)
    line = str(refused.value)
    assert line.startswith(f"{path}: cannot be read as a PolicyModule (") and message in line, line
    assert "\n" not in line and len(line) < 350 + len(str(path))
    assert not (tmp_path / "owned").exists()


def test_other_schemas_and_kinds_are_refused(tmp_path: Path) -> None:
    path = saved(PUDiscriminator(3, hidden=(8,)), tmp_path / "x.ckpt")
    assert load_checkpoint(path, PUDiscriminator).observation_dim == 3
    with pytest.raises(UserError, match="cannot be read as a PolicyModule"):
        load_policy(path)
    with pytest.raises(UserError, match="schema 1 found, this version reads 2"):
        load_checkpoint(changed(path, tailo_schema=1), PUDiscriminator)


def test_what_modules_declare() -> None:
    assert PUDiscriminator.needs == ("observation_dim",)
    policies = (WeightedBCPolicy, SMODICE, LobsDICE, TD3BC, RCE, DWBC, MARWIL, IQL)
    assert all(policy.needs == ("observation_dim", "action_low", "action_high") for policy in policies)
    assert [policy for policy in policies if not policy.full_precision] == [WeightedBCPolicy]
