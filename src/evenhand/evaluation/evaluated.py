"""What is said of an evaluation: how the gaps stand, and what the candidate would cost."""

from math import nan
from typing import TYPE_CHECKING

from evenhand.result import (
    Amount,
    Between,
    Cell,
    Curves,
    Line,
    Result,
    Table,
    Verdict,
    column,
    shown,
    with_rows,
)

if TYPE_CHECKING:
    from evenhand.evaluation.evaluate import Estimate, Evaluation

NOTE = "Estimates are doubly robust; the intervals hold together, at every row of the log at once."


def evaluated(record: "Evaluation") -> Result:
    """The result of an evaluation; of a log that contradicts itself nothing is claimed."""
    findings = record.findings() if record.gaps or record.contradiction else ()
    verdict = Verdict(findings, record.delta) if findings else None
    within = verdict is not None and verdict.passed
    ends = shown(Between(record.loss.lower, record.loss.upper), "cost")
    return Result(
        kind="evaluation",
        title=f"What {record.candidate} would have done",
        record=record,
        answer=(
            record.sentence,
            f"Cost per person: {shown(_value(record.loss), 'cost')}; {ends} in the population.",
        ),
        verdict=verdict,
        claimed=findings if within else None,
        facts=_facts(record),
        tables=with_rows(*_tables(record)),
        figures=_figures(record),
        beware=tuple(f"{one}." for one in record.warnings),
        assumptions=tuple(record.assumptions),
    )


def _value(estimate: "Estimate") -> float:
    return nan if estimate.value is None else estimate.value


def _ends(estimate: "Estimate") -> Between:
    return Between(estimate.lower, estimate.upper)


def _facts(record: "Evaluation") -> dict[str, Cell]:
    share = record.accepted / record.people if record.people else nan
    worth = record.support.effective_accepts
    return {
        "decisions": Amount(record.people, "count"),
        "accepted": Amount(record.accepted, "count"),
        "accepted, of all decisions": Amount(share, "percent"),
        "accepted, outcome open": Amount(record.open, "count"),
        "of no group that is compared": Amount(record.outside, "count"),
        "equally weighted people that the candidate's accepts are worth": Amount(worth, "count"),
    }


def _tables(record: "Evaluation") -> tuple[Table, ...]:
    limit = record.limit
    gaps = Table.of(
        "gaps",
        "Gaps",
        record.gaps,
        column("rate"),
        column("group"),
        column("against", take=lambda gap: gap.reference),
        column("estimate", "estimate", "difference", lambda gap: _value(gap.estimate)),
        column("interval", "in the population", "difference", lambda gap: _ends(gap.estimate)),
        column("status", f"at most {limit:g}", "status", lambda gap: gap.stands(limit)),
        note=NOTE,
    )
    rates = Table.of(
        "rates",
        "Rates",
        record.rates,
        column("rate"),
        column("group"),
        column("estimate", "estimate", "share", lambda one: _value(one.estimate)),
        column("interval", "in the population", "share", lambda one: _ends(one.estimate)),
        column("labelled", "people", "count"),
        column("effective", "worth", "count"),
        note="Worth: as many equally weighted people would be as informative.",
    )
    cost = Table.of(
        "cost",
        "Cost",
        [record.loss],
        column("cost", "cost per person", "cost", _value),
        column("interval", "in the population", "cost", _ends),
    )
    return gaps, rates, cost


def _figures(record: "Evaluation") -> tuple[Curves, ...]:
    """Each gap along the rows of the log, with its interval and the limit; then the cost."""
    course = record.course
    rows = course.rows.tolist()
    titles = {"within": "Within the limit", "above": "Above the limit"}
    made = []
    for number, gap in enumerate(record.gaps):
        lines = (Line(f"gap {gap.name}", *course.gaps[:, number].T.tolist()),)
        title = titles.get(gap.stands(record.limit), "Not shown")
        limits = (-record.limit, record.limit)
        made.append(_along(title, f"gap {gap.name}", rows, lines, limits))
    lines = (Line("cost per person", *course.loss.T.tolist()),)
    return (*made, _along("What it would cost", "cost per person", rows, lines, ()))


def _along(
    title: str, what: str, rows: list[float], lines: tuple[Line, ...], limits: tuple[float, ...]
) -> Curves:
    return Curves(
        title, "rows of the log so far", what, rows, lines, limits, NOTE, logarithmic=True
    )
