"""TAILO for notebooks: `TAILO(alpha=2).fit(ts, ta).predict(states)` on arrays, in scikit-learn's manner."""

from __future__ import annotations

import inspect
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailo_pl.data.arrays import StateActions, States, in_arrays, ta_trajectories, ts_trajectories
from tailo_pl.errors import UserError
from tailo_pl.files import read_json, whole_folder, write_json
from tailo_pl.policies.load import Policy, load_policy
from tailo_pl.runs.packed import packed, unpack
from tailo_pl.training.chatter import quiet

if TYPE_CHECKING:
    from typing import Self

    from tailo_pl.config.experiment import Experiment
    from tailo_pl.data.settings import Task


_PARAMETERS = "estimator.json"  # beside a run that was saved


class NotFittedError(ValueError, AttributeError):
    """Something was asked of an estimator that `fit` has to make first."""


class TAILO:
    """Trajectory-aware imitation learning from observations, as an estimator.

    The same stages as `tailo train source=files`, on the same code: what it trains is a run with a folder, which every
    other command reads. Parameters are stored as they are given and looked at by `fit`.

    Args:
        alpha: strength of the exponential in the weights.
        beta_1: quantile of the trajectories' mean scores below which all their states are safe negatives, in (0, 1).
        beta_2: share of the debiased loss in the second discriminator, in [0, 1]; 1 where the bodies differ.
        eta_p: assumed share of expert states in TA, in (0, 1).
        gamma: discount of the weights along the trajectory, in [0, 1).
        lipschitz: weight lambda of the gradient penalty; 0 switches it off.
        score: `logit`: R = D(s); `probability`: R = 10*c(s), the ablation.
        preset: `fast` or `paper`: budget and arithmetic.
        pretrain_steps: of the first discriminator; None: the preset's.
        formal_steps: of the second discriminator; None: the preset's.
        policy_steps: of the policy; None: the preset's.
        seed: of networks and batches.
        action_low: lower bounds of the actions, one number or one each; None: those of the data.
        action_high: upper bounds.
        directory: where the run and its data are kept; None: a temporary folder that goes with this object.
        overrides: any other setting as on the command line, e.g. `["preset.policy_batch=256"]`.
        verbose: show progress bars.

    Attributes:
        policy_: the trained policy, a callable.
        weights_: W(s, a) of every step of TA, in order, the largest 1.
        scores_: R(s) of every step of TA.
        offsets_: trajectory i of TA has the steps from `offsets_[i]` to `offsets_[i + 1]`.
        n_features_in_: numbers in a state.
        run_dir_: folder of the run.
        summary_: what the run reports: quality of each stage, timings, versions.
    """

    def __init__(
        self,
        *,
        alpha: float = 1.25,
        beta_1: float = 0.8,
        beta_2: float = 0.0,
        eta_p: float = 0.2,
        gamma: float = 0.998,
        lipschitz: float = 10.0,
        score: Literal["logit", "probability"] = "logit",
        preset: str = "fast",
        pretrain_steps: int | None = None,
        formal_steps: int | None = None,
        policy_steps: int | None = None,
        seed: int = 0,
        action_low: float | Sequence[float] | None = None,
        action_high: float | Sequence[float] | None = None,
        directory: str | Path | None = None,
        overrides: Sequence[str] = (),
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.eta_p = eta_p
        self.gamma = gamma
        self.lipschitz = lipschitz
        self.score = score
        self.preset = preset
        self.pretrain_steps = pretrain_steps
        self.formal_steps = formal_steps
        self.policy_steps = policy_steps
        self.seed = seed
        self.action_low = action_low
        self.action_high = action_high
        self.directory = directory
        self.overrides = overrides
        self.verbose = verbose

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        """Names of the parameters and their defaults."""
        return {name: p.default for name, p in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there because scikit-learn passes it, nothing here is nested."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; takes effect at the next `fit`."""
        known = self._parameters()
        for name in params:
            if name not in known:
                raise ValueError(f"{name}: no parameter of TAILO, expected one of {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._parameters()
        changed = {name: value for name, value in self.get_params().items() if not _same(value, defaults[name])}
        return f"TAILO({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def fit(self, ts: States, ta: StateActions) -> Self:
        """Train both discriminators, the weights and the policy.

        Args:
            ts: the expert's states: one array (rows, dim), or a list of them.
            ta: trajectories of unknown quality: a list of (states, actions), or a mapping with `observations`
                (steps, dim), `actions` (steps, dim) and `offsets`, which run from 0 to the number of steps.

        Returns:
            The estimator itself.

        Raises:
            UserError: with one line that names what is wrong with a parameter or the data.
        """
        from lightning.pytorch.utilities.seed import isolate_rng

        from tailo_pl.callbacks.progress import shown
        from tailo_pl.data.settings import Task
        from tailo_pl.data.sources.arrays import keep
        from tailo_pl.runs.execute import execute
        from tailo_pl.runs.folder import prepare

        task = Task(ts_trajectories(ts), ta_trajectories(ta))
        root = Path(tempfile.mkdtemp(prefix="tailo-") if self.directory is None else self.directory).resolve()
        if self.directory is None:  # it lives as long as this object
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        token = shown.set(self.verbose)
        try:
            with isolate_rng(), quiet():
                experiment = self._experiment(root, keep(task, root / "data"), task)
                _scored(experiment)
                run_dir = prepare(experiment)
                execute(run_dir, experiment)
        except UserError as error:
            raise UserError(in_arrays(str(error), task, self.get_params())) from error
        finally:
            shown.reset(token)
        return self._take(run_dir)

    def _take(self, run_dir: Path) -> Self:
        """Be what a finished run has learnt."""
        from tailo_pl.data.layout import LAYOUT, Layout
        from tailo_pl.models import PUDiscriminator
        from tailo_pl.runs.folder import load_run
        from tailo_pl.runs.summary import read_summary
        from tailo_pl.runs.trained import load_module

        scored = _scored(load_run(run_dir))
        self.summary_: Any = read_summary(run_dir)
        self.policy_: Policy = load_policy(run_dir)
        self._discriminator = load_module(run_dir, scored, PUDiscriminator)
        self.weights_ = np.load(run_dir / self.summary_["stages"][-1]["stage"] / "weights.npy", allow_pickle=False)
        self.scores_ = np.load(run_dir / scored / "scores.npy", allow_pickle=False)
        self.offsets_ = Layout.read(run_dir / LAYOUT).offsets
        self.n_features_in_ = self.policy_.observation_dim
        self.run_dir_ = run_dir
        return self

    def save(self, folder: str | Path) -> Path:
        """Write what was fitted, parameters included, to a new folder: a run, which every command reads.

        Args:
            folder: must not exist.
        """
        self._require_fitted()
        folder = Path(folder)
        if folder.exists():
            raise UserError(f"{folder}: already there, expected the name of a new folder")
        plain = {name: _plain(value) for name, value in self.get_params().items() if name != "directory"}
        with whole_folder(folder) as scratch:
            shutil.copytree(self.run_dir_, scratch, dirs_exist_ok=True)
            write_json(scratch / _PARAMETERS, plain)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """What `save` has written. Nothing of it is unpickled."""
        folder = Path(folder)
        params = read_json(folder / _PARAMETERS, "a folder that TAILO.save has written")
        if not isinstance(params, dict) or not set(params) <= set(cls._parameters()):
            raise UserError(f"{folder / _PARAMETERS}: expected the parameters of TAILO")
        return cls(**params)._take(folder)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the parameters and, once fitted, the files of the run, which may be gone when it is read."""
        state: dict[str, Any] = {"params": self.get_params()}
        if hasattr(self, "policy_"):
            state["run"] = packed(self.run_dir_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["params"])
        if "run" in state:
            root = Path(tempfile.mkdtemp(prefix="tailo-"))
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
            unpack(state["run"], root)
            self._take(root)

    def predict(self, states: ArrayLike) -> NDArray[np.float32]:
        """The policy's deterministic actions at one raw state or a batch of them."""
        self._require_fitted()
        return self.policy_(states)

    def score_states(self, states: ArrayLike) -> NDArray[np.float32]:
        """R(s) of raw states (rows, dim): how much more the expert's they look than not."""
        self._require_fitted()
        given = np.asarray(states, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != self.n_features_in_:
            raise ValueError(f"states: shape {given.shape} given, expected (rows, {self.n_features_in_})")
        if not len(given):
            return np.empty(0, dtype=np.float32)
        return self._discriminator.scores(ts_trajectories(given))

    def _require_fitted(self) -> None:
        if not hasattr(self, "policy_"):
            raise NotFittedError("this TAILO is not fitted yet; call fit(ts, ta) first")

    def _experiment(self, root: Path, data: Path, task: Task) -> Experiment:
        from tailo_pl.config.compose import composed_config
        from tailo_pl.config.experiment import read_experiment

        steps = {name: getattr(self, name) for name in ("pretrain_steps", "formal_steps", "policy_steps")}
        chosen = [f"preset.{name}={value}" for name, value in steps.items() if value is not None]
        if isinstance(self.overrides, str):
            raise UserError(f"overrides: {self.overrides!r} given, expected a list of key=value")

        asked = ["source=arrays", f"preset={self.preset}", *chosen, *self.overrides]

        def given(config: dict[str, Any]) -> None:
            config["seed"], config["source"]["folder"] = self.seed, ""
            for name in ("alpha", "beta_1", "beta_2", "eta_p", "gamma", "lipschitz", "score"):
                config["method"][name] = getattr(self, name)

        held_out = composed_config(asked, given)["preset"]["held_out"]["trajectories"]

        def sparing(config: dict[str, Any]) -> None:
            given(config)
            # Little data has no trajectories to spare.
            config["preset"]["held_out"]["trajectories"] = min(held_out, (len(task.ta) - 1) // 2)

        resolved = composed_config(asked, sparing)
        # Only now: a path may hold what would be taken for a reference to another setting.
        resolved["runs"], resolved["name"] = str(root), f"fit-{uuid.uuid4().hex[:12]}"
        resolved["source"]["folder"] = str(data)
        for name in ("action_low", "action_high"):
            value = getattr(self, name)
            resolved["source"][name] = value if value is None or np.ndim(value) == 0 else np.asarray(value).tolist()
        return read_experiment(resolved)


def _scored(experiment: Experiment) -> str:
    """The stage whose scores weigh the policy's data."""
    if experiment.weights is None:
        raise UserError("overrides: a method without weights chosen, expected one with a discriminator")
    return experiment.weights.scores


def _plain(value: Any) -> Any:
    """A parameter as JSON can write it."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else np.asarray(value).tolist()


def _same(value: Any, default: Any) -> bool:
    return value is default or (np.ndim(value) == np.ndim(default) == 0 and bool(value == default))
