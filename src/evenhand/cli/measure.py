"""`evenhand measure`: the rates of decisions that were made, whoever made them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli.gating import Gating, gate_options
from evenhand.cli.options import (
    COMMA_LIST,
    NATURAL,
    FileOptions,
    Share,
    file_options,
    rates_option,
)
from evenhand.cli.telling import Telling, fingerprint, leave, telling_options
from evenhand.errors import InvalidInput, collecting, raise_all
from evenhand.shown import counted
from evenhand.tables import (
    DECISION,
    Description,
    Note,
    chosen_groups,
    group_texts,
    many_left_out,
    own_description,
    read_rows,
    two_values,
)
from evenhand.words import BoolArray, FloatArray

if TYPE_CHECKING:
    from evenhand.evaluation.measurement import Compare


@click.command("measure")
@click.argument("data", metavar="DECISIONS")
@click.option("--decision", metavar="COL", required=True, help="Column with what was decided.")
@click.option(
    "--accepted",
    metavar="VALUE",
    help="The value of an acceptance, the decision a person hopes for. Default: what --rejected "
    "leaves, or 1 of 0/1 or -1/1.",
)
@click.option(
    "--rejected",
    metavar="A,B",
    type=COMMA_LIST,
    help="The values of rejections. Where a yes does harm (a search, a fine): --rejected yes.",
)
@click.option(
    "--group",
    "by",
    metavar="COL",
    multiple=True,
    help="Column with each person's group. Repeat it for several groupings, which are measured one "
    "by one and crossed; sex,race joins two columns into one grouping. A table of evenhand has its "
    "own.",
)
@click.option(
    "--groups", metavar="A,B", type=COMMA_LIST, help="Keep only the rows of these groups."
)
@click.option(
    "--outcome",
    metavar="COL",
    help="Column with the outcome; empty where it is not known. A table of evenhand has its own.",
)
@click.option(
    "--good",
    metavar="A,B",
    help="The value of a good outcome, or several. Default: 1 of 0/1 or -1/1.",
)
@click.option(
    "--bad", metavar="A,B", type=COMMA_LIST, help="The values of bad outcomes, if several."
)
@rates_option(
    ("selection", "fpr", "fnr"),
    "What to measure, and what --gate judges; repeat for several. Also understood: "
    "demographic_parity, equalized_odds, tpr.",
)
@click.option(
    "--compare",
    type=click.Choice(("difference", "ratio", "both")),
    default="difference",
    help="Compare differences of rates, ratios, or both; all that is shown shares delta.",
)
@click.option(
    "--reference",
    metavar="GROUP",
    help="Compare every group with this one only: fewer comparisons, narrower intervals.",
)
@click.option(
    "--pair",
    "pairs",
    metavar="A:B",
    multiple=True,
    help="Compare these two groups only; may be given several times.",
)
@click.option(
    "--fewest",
    metavar="N",
    type=NATURAL,
    default=1,
    help="Show groups with fewer people than this, but do not compare them.",
)
@click.option("--no-crossings", is_flag=True, help="Do not cross several groupings.")
@click.option(
    "--watch",
    is_flag=True,
    help="The file grows and you look at it again and again: all intervals hold at all looks at "
    "once, for groups that turn up later, too (rows in order of arrival; none changes).",
)
@click.option(
    "--limit",
    type=Share("[0, 1]"),
    help="Largest difference that is allowed; --gate makes it the exit code.",
)
@click.option(
    "--least-ratio", type=Share("(0, 1]"), help="Smallest ratio that is allowed, such as 0.8."
)
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="All comparisons hold at once with probability 1 - delta.",
)
@click.option("--drop-missing", is_flag=True, help="Leave out rows without a decision or a group.")
@gate_options
@telling_options
@file_options
def command(
    data: str,
    decision: str,
    accepted: str | None,
    rejected: tuple[str, ...] | None,
    by: tuple[str, ...],
    groups: tuple[str, ...] | None,
    outcome: str | None,
    good: str | None,
    bad: tuple[str, ...] | None,
    rates: tuple[str, ...],
    compare: "Compare",
    reference: str | None,
    pairs: tuple[str, ...],
    fewest: int,
    no_crossings: bool,
    watch: bool,
    limit: float | None,
    least_ratio: float | None,
    delta: float,
    drop_missing: bool,
    gating: Gating,
    telling: Telling,
    reading: FileOptions,
) -> None:
    """Measure the decisions that you make today: rates, gaps and ratios with exact intervals.

    DECISIONS is a file (CSV, Excel, Parquet, JSON lines), a description (.toml) or a known table
    with one row per person: what was decided, the group, and the outcome where it is known. No
    policy of evenhand is needed.

    \b
    Example: loans, repaid or not for those that were granted
      evenhand measure decisions.csv --decision approved --accepted yes \\
          --outcome repaid --good yes --group sex

    \b
    Example: two groupings and their crossings, as a gate of a build
      evenhand measure decisions.csv --decision approved --accepted yes \\
          --group sex --group race --rate selection --limit 0.1 --gate

    \b
    Which command measures what
      measure   decisions that were made, by whatever means
      test      a policy of `solve` on new people whose outcomes are all known
      evaluate  what another policy would have cost, from a log with probabilities

    Outcomes are usually known for accepted people only. Then the false positive and negative rates
    are not determined by the table: each missing outcome may be good or bad, and the range that
    this leaves is shown. The share of good outcomes among the accepted is determined; it is shown
    where FPR and FNR are, and no gate judges it.
    """
    from evenhand.evaluation import measure

    if least_ratio is not None and compare == "difference":
        compare = "ratio" if limit is None else "both"
    own = own_description(data)
    by = by or own_grouping(data, own)
    if own is not None and by == (own.group,):
        groups = groups or own.groups
    if outcome is None and own is not None:
        outcome = own.label
        good = good or own.good
        bad = bad or own.bad
    people = read_decided(
        data,
        reading,
        decision=decision,
        accepted=accepted,
        rejected=rejected or (),
        by=by,
        groups=groups or (),
        outcome=outcome,
        good=good,
        bad=bad or (),
        drop_missing=drop_missing,
    )
    opened = gating.open(delta, data)
    measured = measure(
        people.accepted,
        people.groupings if len(people.groupings) > 1 else people.groupings[by[0]],
        people.label,
        rates=rates,
        compare=compare,
        reference=reference,
        pairs=[named_pair(text) for text in pairs] or None,
        fewest=fewest,
        crossings=not no_crossings,
        watch=watch,
        delta=opened.delta,
    )
    verdict = opened.judge(measured, limit, least_ratio)
    telling.tell(
        measured.result(limit, least_ratio),
        title=f"Decisions in {people.source} by {', '.join(by)}",
        asked={
            "table": people.source,
            "SHA-256 of the table": fingerprint(data),
            "groups": by,
            "rates": rates,
            "largest difference allowed": limit,
            "smallest ratio allowed": least_ratio,
            "delta": opened.delta,
        },
        read=people.read,
        notes=people.notes,
    )
    leave(verdict)


def own_grouping(data: str, own: Description | None) -> tuple[str, ...]:
    """The grouping that the table names itself; an error for a file of rows, which names none."""
    if own is not None:
        return (own.group,)
    raise InvalidInput(
        f"nothing says which column of {data} is the group.",
        hint="name the column with the group of each person.",
        argument="group",
    )


def named_pair(text: str) -> tuple[str, str]:
    """The two groups of --pair A:B."""
    first, colon, second = text.partition(":")
    if not colon or not first.strip() or not second.strip():
        raise InvalidInput(
            f"--pair {text!r} is not A:B.", hint="--pair women:men compares women with men."
        )
    return first.strip(), second.strip()


@dataclass(frozen=True, eq=False)
class DecidedPeople:
    """People about whom something was decided: whether they were accepted, their groups and, where
    a column of outcomes was named, their labels; `read` and `notes` say how the table was read.
    """

    source: str
    accepted: BoolArray
    groupings: dict[str, list[str]]
    label: FloatArray | None
    read: list[str]
    notes: list[Note]


def read_decided(
    data: str,
    reading: FileOptions,
    *,
    decision: str,
    accepted: str | None,
    rejected: tuple[str, ...],
    by: tuple[str, ...],
    groups: tuple[str, ...],
    outcome: str | None,
    good: str | None,
    bad: tuple[str, ...],
    drop_missing: bool,
) -> DecidedPeople:
    """The rows with a decision and a group in every grouping."""
    if groups and len(by) > 1:
        raise InvalidInput(
            f"--groups keeps groups of one grouping, and there are {len(by)}: {', '.join(by)}.",
            hint="leave --groups out, or name one --group.",
            argument="groups",
        )
    frame = read_rows(data, **reading.given())
    for group in dict.fromkeys(by):
        named = [name for name in (decision, group, outcome) if name]
        frame, _ = frame.with_joined(group, named)
    if groups:
        frame = chosen_groups(frame, by[0], groups)
    unknown = frame[decision].missing
    for group in by:
        unknown = unknown | frame[group].missing
    errors: list[InvalidInput] = []
    if unknown.any() and not drop_missing:
        row = int(np.argmax(unknown))
        errors.append(
            InvalidInput(
                f"{frame.source}: the decision or the group is missing in {unknown.sum():,} of "
                f"{len(frame.lines):,} rows (first: line {frame.lines[row]}).",
                hint="fill them in, or leave these rows out with --drop-missing.",
            )
        )
    frame = frame.where(~unknown)
    lines = []
    label = None
    with collecting(errors):
        decided, accepted_value = two_values(frame, decision, accepted, rejected, DECISION)
        lines.append(decision_line("accepted", decision, accepted_value, rejected))
    if outcome:
        with collecting(errors):
            label, good_value = two_values(frame, outcome, good, bad)
            lines.append(f"good outcome: {outcome} = {good_value}")
    raise_all(errors)
    if unknown.any():
        rows = counted(int(unknown.sum()), "row", "rows")
        lines.append(f"left out: {rows} without a decision or a group")
    notes = [*frame.notes, *many_left_out(int(unknown.sum()), len(unknown))]
    groupings = {group: [str(text) for text in group_texts(frame, group, notes)] for group in by}
    return DecidedPeople(frame.source, decided > 0, groupings, label, lines, notes)


def decision_line(word: str, column: str, accepted: str, rejected: tuple[str, ...]) -> str:
    """Which values of a column were read as which decision."""
    named = f"; rejected: {' or '.join(rejected)}" if rejected else ""
    return f"{word}: {column} = {accepted}{named}"
