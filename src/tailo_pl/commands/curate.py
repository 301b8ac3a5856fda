"""`tailo curate`: logs ranked by what the expert's states say, and the good ones kept."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, columns, opened, recordings, trusting


@click.command()
@recordings
@click.option("--run", "run_dir", type=PATH, required=True, metavar="RUN", help="Folder of a finished run.")
@click.option("--out", type=PATH, default=Path("curation.csv"), help="The table of episodes; also .parquet.")
@click.option("--keep", type=float, metavar="PART", help="Keep this part of the episodes, those that weigh most.")
@click.option("--min-share", type=float, metavar="SHARE", help="Keep the episodes with this share of the weight.")
@click.option("--write", "kept_path", type=PATH, metavar="PATH", help="Where the kept episodes go, in their format.")
@click.option("--weights", type=PATH, metavar="FILE", help="Write R and W of every frame as Parquet.")
@click.option("--figures", type=PATH, metavar="DIR", help="Draw figures there.")
@columns
@trusting
def curate(
    data: tuple[str, ...],
    run_dir: Path,
    out: Path,
    keep: float | None,
    min_share: float | None,
    kept_path: Path | None,
    weights: Path | None,
    figures: Path | None,
    columns: tuple[str, ...],
    features: tuple[str, ...],
) -> None:
    """Rank logs by the expert's states: tailo curate LOGS --run RUN."""
    from tailo_pl.commands.curation_table import show_curation
    from tailo_pl.errors import UserError
    from tailo_pl.runs import scoring
    from tailo_pl.runs.curated import Pile, write_table, write_weights
    from tailo_pl.runs.curation import curate as judge

    if kept_path is not None and keep is None and min_share is None:
        raise UserError("--write: given without --keep or --min-share, expected one of them")
    for path, ending in ((out, (".csv", ".parquet")), (weights, (".parquet",))):
        if path is not None and path.suffix not in ending:
            raise UserError(f"{path}: unknown format, expected {' or '.join(ending)}")
    for path in (out, weights, kept_path):
        if path is not None and path.exists():
            raise UserError(f"{path}: already there; choose another name, or delete it")
    remembered = scoring.layout_of(run_dir)
    logs = opened(data, columns, features, remembered=remembered)
    pile = Pile.of(data, logs, remembered.kind)
    found = judge(run_dir, logs)
    kept = found.kept(keep, min_share)
    written = pile.write_kept(kept, kept_path) if kept_path is not None else []
    write_table(found.columns(logs, pile.episodes, kept), out)
    if weights is not None:
        write_weights(found.scores, pile.episodes, logs, weights)
    if figures is not None:
        from tailo_pl.report.curation import draw

        draw(found, logs, pile.episodes, figures)
    show_curation(found, logs, pile.episodes, kept, [*written, out, *([weights] if weights else [])])
