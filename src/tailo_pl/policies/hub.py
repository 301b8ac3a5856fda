"""A policy as a folder for the Hugging Face Hub: weights, how to build it again, and a card that says what it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from tailo_pl.config.parsing import build
from tailo_pl.data.formats.members import member, read_member_json
from tailo_pl.data.hub import client, is_id
from tailo_pl.errors import UserError, counted, one_line
from tailo_pl.files import whole_folder, write_json, write_text
from tailo_pl.models.policy import PolicyModule
from tailo_pl.models.stage import SCHEMA
from tailo_pl.runs.summary import read_summary
from tailo_pl.runs.trained import load_run_policy

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
FILES = (CONFIG, WEIGHTS, CARD)
_KIND = "tailo_pl"


def is_hub_folder(folder: Path) -> bool:
    """Whether a folder was written by `write_hub_folder`, or seems to be."""
    return (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()


def write_hub_folder(run_dir: Path, out: Path) -> Path:
    """Write a finished run's policy as a new folder, whole or not at all.

    Args:
        run_dir: the run.
        out: the folder.
    """
    if out.exists():
        raise UserError(f"{out}: already there; choose another --out, or delete it")
    policy, summary = load_run_policy(run_dir), read_summary(run_dir)
    with whole_folder(out) as scratch:
        weights = {name: value.detach().clone().contiguous() for name, value in policy.state_dict().items()}
        _safetensors().save_file(weights, scratch / WEIGHTS, metadata={"format": "pt"})
        write_json(scratch / CONFIG, _config(policy))
        write_text(scratch / CARD, card(dict(summary), policy))
        _check(policy, load_hub_folder(scratch), out)
    return out


def load_hub_folder(folder: Path) -> PolicyModule:
    """The policy of such a folder, on the CPU. Only classes that a configuration may name are built; nothing runs."""
    config = read_member_json(folder, CONFIG, "a policy's description")
    if not isinstance(config, dict) or config.get("library") != _KIND or config.get("schema") != SCHEMA:
        raise UserError(f"{folder}: {CONFIG}: expected library {_KIND} and schema {SCHEMA}, which this version reads")
    description = config.get("module")
    if not isinstance(description, dict):
        raise UserError(
            f"{folder}: {CONFIG}: module: {one_line(repr(description))} found, expected class_path, init_args"
        )
    path = member(folder, WEIGHTS, "the policy's weights")
    try:
        with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
            policy: PolicyModule = build(PolicyModule, description, "module")
        policy.load_state_dict(_safetensors().load_file(path))
    except UserError as error:
        raise UserError(f"{folder}: {error}") from error
    except Exception as error:  # whatever a damaged file makes the libraries raise
        raise UserError(f"{path}: cannot be read as the policy's weights ({one_line(error)})") from error
    for name, weights in policy.state_dict().items():
        if not bool(torch.isfinite(weights).all()):
            raise UserError(f"{path}: {name}: a number that is not finite found, expected finite weights")
    return policy.eval()


def push(run_dir: Path, name: str, *, private: bool, scratch: Path) -> str:
    """Upload a finished run's policy; its address.

    Args:
        run_dir: the run.
        name: of the repository, `org/name`; it is made where it is not there.
        private: whether a new repository is.
        scratch: a folder that is there and may be written to.
    """
    if not is_id(name):
        raise UserError(f"push: {name!r} given, expected a repository such as org/name")
    folder = write_hub_folder(run_dir, scratch / "policy")
    try:
        api = client(name).HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
        api.create_repo(name, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=name, folder_path=folder, commit_message="A policy of tailo_pl")
    except UserError:
        raise
    except Exception as error:  # no network, not logged in, no permission: the library has an error for each
        raise UserError(f"push: {name}: cannot be uploaded ({one_line(error)})") from error
    return str(commit)


def _sizes(part: dict[str, Any], noun: str) -> str:
    return f"{counted(part[f'{noun}s'], noun)} in {counted(part['trajectories'], 'trajectory')}"


def card(summary: dict[str, Any], policy: PolicyModule) -> str:
    """The model card, from what the run says of itself."""
    data, name = summary["data"], summary["method"]
    outcome = "not played: no environment was named"
    if summary.get("score") is not None:
        outcome = f"{summary['score']:.1f} ± {summary['score_std']:.1f} over {counted(summary['episodes'], 'episode')}"
    found = summary.get("verdict")
    verdict = found.get("text") if isinstance(found, dict) else found
    stages = [f"| {one['stage']} | {one['steps']:,} | {_numbers(one['quality'])} |" for one in summary["stages"]]
    versions = ", ".join(f"{package} {version}" for package, version in summary["versions"].items())
    low, high = (
        ", ".join(f"{one:.4g}" for one in bound.reshape(-1).tolist())
        for bound in (policy.bounds.low, policy.bounds.high)
    )
    lines = [
        "---",
        "library_name: tailo_pl",
        "tags: [imitation-learning, robotics, offline-imitation-learning, tailo]",
        "---",
        f"# A policy by {name}",
        "",
        f"Trained offline by tailo_pl with method `{name}`, preset "
        f"`{summary['preset']}`, seed {summary['seed']}; environment `{summary['env']}`, setting "
        f"`{summary['setting']}`.",
        "",
        f"- **Takes** {policy.observation_dim} numbers, the raw state; **gives** {policy.action_dim}, the action",
        f"- **Bounds of the actions**: low {low}; high {high}",
        f"- **Score**: {outcome}",
        *([f"- **Verdict**: {one_line(verdict)}"] if verdict else []),
        f"- **TS**: {_sizes(data['ts'], 'state')}",
        f"- **TA**: {_sizes(data['ta'], 'step')}",
        f"- **Data**: {one_line(data['source'])} (fingerprint `{data['fingerprint']}`)",
        f"- **Versions**: {versions}",
        "",
        "| stage | steps | quality |",
        "|---|---|---|",
        *stages,
        "",
        "```python",
        "from tailo_pl import load_policy",
        "",
        'policy = load_policy("org/name")   # this repository, or the folder',
        "action = policy(state)",
        "```",
        "",
    ]
    return "\n".join(lines)


def _numbers(quality: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in quality.items() if isinstance(value, (int, float)))


def _config(policy: PolicyModule) -> dict[str, Any]:
    return {
        "library": _KIND,
        "schema": SCHEMA,
        "module": policy.description(),
        "observation_dim": policy.observation_dim,
        "action_dim": policy.action_dim,
    }


def _check(policy: PolicyModule, again: PolicyModule, out: Path) -> None:
    """Compare what was written with the original, number by number."""
    theirs = again.state_dict()
    for name, weights in policy.state_dict().items():
        if not torch.equal(weights.cpu(), theirs[name]):
            raise UserError(f"{out}: {name}: written otherwise than it is, nothing is kept")


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError as error:
        raise UserError("hub: needs the package safetensors (pip install 'tailo_pl[robots]')") from error
    return safetensors.torch
