"""What is advised of one run: from its stored scores, its data, and what methods came to elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailo_pl.config.choices import choices
from tailo_pl.runs.advice import Judged
from tailo_pl.runs.measured import (
    Measured,
    better_on_data,
    better_on_most,
    choice_of,
    cut_alike,
    like_setting,
    read_measured,
)
from tailo_pl.runs.suggestions import Choice, Examined, best, suggestions
from tailo_pl.runs.summary import read_summary


def choice(alpha: float, share: float, logs: float, at_first: float = 1.0) -> Choice:
    return Choice(alpha, 0.98, share, at_first, 1.0, logs)


def test_more_weight_where_ts_goes_is_advised_only_where_it_gains() -> None:
    own, little = choice(1.25, 0.60, 30.0), choice(2.0, 0.61, 25.0)
    most, thin = choice(4.0, 0.95, 20.0), choice(8.0, 1.0, 1.2)
    assert best([own, little], own) is own
    assert best([own, little, most, thin], own) is most  # one log alone is too little
    assert best([thin, most], thin) is most
    late = choice(8.0, 1.0, 20.0, at_first=0.1)
    assert best([own, late], own) is own  # all of it where TS goes, but not where a policy begins


def row(
    choice: str, score: float, env: str = "hopper", setting: str = "standard", data: str = "", options: str = ""
) -> Measured:
    return Measured(env, setting, options, data or env, f"method={choice}", score, score - 2, score + 2, 3)


def run(method: str = "tailo", env: str = "hopper", setting: str = "standard", data: str = "hopper") -> Any:
    return {"method": method, "env": env, "setting": setting, "data": {"recipe": data}}


TAILO = "method=tailo"


class TestMeasured:
    def test_on_the_same_data(self) -> None:
        rows = [row("tailo", 80), row("dilo", 95), row("seabo", 90), row("bc", 83), row("dilo", 1, env="ant")]
        words = "measured on this data: method=dilo 95 (93 to 97, 3 seeds), method=tailo 80 (78 to 82, 3 seeds)"
        assert better_on_data(rows, run(), TAILO) == ("method=dilo", words)
        none = ("", "on this data none of 3 others that were measured is better")
        assert better_on_data(rows, run("dilo"), "method=dilo") == none
        assert better_on_data(rows, run(data="mine"), TAILO) is better_on_data(rows[:1], run(), TAILO) is None

    def test_on_most_of_some_tasks(self) -> None:
        rows = [row("tailo", 80, env) for env in ("hopper", "ant", "walker2d")]
        rows += [row("dilo", 95), row("dilo", 95, "ant"), row("dilo", 10, "walker2d"), row("rce", 99)]
        chosen, words = better_on_most(rows, TAILO)
        assert chosen == "method=dilo" and words.endswith("better on 2 of 3 tasks of setting standard (hopper, ant)")
        assert better_on_most([], TAILO) == ("", "no other was measured beside it")
        ties = [row("tailo", 80), row("dilo", 82), row("tailo", 80, "ant"), row("dilo", 70, "ant")]
        assert better_on_most(ties, TAILO) == ("", "none of 1 other was better on most tasks of setting standard")

    def test_of_settings_those_like_its_own_count(self) -> None:
        medium, replay = (
            row("tailo", 20, setting="offline_rl", options=f"dataset={one}") for one in ("medium", "replay")
        )
        standard, examples = row("tailo", 80), row("tailo", 90, setting="examples")
        rows = [medium, replay, standard, examples]
        for dataset, cut in (("medium", [medium]), ("replay", [replay]), ("mine", [])):
            setting = {"name": "offline_rl", "dataset": dataset, "others": None}
            assert cut_alike(rows, setting) == cut and like_setting(rows, setting, ordered=True) == [medium, replay]
        given = {"name": "given"}
        assert cut_alike(rows, given) == []
        assert like_setting(rows, given, ordered=True) == [standard]
        assert like_setting(rows, given, ordered=False) == [examples]

    def test_words_name_options_of_a_setting_that_all_tasks_have(self) -> None:
        rows = [
            row(name, score, setting="offline_rl", options="dataset=medium")
            for name, score in (("tailo", 20), ("seabo", 40))
        ]
        assert better_on_most(rows, TAILO)[1].endswith("1 of 1 tasks of setting offline_rl dataset=medium (hopper)")
        other = row("tailo", 20, "ant", setting="offline_rl", options="dataset=replay")
        assert better_on_most([*rows, other], TAILO)[1].endswith(
            "better on 1 of 1 tasks of setting offline_rl (hopper)"
        )

    def test_of_methods_that_won_as_often_the_best_is_advised(self) -> None:
        rows = [row(*one) for one in (("rce", 2), ("bc", 9), ("tailo", 90), ("dilo", 80))]
        assert better_on_most(rows, "method=rce")[0] == "method=tailo"

    def test_a_method_is_known_by_the_options_that_it_has(self) -> None:
        rows = [row(f"smodice method.divergence={one}", 5) for one in ("kl", "chi2")]
        rows += [row("recoil", 60), row("recoil method.expert=pairs", 10), row("recoil method.temperature=1", 50)]
        names = [
            choice_of(rows, {"name": name, "divergence": "chi2", "expert": expert, "temperature": 1.0 * temperature})
            for name, expert, temperature in (("smodice", "", 5), ("recoil", "actions", 5), ("recoil", "pairs", 5))
        ]
        assert names == ["method=smodice method.divergence=chi2", "method=recoil", "method=recoil method.expert=pairs"]
        assert choice_of(rows, {"name": "recoil", "temperature": 1.0}) == "method=recoil method.temperature=1"
        assert choice_of([], {"name": "mine"}) == "method=mine"

    def test_nothing_is_known_yet(self) -> None:
        assert better_on_most([row("dilo", 90)], "method=mine_own")[0] == ""

    def test_what_is_in_the_package_names_what_there_is(self) -> None:
        rows = read_measured()
        assert rows and len(rows) == len({(one.env, one.setting, one.data, one.choice) for one in rows})
        for one in rows:
            assert one.low <= one.score <= one.high and one.seeds > 0
            assert one.choice.split()[0].removeprefix("method=") in choices("method")


@pytest.mark.slow
def test_a_method_that_the_data_cannot_have_is_not_advised(run_dir: Path) -> None:
    examined = Examined(Judged(run_dir, read_summary(run_dir)))
    here = {"env": "pointmaze", "setting": "examples", "data": examined.summary["data"]["recipe"]}
    rows = [row("tailo", 50, **here), row("bc", 80, **here)]
    rows += [row(name, 90, **here) for name in ("lobsdice", "dilo", "seabo")]  # examples have no order
    (advised,) = (one for one in suggestions(examined, rows) if one.name == "method" and one.override)
    assert advised.override == "method=bc" and advised.why.startswith("measured on this data: method=bc 80 ")


@pytest.mark.slow
def test_what_was_better_on_other_data_cut_in_the_same_way_is_advised(run_dir: Path) -> None:
    examined = Examined(Judged(run_dir, read_summary(run_dir)))
    elsewhere = {"env": "ant", "setting": "examples"}
    rows = [row("tailo", 50, **elsewhere), row("bc", 80, **elsewhere)]
    (advised,) = (one for one in suggestions(examined, rows) if one.name == "method")
    assert advised.override == "method=bc"
    assert advised.why == "method=bc was better on 1 of 1 tasks of setting examples (ant)"


@pytest.mark.slow
def test_methods_that_learn_from_rewards_are_named_where_the_run_is_in_doubt(run_dir: Path) -> None:
    def words(level: str, measured: list[Measured]) -> str:
        summary: Any = read_summary(run_dir)
        summary["verdict"]["level"] = level
        examined = Examined(Judged(run_dir, summary))
        (found,) = (one for one in suggestions(examined, measured) if one.name == "method")
        assert not found.override
        return found.why

    here = {"env": "pointmaze", "setting": "examples", "data": read_summary(run_dir)["data"]["recipe"]}
    known = [row("tailo", 50, **here), row("bc", 40, **here)]
    assert words("doubtful", known).endswith(
        "; TA has rewards: method=mopo and method=morel would learn from these, without TS"
    )
    assert words("doubtful", [*known, row("mopo", 30, **here)]).endswith(
        "; TA has rewards: method=morel would learn from these, without TS"
    )
    assert "rewards" not in words("good", known)
