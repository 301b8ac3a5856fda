"""How each stage's training went, from its metrics."""

from __future__ import annotations

from tailo_pl.report.figure import Figure, Series, averaged
from tailo_pl.report.reading import RunRecord, StageRecord

# Title, label of the axis, what each metric is called, how to read it.
_PLOTS = (
    ("loss", "loss", {"loss": "loss, on the batch", "held_out/loss": "loss, held out"}, ""),
    (
        "logits of TS and TA",
        "mean logit D(s) of the batch",
        {"logit_ts": "TS (expert)", "logit_u": "TA, or its safe negatives"},
        "The wider apart, the surer the discriminator. The penalty keeps them from running away.",
    ),
    (
        "Lipschitz penalty",
        "mean (|grad D| − 1)²",
        {"penalty": "penalty, before its factor lambda"},
        "How far the gradient's norm is from 1 between TS and TA. It should fall and stay small.",
    ),
    ("held-out error", "weighted error of the action", {"held_out/error": "error, held out"}, ""),
)  # fmt: skip


def training_figures(run: RunRecord, key: str, points: int) -> list[Figure]:
    """Losses, penalty and logits of every stage that logged them."""
    return [figure for stage in run.stages.values() for figure in _of_stage(stage, f"{key}-{stage.name}", points)]


def _of_stage(stage: StageRecord, key: str, points: int) -> list[Figure]:
    figures = []
    for number, (title, label, names, caption) in enumerate(_PLOTS):
        series = [
            Series(shown, *averaged(*stage.metrics[name], points), color=color)
            for color, (name, shown) in enumerate(names.items())
            if len(stage.metrics.get(name, ((), ()))[0])
        ]
        if series:
            axis = f"steps of {stage.name}"
            figures.append(Figure(f"{key}-{number}", f"{stage.name}: {title}", axis, label, series, caption=caption))
    return figures
