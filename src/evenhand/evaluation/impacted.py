"""What is said of an impact table: which ratios are shown to be too small, then every category."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.evaluation.gates import gate
from evenhand.evaluation.measured import INDEPENDENT
from evenhand.result import Amount, Bar, Between, Intervals, Result, Table, column, shown
from evenhand.shown import counted

if TYPE_CHECKING:
    from evenhand.evaluation.impact_table import ImpactRow, ImpactTable

FEW = 4
"""So many categories are named in the answer; the table has all of them."""
STANDS = {"within": "holds", "above": "fails", "not shown": "not shown"}


def impacted(record: "ImpactTable") -> Result:
    """The result of an impact table."""
    least = record.least_ratio
    bars = tuple(
        Bar(_name(one), one.ratio, *one.ratio_interval)
        for one in record.rows
        if one.ratio_interval is not None
    )
    title = f"Impact ratios; at least {least:g} is asked for"
    share = record.selected / record.people if record.people else 0.0
    return Result(
        kind="impact",
        title=f"Impact ratios of {record.people:,} people",
        record=record,
        answer=(
            *_answer(record),
            f"All intervals hold at once with probability {1 - record.delta:g}.",
        ),
        verdict=gate(record, None, least),
        facts={
            "people": record.people,
            "selected": record.selected,
            "selected, of all people": Amount(share, "percent"),
            "cut-off of the score": record.cutoff,
            **{
                f"of unknown {grouping or 'category'}, left out": people
                for grouping, people in record.unknown.items()
                if people
            },
        },
        tables=(_table(record),),
        figures=(Intervals(title, "impact ratio", bars, (least,), 1.0),) if bars else (),
        assumptions=(INDEPENDENT, record.meaning, *record.notes),
    )


def _answer(record: "ImpactTable") -> list[str]:
    least = f"{record.least_ratio:g}"
    below = [one for one in record.rows if one.status == "above"]
    low_here = [
        one
        for one in record.rows
        if one.status == "not shown" and one.ratio is not None and one.ratio < record.least_ratio
    ]
    answer = []
    if below:
        answer.append(f"Shown to be below {least} in the population: {_listed(below)}.")
    if low_here:
        answer.append(
            f"Below {least} on these people, which does not yet show it for the population: "
            f"{_listed(low_here)}."
        )
    if not below and not low_here:
        all_hold = all(one.status == "within" for one in record.rows if one.status is not None)
        also = "; all are shown to be at least that in the population" if all_hold else ""
        answer.append(f"No impact ratio is below {least} on these people{also}.")
    return answer


def _listed(rows: Sequence["ImpactRow"]) -> str:
    named = []
    for one in rows[:FEW]:
        ends = "" if one.ratio_interval is None else shown(Between(*one.ratio_interval), "ratio")
        named.append(f"{_name(one)} ({shown(one.ratio, 'ratio')}; {ends} in the population)")
    more = f" and {len(rows) - FEW} more" if len(rows) > FEW else ""
    return "; ".join(named) + more


def _name(one: "ImpactRow") -> str:
    return f"{one.grouping}: {one.group}" if one.grouping else one.group


def _table(record: "ImpactTable") -> Table:
    note = (
        "Selections missing: how many more selections of that category would bring its ratio on "
        f"these people to {record.least_ratio:g}."
    )
    for grouping, people in record.unknown.items():
        if people:
            note += f" Left out: {counted(people)} of unknown {grouping or 'category'}."
    if any(one.excluded for one in record.rows):
        note += " Too few: a category with too small a share of the people has no ratio."
    return Table.of(
        "categories",
        "Categories",
        record.rows,
        column("grouping", take=lambda one: one.grouping),
        column("group", "category", take=lambda one: one.group),
        column("people", "people", "count"),
        column("selected", "selected", "count"),
        column("rate", "selection rate" if record.cutoff is None else "scoring rate", "share"),
        column("ratio", "impact ratio", "ratio"),
        column(
            "ratio_interval",
            "in the population",
            "ratio",
            lambda one: None if one.ratio_interval is None else Between(*one.ratio_interval),
        ),
        column(
            "stands",
            f"at least {record.least_ratio:g}",
            take=lambda one: "too few" if one.excluded else STANDS.get(one.status, ""),
        ),
        column(
            "more_selections",
            "selections missing",
            "count",
            lambda one: one.more_selections or None,
        ),
        note=note,
        parts=1,
        most=40,
    )
