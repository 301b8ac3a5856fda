"""Whether what the paper claims of a figure holds here: rules that decide from the measured numbers alone.

A rule looks at one panel at a time and finds that the claim holds there, or does not, or that nothing tells. Scores
within `LEVEL` points of each other are level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailo_pl.errors import UserError
from tailo_pl.paper.figures import Claim, Panel, PaperFigure
from tailo_pl.paper.scores import Scores

LEVEL = 2.0
"""points within which two scores are no difference"""
CLEARLY = 5.0
"""points that make one score clearly lower than another"""
_MOST = 4  # panels that are named where a claim does not hold
HOLDS, IN_PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "not measured"
SO_FAR = "holds so far"  # in all that was measured, which is not everything


class Finding(NamedTuple):
    """What a rule found in one panel.

    Args:
        holds: whether the claim holds there.
        numbers: that say so.
        level: whether it holds only in that nothing is ahead.
        lacking: whether something it is about has not been measured.
    """

    holds: bool
    numbers: str
    level: bool = False
    lacking: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds: `HOLDS`, `SO_FAR`, `IN_PART`, `FAILS` or `OPEN`; where, and the numbers that say so."""

    level: str
    detail: str = ""

    @property
    def text(self) -> str:
        """Both."""
        return self.level + self.detail


Rule = Callable[..., Finding | None]
_PANEL_RULES: dict[str, Rule] = {}
_WHOLE_RULES: dict[str, Rule] = {}


def judge(claim: Claim, figure: PaperFigure, scores: Scores) -> Verdict:
    """Decide a claim with its rule."""
    options = dict(claim.options)
    envs, words = options.pop("envs", None), options.pop("panels", None)
    panels = [
        panel
        for panel in figure.panels
        if (envs is None or panel.env in envs) and (words is None or set(words) & set(panel.words))
    ]
    if claim.rule in _WHOLE_RULES:
        found = _WHOLE_RULES[claim.rule](scores, panels, **options)
        names = [""]
        findings = [found]
    elif claim.rule in _PANEL_RULES:
        names = [figure.title_of(panel) for panel in panels]
        findings = [_PANEL_RULES[claim.rule](scores, panel, **options) for panel in panels]
    else:
        known = sorted({*_PANEL_RULES, *_WHOLE_RULES})
        raise UserError(f"{figure.name}: rule {claim.rule!r} found, expected one of {', '.join(known)}")
    return _verdict(list(zip(names, findings, strict=True)))


def _verdict(findings: Sequence[tuple[str, Finding | None]]) -> Verdict:
    told = [(name, found) for name, found in findings if found is not None]
    if not told:
        return Verdict(OPEN)
    good, even = (sum(getattr(found, what) for _, found in told) for what in ("holds", "level"))
    level = FAILS if not good else HOLDS if good == len(told) and even < good else IN_PART
    if level == HOLDS and (len(told) < len(findings) or any(found.lacking for _, found in told)):
        level = SO_FAR
    # Where it does not hold everywhere, the panels that say so are what one wants to know.
    wanted = [(name, found) for name, found in told if not found.holds] or told
    numbers = "; ".join(f"{name} {found.numbers}".strip() for name, found in wanted[:_MOST])
    numbers += f"; and {len(wanted) - _MOST} more" if len(wanted) > _MOST else ""
    count = ""
    if len(findings) > 1 and (level != FAILS or len(told) > 1):
        count = f"{',' * (level == IN_PART)} in {'any' if level == FAILS else good} of {len(told)}"
    count += f", level in {even} of them" if even and len(findings) > 1 else ", level" if even else ""
    rest = f"; {len(findings) - len(told)} not measured" if len(findings) > len(told) else ""
    return Verdict(level, f"{count} ({numbers}){rest}")


def _panel(rule: Rule) -> Rule:
    _PANEL_RULES[rule.__name__] = rule
    return rule


def _whole(rule: Rule) -> Rule:
    _WHOLE_RULES[rule.__name__] = rule
    return rule


@_panel
def best(
    scores: Scores,
    panel: Panel,
    *,
    of: str = "tailo",
    margin: float | None = None,
    by: float = 0.0,
    apart: Sequence[str] = (),
) -> Finding | None:
    """One line is ahead of every other that was measured (level with the best is said), or at least `by` points ahead,
    or at most `margin` points behind."""
    means = scores.means(panel)
    others = {name: mean for name, mean in means.items() if name != of and name not in apart}
    if of not in means or not others:
        return None
    other = max(others, key=lambda name: others[name])
    ahead = means[of] - others[other]
    holds = ahead >= (by or -(LEVEL if margin is None else margin))
    lacking = len(scores.figure.lines) - 1 - len(apart) - len(others)
    seen = f", {lacking} others not measured" if lacking > 0 else ""
    level = holds and margin is None and ahead <= LEVEL
    return Finding(holds, f"{means[of]:.1f}, best other {other} {others[other]:.1f}{seen}", level, lacking > 0)


@_panel
def below(scores: Scores, panel: Panel, *, line: str, value: float) -> Finding | None:
    """A line, or `any`, stays below a score."""
    means = scores.means(panel)
    chosen = means if line == "any" else {name: mean for name, mean in means.items() if name == line}
    if not chosen:
        return None
    name = max(chosen, key=lambda one: chosen[one])
    return Finding(chosen[name] <= value, f"highest {name} {chosen[name]:.1f}")


@_panel
def worse(scores: Scores, panel: Panel, *, line: str, than: str, by: float = CLEARLY) -> Finding | None:
    """One line is clearly below another."""
    one, other = scores.mean(panel, line), scores.mean(panel, than)
    if one is None or other is None:
        return None
    return Finding(one <= other - by, f"{line} {one:.1f}, {than} {other:.1f}")


@_panel
def robust(scores: Scores, panel: Panel, *, to: str, share: float, but: Sequence[str] = ()) -> Finding | None:
    """Every line but those named keeps a share of another's score."""
    means = scores.means(panel)
    others = {name: mean for name, mean in means.items() if name != to and name not in but}
    if to not in means or not others:
        return None
    name = min(others, key=lambda one: others[one])
    return Finding(others[name] >= share * means[to], f"{to} {means[to]:.1f}, lowest {name} {others[name]:.1f}")


@_panel
def nearest(scores: Scores, panel: Panel, *, line: str, to: str, among: Sequence[str]) -> Finding | None:
    """Of some lines one comes nearest to another."""
    means = scores.means(panel)
    if line not in means or to not in means or not set(among) <= set(means):
        return None
    away = {name: abs(means[name] - means[to]) for name in (line, *among)}
    shown = ", ".join(f"{name} {means[name]:.1f}" for name in (to, line, *among))
    return Finding(away[line] <= min(away[name] for name in among) + LEVEL, shown)


@_panel
def lowest(scores: Scores, panel: Panel, *, lines: Sequence[str]) -> Finding | None:
    """All of some lines are below all others."""
    means = scores.means(panel)
    ours = {name: mean for name, mean in means.items() if name in lines}
    others = {name: mean for name, mean in means.items() if name not in lines}
    if not ours or not others:
        return None
    high, low = max(ours, key=lambda one: ours[one]), min(others, key=lambda one: others[one])
    return Finding(
        ours[high] <= others[low] + LEVEL, f"highest {high} {ours[high]:.1f}, lowest {low} {others[low]:.1f}"
    )


@_whole
def steady(scores: Scores, panels: Sequence[Panel], *, line: str, share: float) -> Finding | None:
    """In every environment a line's lowest score keeps a share of its highest."""
    by_env: dict[str, list[float]] = {}
    for panel in panels:
        mean = scores.mean(panel, line)
        if mean is not None:
            by_env.setdefault(panel.env, []).append(mean)
    several = {env: found for env, found in by_env.items() if len(found) > 1}
    if not several:
        return None
    numbers = ", ".join(f"{env} {min(found):.1f} to {max(found):.1f}" for env, found in several.items())
    holds = all(min(found) >= share * max(found) for found in several.values())
    return Finding(holds, f"{line}: {numbers}", lacking=sum(map(len, by_env.values())) < len(panels))


@_whole
def mean_best(scores: Scores, panels: Sequence[Panel], *, than: Sequence[str], of: str = "tailo") -> Finding | None:
    """Over the panels that both have done, a line's mean is at least every other's."""
    shown, holds, lacking = [], [], False
    for name in than:
        pairs = [(scores.mean(panel, of), scores.mean(panel, name)) for panel in panels]
        both = np.array([pair for pair in pairs if None not in pair], dtype=np.float64)
        lacking |= len(both) < len(panels)
        if len(both):
            one, other = both.mean(0)
            holds.append(one >= other - LEVEL)
            shown.append(f"{of} {one:.1f}, {name} {other:.1f} over {len(both)}")
    return Finding(all(holds), "; ".join(shown), lacking=lacking) if holds else None


@_panel
def propagates(scores: Scores, panel: Panel, *, line: str = "tailo", start: float = 0.05) -> Finding | None:
    """At the start of trajectories W tells the expert's from the others, in units of the largest, better than later R
    alone would: the expert's mean W there is more than twice the others'."""
    experts, others = (scores.curve(panel, line, f"all {who} W") for who in ("expert", "non-expert"))
    if experts is None or others is None:
        return None
    until = start * max(experts[0])
    ours, theirs = (_mean_until(curve, until) for curve in (experts, others))
    return Finding(ours > 2 * theirs, f"mean W of the first {start:.0%}: expert {ours:.2g}, others {theirs:.2g}")


@_panel
def smoother(scores: Scores, panel: Panel, *, line: str = "tailo") -> Finding | None:
    """Along an expert trajectory W changes less from point to point, relative to its range, than R."""
    curves = [scores.curve(panel, line, f"expert {what}") for what in ("W", "R")]
    if None in curves:
        return None
    weight, reward = (_roughness(curve) for curve in curves if curve is not None)
    return Finding(weight < reward, f"mean change over range: W {weight:.3f}, R {reward:.3f}")


@_panel
def runs_away(scores: Scores, panel: Panel, *, quantity: str, times: float = 10.0) -> Finding | None:
    """A quantity ends many times as far from zero as it was after a tenth of the training, or is no longer finite."""
    return _growth(scores, panel, quantity, lambda growth, failed: failed or growth > times)


@_panel
def stays(scores: Scores, panel: Panel, *, quantity: str, times: float = 10.0) -> Finding | None:
    """The contrary of `runs_away`."""
    return _growth(scores, panel, quantity, lambda growth, failed: not failed and growth <= times)


@_panel
def higher(scores: Scores, panel: Panel, *, quantity: str, line: str, than: str, times: float) -> Finding | None:
    """A quantity ends many times as high with one line as with another."""
    ends = [_last(scores, panel, name, quantity) for name in (line, than)]
    if ends[0] is None or ends[1] is None:
        return None
    one, other = ends[0], ends[1]
    return Finding(one > times * max(other, 0.0), f"{line} {one:.3g}, {than} {other:.3g}")


def _growth(scores: Scores, panel: Panel, quantity: str, rule: Callable[[float, bool], bool]) -> Finding | None:
    (line,) = scores.figure.lines
    curve = scores.curve(panel, line.name, quantity)
    if curve is None or len(curve[1]) < 2:
        return None
    steps, values = np.asarray(curve[0]), np.abs(np.asarray(curve[1]))
    early = float(values[steps <= max(steps[0], 0.1 * steps[-1])].mean())
    failed = any(record["failure"] is not None for record in scores.measured[panel, line.name])
    told = ", then not finite" if failed else ""
    growth = float(values[-1]) / max(early, 1e-9)
    return Finding(rule(growth, failed), f"{quantity} {early:.3g}, at the end {values[-1]:.3g}{told}")


def _last(scores: Scores, panel: Panel, line: str, quantity: str) -> float | None:
    curve = scores.curve(panel, line, quantity)
    return None if curve is None or not curve[1] else float(curve[1][-1])


def _mean_until(curve: list[list[float]], until: float) -> float:
    x, y = (np.asarray(part, dtype=np.float64) for part in curve)
    near = x <= max(until, x[0])
    return float(y[near].mean())


def _roughness(curve: list[list[float]]) -> float:
    values: Any = np.asarray(curve[1], dtype=np.float64)
    spread = float(np.ptp(values))
    return float(np.abs(np.diff(values)).mean() / spread) if spread else 0.0
