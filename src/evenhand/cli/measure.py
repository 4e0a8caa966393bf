"""`evenhand measure`: the rates of decisions that were made, whoever made them."""

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli.options import (
    FILE_OPTIONS,
    JSON_OPTION,
    RATE_NAME,
    file_reading,
    flag,
    option,
    split,
)
from evenhand.cli.show import console, emit, grid, heading, show_lines
from evenhand.contracts import Params
from evenhand.errors import InvalidInput
from evenhand.tables import DECISION, chosen_groups, group_texts, read_frame, two_values
from evenhand.words import BoolArray, FloatArray

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.evaluation import Measurement, RateMeasure


@click.command(
    "measure",
    params=[
        click.Argument(["data"], metavar="DECISIONS"),
        option("--decision COL", "Column with what was decided.", required=True),
        option("--accepted VALUE", "The value of an acceptance. Default: 1 of 0/1 or -1/1."),
        option("--rejected A,B", "The values of rejections, if several."),
        option("--group COL", "Column with each person's group.", required=True),
        option("--groups A,B", "Keep only the rows of these groups."),
        option("--outcome COL", "Column with the outcome; empty where it is not known."),
        option("--good VALUE", "The value of a good outcome. Default: 1 of 0/1 or -1/1."),
        option("--bad A,B", "The values of bad outcomes, if several."),
        option(
            "--rate",
            "What to measure; may be given several times.",
            RATE_NAME,
            multiple=True,
            default=("selection", "fpr", "fnr"),
        ),
        option(
            "--delta", "All intervals hold at once with probability 1 - delta.", float, default=0.05
        ),
        flag("--drop-missing", "Leave out rows without a decision or a group."),
        *FILE_OPTIONS,
        JSON_OPTION,
    ],
)
def command(data: str, document: str | None, **options: Any) -> None:
    """Measure the decisions that you make today: rates, gaps and ratios with exact intervals.

    DECISIONS is a file (CSV, Excel, Parquet, JSON lines) with one row per person: what was decided,
    the group, and the outcome where it is known. No policy of evenhand is needed.

    \b
    Example: loans, repaid or not for those that were granted
      evenhand measure decisions.csv --decision approved --accepted yes \\
          --outcome repaid --good yes --group sex

    \b
    Which command measures what
      measure   decisions that were made, by whatever means
      test      a policy of `solve` on new people whose outcomes are all known
      evaluate  what another policy would have cost, from a log with probabilities

    Outcomes are usually known for accepted people only. Then the false positive and negative rates
    are not determined by the table: each missing outcome may be good or bad, and the range that
    this leaves is shown. The share of good outcomes among the accepted is determined.
    """
    from evenhand.evaluation import measure_decisions

    people = read_decided(data, options)
    measured = measure_decisions(
        people.accepted,
        people.group,
        people.label,
        rates=options["rate"],
        failure_probability=options["delta"],
    )
    notes = [line.strip() for line in people.lines]
    if emit(document, {**measured.to_json(), "table": people.source, "notes": notes}):
        return
    show_measurement(people, measured)
    if document is not None:
        click.echo(f"\nSaved: {document}")


@dataclass(frozen=True, eq=False)
class DecidedPeople:
    """People about whom something was decided: whether they were accepted, their groups and, where
    a column of outcomes was named, their labels; `lines` say how the table was read.
    """

    source: str
    accepted: BoolArray
    group: list[str]
    label: FloatArray | None
    lines: list[str]


def read_decided(data: str, options: Params) -> DecidedPeople:
    """The rows with a decision and a group."""
    decision, by, outcome = options["decision"], options["group"], options["outcome"]
    named = [name for name in (decision, by, outcome) if name]
    frame, _ = read_frame(data, **file_reading(options)).with_joined(by, named)
    frame = chosen_groups(frame, by, split(options["groups"]))
    unknown = frame[decision].missing | frame[by].missing
    if unknown.any() and not options["drop_missing"]:
        row = int(np.argmax(unknown))
        raise InvalidInput(
            f"{frame.source}: the decision or the group is missing in {unknown.sum():,} of "
            f"{len(frame.lines):,} rows (first: line {frame.lines[row]}).",
            hint="fill them in, or leave these rows out with --drop-missing.",
        )
    frame = frame.where(~unknown)
    decided, accepted = two_values(
        frame, decision, options["accepted"], split(options["rejected"]), DECISION
    )
    label, lines = None, [f"  accepted: {decision} = {accepted}"]
    if outcome:
        label, good = two_values(frame, outcome, options["good"], split(options["bad"]))
        lines.append(f"  good outcome: {outcome} = {good}")
    if unknown.any():
        lines.append(f"  left out: {unknown.sum():,} rows without a decision or a group")
    notes = list(frame.notes)
    group = [str(text) for text in group_texts(frame, by, notes)]
    lines += [f"  note: {note}" for note in notes]
    return DecidedPeople(frame.source, decided > 0, group, label, lines)


def show_measurement(people: DecidedPeople, measured: "Measurement") -> None:
    """How the table was read, every rate, and what the figures mean."""
    screen = console()
    screen.print(heading(f"{people.source}: {measured.people:,} people"))
    known = "" if people.label is None else f", outcomes known for {measured.outcomes:,}"
    show_lines(screen, [*people.lines, f"  {measured.accepted:,} accepted{known}"])
    for rate in measured.rates:
        show_rate(screen, rate)
    lines = [
        "",
        f"All intervals hold at once with probability {1 - measured.failure_probability:g} "
        "for the population",
        "that these people were drawn from independently.",
    ]
    if any(not rate.is_identified for rate in measured.rates):
        lines += [
            "A range such as 0.10 to 0.85: outcomes are missing, and each may be good or bad.",
            "With outcomes of the accepted alone no figure can say more; see evenhand evaluate",
            "for logs with probabilities.",
        ]
    show_lines(screen, lines)


def show_rate(screen: "Console", rate: "RateMeasure") -> None:
    """One rate of all groups, its gap and its ratio."""
    table = grid("group", ">rate", ">interval", ">of people", padding=2)
    for one in rate.groups:
        shown = (
            f"{one.least:.3f}"
            if one.least == one.largest
            else (f"{one.least:.3f} to {one.largest:.3f}")
        )
        people = f"{one.people:,}" + (f" + {one.unknown:,} unknown" if one.unknown else "")
        table.add_row(
            str(one.group),
            "nobody" if isnan(one.least) else shown,
            f"[{one.lower:.3f}, {one.upper:.3f}]",
            people,
        )
    screen.print(heading(f"\n{rate.name[0].upper()}{rate.name[1:]}"))
    screen.print(table)
    if len(rate.groups) > 1:
        for name, value, (lower, upper) in (
            ("largest gap", rate.gap, rate.gap_interval),
            ("smallest ratio", rate.ratio, rate.ratio_interval),
        ):
            shown = "not determined" if value is None else f"{value:.3f}"
            show_lines(screen, [f"  {name}: {shown} [{lower:.3f}, {upper:.3f}]"])
