"""The page: one HTML file with its data, style and script inside, which loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from tailo_pl.errors import UserError
from tailo_pl.report.contents import Block, Contents, RunPart
from tailo_pl.report.figure import PALETTE, Control, Figure
from tailo_pl.report.lead import TERMS

_NUMBER = re.compile(r"[-−]?[\d,]*\d(\.\d+)?(?![.\d])|—|$")  # with which a cell begins that is no text or version
VIDEO_TYPES = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}


def render_page(contents: Contents, video: Path | None = None) -> str:
    """The report as HTML.

    Args:
        contents: what to show.
        video: an episode to embed (`.mp4`, `.webm` or `.gif`); None: none.
    """
    script, style = _asset("page.js"), _asset("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Nothing may be loaded, and no script but ours may run, whatever the names in a run say.
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; media-src data:"
    )
    data = {"palette": PALETTE, "figures": {figure.key: figure.to_json() for figure in contents.figures}}
    shown = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":  # whatever could end the script element, or the line
        shown = shown.replace(sign, f"\\u{ord(sign):04x}")
    links = [(block.key, block.heading) for block in contents.blocks]
    links += [("runs", "Runs")] + ([("video", "Video")] if video else [])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(contents.title)}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header>
<h1>{escape(contents.title)}</h1>
<button type="button" id="theme">Dark theme</button>
</header>
<nav aria-label="Sections">{"".join(f'<a href="#{key}">{escape(text)}</a>' for key, text in links)}</nav>
<main id="main">
<noscript><p class="note">The figures need JavaScript; the tables do not.</p></noscript>
{_lead(contents, links)}
{_missing(contents)}
{"".join(_block(block, 2) for block in contents.blocks)}
{_runs(contents.runs)}
{_video(video)}
</main>
<script type="application/json" id="data">{shown}</script>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("tailo_pl.report").joinpath(name).read_text(encoding="utf-8")


def _lead(contents: Contents, links: Sequence[tuple[str, str]]) -> str:
    """What came out, where to read on, and what the letters mean."""
    if len(contents.runs) == 1:  # then its parts rather than itself
        run = [(block.key, block.heading) for block in contents.runs[0].blocks]
        links = [one for link in links for one in (run if link[0] == "runs" else [link])]
    parts = ", ".join(f'<a href="#{key}">{escape(text[0].lower() + text[1:])}</a>' for key, text in links)
    terms = "".join(f"<div><dt>{escape(term)}</dt><dd>{escape(meaning)}</dd></div>" for term, meaning in TERMS)
    said = f'<p class="lead">{escape(contents.lead)}</p>' if contents.lead else ""
    return f'<section id="lead">{said}<p>On this page: {parts}.</p><dl class="terms">{terms}</dl></section>'


def _missing(contents: Contents) -> str:
    lines: dict[str, list[str]] = {}
    for run in contents.runs:
        for line in run.missing:
            lines.setdefault(line, []).append(run.name)
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}{_named(names, len(contents.runs))}</li>" for line, names in lines.items())
    return f'<section id="missing" class="note"><h2>What is missing</h2><ul>{items}</ul></section>'


def _named(names: list[str], count: int) -> str:
    """Whose line it is; folded away where many runs share it."""
    if count == 1:
        return ""
    listed = ", ".join(map(escape, names))
    return f" — {listed}" if len(names) < 3 else f"<details><summary>{len(names)} runs</summary>{listed}</details>"


def _runs(runs: Sequence[RunPart]) -> str:
    """One part per run, one of which is shown at a time."""
    first = max(range(len(runs)), key=lambda number: len(runs[number].blocks))  # the one with most to show
    options = "".join(
        f'<option value="{number}"{" selected" if number == first else ""}>{escape(run.name)}</option>'
        for number, run in enumerate(runs)
    )
    parts = "".join(
        f'<div class="run" data-run="{number}"{"" if number == first else " hidden"}><h3>{escape(run.name)}</h3>'
        f"{''.join(_block(block, 4) for block in run.blocks)}</div>"
        for number, run in enumerate(runs)
    )
    choice = f'<p class="choice"><label for="run">Run</label> <select id="run">{options}</select></p>'
    return f'<section id="runs"><h2>Runs</h2>{choice if len(runs) > 1 else ""}{parts}</section>'


def _block(block: Block, level: int) -> str:
    parts = [f"<h{level}>{escape(block.heading)}</h{level}>"]
    if block.text:
        parts.append(f"<p>{escape(block.text)}</p>")
    parts += [_table(title, rows) for title, rows in block.tables]
    if block.figures:
        parts.append(f'<div class="figures">{"".join(_figure(figure, level + 1) for figure in block.figures)}</div>')
    if block.code:
        parts.append(f"<details><summary>config.yaml</summary><pre>{escape(block.code)}</pre></details>")
    return f'<section id="{escape(block.key)}">{"".join(parts)}</section>\n'


def _table(title: str, rows: list[list[str]]) -> str:
    head, *body = rows
    text = [not all(_NUMBER.match(cell) for cell in column) for column in zip(*body, strict=True)]
    looks = [' class="text"' if is_text else "" for is_text in text] or [""] * len(head)
    cells = "".join(f'<th scope="col"{look}>{escape(cell)}</th>' for cell, look in zip(head, looks, strict=True))
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        f"{''.join(f'<td{look}>{escape(cell)}</td>' for cell, look in zip(rest, looks[1:], strict=True))}</tr>"
        for first, *rest in body
    )
    return (
        f'<div class="wide" role="region" aria-label="{escape(title)}" tabindex="0"><table><caption>{escape(title)}'
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _figure(figure: Figure, level: int) -> str:
    key = escape(figure.key)
    controls = "".join(_control(figure, index, control) for index, control in enumerate(figure.controls))
    return (
        f'<figure id="{key}" data-figure="{key}"><h{level}>{escape(figure.title)}</h{level}>'
        f"{f'<div class=controls>{controls}</div>' if controls else ''}"
        '<div class="drawing"></div><div class="legend"></div><dl class="facts"></dl>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _control(figure: Figure, index: int, control: Control) -> str:
    name = f"{figure.key}-control-{index}"
    return (
        f'<label for="{escape(name)}">{escape(control.name)}</label>'
        f'<input type="range" id="{escape(name)}" data-control="{index}" min="0" max="{len(control.values) - 1}" '
        f'step="1" value="{control.start}"><output for="{escape(name)}"></output>'
    )


def _video(video: Path | None) -> str:
    if video is None:
        return ""
    kind = VIDEO_TYPES.get(video.suffix.lower())
    if kind is None:
        expected = ", ".join(VIDEO_TYPES)
        raise UserError(f"{video}: cannot embed {video.suffix or 'this'}, expected one of {expected}")
    try:
        data = base64.b64encode(video.read_bytes()).decode()
    except OSError as error:
        raise UserError(f"{video}: cannot be read ({error.strerror}), expected a video") from error
    source = f"data:{kind};base64,{data}"
    if kind.startswith("image/"):
        shown = f'<img src="{source}" alt="An episode of the policy">'
    else:
        shown = f'<video controls src="{source}" aria-label="An episode of the policy"></video>'
    return f'<section id="video"><h2>Video</h2>{shown}</section>'
