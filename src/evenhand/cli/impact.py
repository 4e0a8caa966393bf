"""`evenhand impact`: selection rates and impact ratios per group and intersection."""

import click
import numpy as np

from evenhand.cli.gating import Gating, gate_options
from evenhand.cli.measure import decision_line, own_grouping
from evenhand.cli.options import (
    COMMA_LIST,
    FileOptions,
    Share,
    file_options,
)
from evenhand.cli.telling import Telling, fingerprint, leave, telling_options
from evenhand.errors import InvalidInput, collecting, raise_all
from evenhand.tables import DECISION, Note, group_texts, own_description, read_rows, two_values


@click.command("impact")
@click.argument("data", metavar="DECISIONS")
@click.option("--selected", metavar="COL", help="Column that says who was selected.")
@click.option(
    "--accepted", metavar="VALUE", help="The value of a selection. Default: 1 of 0/1 or -1/1."
)
@click.option("--rejected", metavar="A,B", type=COMMA_LIST, help="The other values, if several.")
@click.option(
    "--score", metavar="COL", help="Column with scores, instead of --selected: scoring rates."
)
@click.option(
    "--cutoff",
    type=float,
    help="The score above which a person counts.  [default: the median of all people]",
)
@click.option(
    "--group",
    "by",
    metavar="COL",
    multiple=True,
    help="Column with the category. Repeat it: each grouping is shown, and their intersections. A "
    "table of evenhand has its own.",
)
@click.option("--reference", metavar="GROUP", help="Ratios relative to this category.")
@click.option(
    "--unknown",
    metavar="A,B",
    type=COMMA_LIST,
    help="How an unknown category is written; empty cells are unknown anyway.",
)
@click.option(
    "--smallest-share",
    type=Share("[0, 1)"),
    default=0.02,
    help="Categories with a smaller share of the people take no part in ratios.",
)
@click.option("--no-crossings", is_flag=True, help="Do not cross several groupings.")
@click.option(
    "--least-ratio",
    type=Share("(0, 1]"),
    default=0.8,
    help="Smallest ratio that is allowed: four fifths.",
)
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="All intervals hold at once with probability 1 - delta.",
)
@gate_options
@telling_options
@file_options
def command(
    data: str,
    selected: str | None,
    accepted: str | None,
    rejected: tuple[str, ...] | None,
    score: str | None,
    cutoff: float | None,
    by: tuple[str, ...],
    reference: str | None,
    unknown: tuple[str, ...] | None,
    smallest_share: float,
    no_crossings: bool,
    least_ratio: float,
    delta: float,
    gating: Gating,
    telling: Telling,
    reading: FileOptions,
) -> None:
    """Selection rates and impact ratios per category and intersection, with exact intervals.

    DECISIONS is a file (CSV, Excel, Parquet, JSON lines), a description (.toml) or a known table
    with one row per person. The answer has the form of New York City's Local Law 144: numbers of
    people, selection (or scoring) rates, and ratios to the largest rate. People of unknown category
    are counted and left out; categories with less than 2% of the people are shown without a ratio.

    \b
    Example: by sex; with --group race, too, by race and by both
      evenhand impact decisions.csv --selected approved --accepted yes --group sex

    \b
    Example: scores, as a gate that is red if a ratio is shown to be below four fifths
      evenhand impact applicants.csv --score fit --group sex --gate

    A ratio below 0.8 on these people is not yet one of the population: "at least 0.8" says what
    the interval shows.
    """
    from evenhand.evaluation import impact

    if (selected is None) == (score is None):
        raise InvalidInput(
            "an impact table is about selections or about scores: one of them is named.",
            hint="--selected hired --accepted yes, or --score fit.",
            argument="selected",
        )
    by = by or own_grouping(data, own_description(data))
    frame = read_rows(data, **reading.given())
    for group in dict.fromkeys(by):
        frame, _ = frame.with_joined(group, [name for name in (selected, score, group) if name])
    column = selected or score or ""
    undecided = frame[column].missing
    errors: list[InvalidInput] = []
    if undecided.any():
        errors.append(
            InvalidInput(
                f"{frame.source}: {column!r} is missing in {undecided.sum():,} of {len(frame):,} "
                "rows.",
                hint="leave out people about whom nothing was decided.",
            )
        )
    lines = []
    with collecting(errors):
        known = frame.where(~undecided)
        if selected is not None:
            decided, value = two_values(known, selected, accepted, rejected or (), DECISION)
            values = (decided > 0).astype(np.float64)
            lines.append(decision_line("selected", selected, value, rejected or ()))
        else:
            values = known.finite(column)
    raise_all(errors)
    notes: list[Note] = []
    strange = {"", *(unknown or ())}
    groupings = {}
    for group in by:
        missing = frame[group].missing
        texts = group_texts(frame, group, notes)
        groupings[group] = [
            None if gone or str(text) in strange else str(text)
            for text, gone in zip(texts, missing, strict=True)
        ]
    opened = gating.open(delta, data)
    table = impact(
        values,
        groupings,
        scores=score is not None,
        cutoff=cutoff,
        reference=reference,
        smallest_share=smallest_share,
        crossings=not no_crossings,
        least_ratio=least_ratio,
        delta=opened.delta,
    )
    verdict = opened.judge(table, None, least_ratio)
    telling.tell(
        table.result(),
        title=f"Impact ratios in {frame.source} by {', '.join(by)}",
        asked={
            "table": frame.source,
            "SHA-256 of the table": fingerprint(data),
            "score": score,
            "groups": by,
            "unknown groups": unknown,
            "ratios relative to": reference or "the category with the largest rate",
            "smallest ratio allowed": least_ratio,
            "smallest share of a category": smallest_share,
            "delta": opened.delta,
        },
        read=lines,
        notes=notes,
    )
    leave(verdict)
