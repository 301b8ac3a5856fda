"""The page about the paper: a verdict for every claim, numbers beside the paper's, gaps shown as gaps."""

from __future__ import annotations

from pathlib import Path

from helpers.cells import FAST, results

from tailo_pl.paper.figures import chosen
from tailo_pl.paper.page import page
from tailo_pl.paper.plan import Asked


def test_every_claim_has_a_verdict_and_what_was_not_measured_is_a_gap(tmp_path: Path) -> None:
    figures = chosen(["offline_rl", "mismatch"])
    found = results(figures[0], {("hopper medium", "tailo"): [50.0, 60.0], ("hopper medium", "mopo"): 40.0})
    text = page(Asked(figures, FAST), found, tmp_path / "paper")
    assert "3 of 108 cells are measured." in text
    assert "| [Figure&nbsp;6](#mismatch) | TAILO is the best in all three | not&nbsp;measured |" in text
    assert "both of which see rewards | holds&nbsp;so&nbsp;far |" in text
    assert "**holds so far** (tailo 55.0, mopo 40.0 over 1)" in text
    assert (
        "![Offline RL without rewards](paper/offline_rl.svg)" in text and (tmp_path / "paper/offline_rl.svg").exists()
    )
    assert "| hopper medium | – | 95.4 | 40.0 | 28 | 55.0 ± 5.0 | 56.2 | – |" in text
    assert "Preset fast, seeds 0, 1, 100 episodes; 3 of 72 cells, 1 CPU seconds each" in text
    assert "Not measured yet." in text.split("{ #mismatch }")[1]
