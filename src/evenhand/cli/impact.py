"""`evenhand impact`: selection rates and impact ratios per group and intersection."""

from math import inf
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli.gating import Gating, gate_options, leave
from evenhand.cli.measure import decision_line, own_grouping
from evenhand.cli.options import (
    COMMA_LIST,
    FileOptions,
    Share,
    file_options,
    json_options,
)
from evenhand.cli.reporting import fingerprint, report_option, write_page
from evenhand.cli.show import console, emit, grid, heading, show_lines
from evenhand.errors import InvalidInput, collecting, raise_all
from evenhand.shown import counted
from evenhand.tables import DECISION, Note, group_texts, own_description, read_rows, two_values

if TYPE_CHECKING:
    from evenhand.evaluation.impact_table import ImpactTable

VERDICTS = {"within": "yes", "above": "NO", "not shown": "not shown", None: ""}


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
@report_option
@file_options
@json_options
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
    page: Path | None,
    reading: FileOptions,
    document: str | Path | None,
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

    A ratio below 0.8 on these people is not yet one of the population: "allowed" says what the
    interval shows. "more" is how many more selections of that category would reach 0.8 here.
    """
    from evenhand.evaluation import gate, impact

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
    result = opened.judge(table, None, least_ratio)
    figures = {**table.to_json(), "table": frame.source}
    if result is not None:
        figures["gate"] = result.to_json()
    if not emit(document, figures):
        show_table(frame.source, table, lines)
        if document is not None:
            click.echo(f"\nSaved: {document}")
    write_page(
        page,
        table,
        title=f"Impact ratios in {frame.source} by {', '.join(by)}",
        asked={
            "table": frame.source,
            "SHA-256 of the table": fingerprint(data),
            "people": f"{table.people:,}, {table.selected:,} of them selected",
            "selected" if score is None else "score above": f"{selected} = {value}"
            if score is None
            else f"{score} > {table.cutoff:g}",
            "groups": by,
            "unknown groups": unknown,
            "ratios relative to": reference or "the category with the largest rate",
            "smallest ratio allowed": least_ratio,
            "smallest share of a category": smallest_share,
            "delta": opened.delta,
        },
        verdict=gate(table, None, least_ratio),
        quiet=document == "-",
    )
    leave(result, quiet=document == "-")


def show_table(source: str, table: "ImpactTable", lines: list[str]) -> None:
    """The table of each grouping, and what it means."""
    screen = console()
    screen.print(heading(f"{source}: {counted(table.people)}, {table.selected:,} selected"))
    if table.cutoff is not None:
        lines = [*lines, f"selected: a score above {table.cutoff:g}"]
    show_lines(screen, [f"  {line}" for line in lines])
    for grouping in dict.fromkeys(one.grouping for one in table.rows):
        rate = ">rate" if table.cutoff is None else ">scoring rate"
        shown = grid(
            "category", ">people", ">selected", rate, ">ratio", ">interval", ">allowed", ">more"
        )
        for one in table.rows:
            if one.grouping != grouping:
                continue
            ends = ""
            if one.ratio_interval is not None:
                low, high = (f"{end:.2f}" if end < inf else "inf" for end in one.ratio_interval)
                ends = f"[{low}, {high}]"
            ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
            shown.add_row(
                one.group,
                f"{one.people:,}",
                f"{one.selected:,}",
                f"{one.rate:.3f}",
                "too few" if one.excluded else ratio,
                ends,
                VERDICTS[one.status],
                f"{one.more_selections:,}" if one.more_selections else "",
            )
        screen.print(heading(f"\nBy {grouping}" if grouping else "\nBy category"))
        screen.print(shown)
        if table.unknown.get(grouping):
            show_lines(screen, [f"  {counted(table.unknown[grouping])} of unknown category"])
    show_lines(screen, ["", *wrap(" ".join([table.meaning, *table.notes]), 79)])
