"""The report of real runs in a real browser: nothing goes wrong, nothing is fetched, every control works."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailo_pl.report.contents import contents_of
from tailo_pl.report.page import render_page
from tailo_pl.report.reading import read_run
from tailo_pl.report.writing import write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (on Debian: apt-get install chromium)"
)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
# A pixel of the smallest valid GIF.
GIF = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "episode.gif").write_bytes(GIF)
    return write_report(runs, folder / "report.html", video=folder / "episode.gif").page


class Visit:
    """A page that was opened, with everything that went wrong and everything it asked for."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".drawing svg")

    def close(self) -> None:
        assert not self.errors
        assert [url for url in self.requests if not url.startswith("data:")] == self.requests[:1]
        self.page.context.close()

    def drawn(self, key: str) -> str:
        return str(self.page.inner_html(f"#{key} .drawing svg"))


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Visit]:
    opened = Visit(browser, report)
    yield opened
    opened.close()


def test_every_figure_of_every_run_is_drawn(visit: Visit, runs: list[Path]) -> None:
    page = visit.page
    choice = page.locator("#run")
    assert choice.locator("option").count() == len(runs)
    for number in range(len(runs)):
        choice.select_option(str(number))
        parts = page.locator("[data-run]:visible")
        assert parts.count() == 1 and parts.get_attribute("data-run") == str(number)
        for figure in page.locator("figure:visible").all():
            shapes = figure.locator(".drawing svg").locator("path, rect, circle")
            assert shapes.count() > 0, figure.get_attribute("id")
            box = figure.locator(".drawing svg").bounding_box()
            assert box["width"] > 200 and box["height"] > 50
    assert page.evaluate("!document.documentElement.innerHTML.includes('NaN')")
    assert page.evaluate("document.querySelector('#video img').naturalWidth") == 1


def test_theme_follows_the_system_until_it_is_chosen(browser: Any, report: Path) -> None:
    visit = Visit(browser, report, color_scheme="dark")
    page, background = visit.page, "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    button = page.locator("#theme")
    assert button.inner_text() == "Light theme"
    button.click()
    light = page.evaluate(background)
    assert light == "rgb(255, 255, 255)" != dark and button.inner_text() == "Dark theme"
    button.press("Enter")
    assert page.evaluate(background) == dark
    page.emulate_media(media="print")
    assert page.evaluate(background) == light
    visit.close()


def test_legend_switches_a_method_off_in_all_its_figures(visit: Visit) -> None:
    before = [visit.drawn(key).count("<path") for key in ("score-steps-0", "score-time-0")]
    button = visit.page.locator("#score-steps-0 .legend button", has_text="tailo · fast")
    button.focus()
    visit.page.keyboard.press("Space")
    after = [visit.drawn(key).count("<path") for key in ("score-steps-0", "score-time-0")]
    assert [one - other for one, other in zip(before, after, strict=True)] == [5, 5]  # three seeds, mean, band
    assert button.get_attribute("aria-pressed") == "false"
    assert visit.page.evaluate("document.activeElement.textContent") == "tailo · fast"
    visit.page.locator("#score-steps-0 .legend button", has_text="bc · fast").click()
    assert "switched off" in visit.page.inner_text("#score-steps-0 .drawing")
    button.click()
    assert visit.drawn("score-time-0").count("<path") == 5


def test_sliders_move_what_they_should(visit: Visit) -> None:
    page = visit.page
    for key, control, others in (("r0-negatives", 0, []), ("r0-choice", 0, ["r0-concentration"]), ("r0-choice", 1, [])):
        slider = page.locator(f"#{key}-control-{control}")
        value = slider.locator("xpath=following-sibling::output[1]")
        assert value.inner_text().endswith(" (this run)")
        before = [visit.drawn(one) for one in (key, *others)]
        facts = page.inner_text(f"#{key} .facts")
        slider.focus()
        page.keyboard.press("Home")
        assert float(value.inner_text()) in (0.3, 0.5, 0.0)
        assert slider.get_attribute("aria-valuetext") == value.inner_text()
        assert all(visit.drawn(one) != old for one, old in zip((key, *others), before, strict=True))
        assert page.inner_text(f"#{key} .facts") != facts


def test_values_are_read_with_pointer_and_keys(visit: Visit) -> None:
    page = visit.page
    tip = page.locator("#score-steps-0 .tip")
    assert not tip.is_visible()
    page.locator("#score-steps-0 svg[role=img]").focus()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("policy training steps: 20") and "tailo · fast, seed 0" in tip.inner_text()
    page.keyboard.press("End")
    assert tip.inner_text().startswith("policy training steps: 60")
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.hover("#r0-negatives svg[role=img]")
    assert "mean R'(s)" in page.inner_text("#r0-negatives .tip")
    page.locator("#comparison-iqm details summary").click()
    assert "tailo · fast" in page.inner_text("#comparison-iqm details table")


def test_readable_on_a_phone(browser: Any, report: Path) -> None:
    visit = Visit(browser, report, viewport={"width": 400, "height": 800}, has_touch=True)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
    # No text of a drawing is cut off by its edge.
    cut = visit.page.evaluate(
        """[...document.querySelectorAll(".drawing svg[role=img] text")].filter((text) => {
            const [own, whole] = [text, text.ownerSVGElement].map((one) => one.getBoundingClientRect());
            return own.width && (own.left < whole.left - 1 || own.right > whole.right + 1);
        }).map((text) => text.textContent)"""
    )
    assert cut == []
    visit.close()


def test_a_hostile_name_is_only_text(browser: Any, runs: list[Path], tmp_path: Path) -> None:
    evil = "</title></script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    (tmp_path / "evil.html").write_text(render_page(contents_of([read_run(runs[3])], title=evil)))
    visit = Visit(browser, tmp_path / "evil.html")
    assert visit.page.title() == evil == visit.page.inner_text("h1")
    visit.close()
