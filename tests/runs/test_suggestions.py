"""What is advised of one run: from its stored scores, its data, and what methods came to elsewhere."""

from __future__ import annotations

from typing import Any

from tailo_pl.config.choices import choices
from tailo_pl.runs.measured import Measured, better_method, read_measured
from tailo_pl.runs.suggestions import Choice, best


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


def row(choice: str, score: float, env: str = "hopper", setting: str = "standard", data: str = "") -> Measured:
    return Measured(env, setting, data or env, f"method={choice}", score, score - 2, score + 2, 3)


def run(method: str = "tailo", env: str = "hopper", setting: str = "standard", data: str = "hopper") -> Any:
    return {"method": method, "env": env, "setting": setting, "data": {"fingerprint": data}}


class TestMeasured:
    def test_on_the_same_data(self) -> None:
        rows = [row("tailo", 80), row("dilo", 95), row("seabo", 90), row("bc", 83), row("dilo", 1, env="ant")]
        chosen, words = better_method(rows, run(), ordered=True)
        assert chosen == "method=dilo"
        assert words == "measured on this data: method=dilo 95 (93 to 97, 3 seeds), method=tailo 80 (78 to 82, 3 seeds)"
        assert better_method(rows, run("dilo"), ordered=True) == (
            "", "on this data none of 3 others that were measured is better",
        )  # fmt: skip

    def test_in_settings_like_its_own(self) -> None:
        rows = [row("tailo", 80, env) for env in ("hopper", "ant", "walker2d")]
        rows += [row("dilo", 95), row("dilo", 95, "ant"), row("dilo", 10, "walker2d"), row("rce", 99)]
        chosen, words = better_method(rows, run(data="mine", env="none", setting="given"), ordered=True)
        assert chosen == "method=dilo" and words.endswith("better on 2 of 3 tasks of setting standard (hopper, ant)")
        assert better_method(rows, run(data="mine", setting="given"), ordered=False) == (
            "", "no other was measured beside it in setting examples",
        )  # fmt: skip
        ties = [row("tailo", 80), row("dilo", 82), row("tailo", 80, "ant"), row("dilo", 70, "ant")]
        assert better_method(ties, run(data="mine"), ordered=True)[0] == ""

    def test_nothing_is_known_yet(self) -> None:
        assert better_method([], run(), ordered=True)[0] == ""
        assert better_method([row("dilo", 90)], run("mine_own"), ordered=True)[0] == ""

    def test_what_is_in_the_package_names_what_there_is(self) -> None:
        rows = read_measured()
        assert rows and len(rows) == len({(one.env, one.setting, one.data, one.choice) for one in rows})
        for one in rows:
            assert one.low <= one.score <= one.high and one.seeds > 0
            assert one.choice.split()[0].removeprefix("method=") in choices("method")
