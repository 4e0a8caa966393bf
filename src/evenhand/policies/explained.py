"""What is said of an explanation: the probability, what moves it, and the least change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.result import Amount, Bar, Cell, Intervals, Result, Table, column, shown, with_rows
from evenhand.shown import counted

if TYPE_CHECKING:
    from evenhand.policies.explanation import Explanation, Reason

Row = tuple[int, "Reason", bool]


def explained(record: "Explanation") -> Result:
    """The result of one person's explanation."""
    share = shown(record.probability, "weight")
    return Result(
        kind="explanation",
        title=f"Why the probability of being accepted is {share}",
        record=record,
        answer=(*_answer(record), record.change_sentence),
        facts={
            "probability of being accepted": Amount(record.probability, "weight"),
            "mean of the people compared with": Amount(record.reference_probability, "weight"),
            "people compared with": record.compared_with,
            "largest standard error of a share": Amount(record.standard_error, "weight")
            if record.standard_error
            else None,
        },
        tables=with_rows(_reasons({0: record})),
        figures=_figures(record),
        beware=record.notes,
    )


def all_explained(title: str, found: "Mapping[int, Explanation]") -> Result:
    """The result of the explanations of several people, each by the number of their row."""
    first = next(iter(found.values()))
    answers = (
        f"Row {row}: {sentence}"
        for row, one in found.items()
        for sentence in (*_answer(one), one.change_sentence)
    )
    return Result(
        kind="explanations",
        title=title,
        record={"people": [{"row": row, **one.to_json()} for row, one in found.items()]},
        answer=tuple(answers),
        facts={
            f"row {row}": Amount(one.probability, "weight")
            for row, one in found.items()
            if len(found) > 1
        },
        tables=with_rows(_reasons(found)),
        figures=_figures(first),
        beware=tuple(dict.fromkeys(note for one in found.values() for note in one.notes)),
    )


def _answer(record: "Explanation") -> list[str]:
    drawn = " The decision is drawn with it." if record.chance_decides else ""
    share = shown(record.probability, "weight")
    mean = shown(record.reference_probability, "weight")
    answer = [
        f"Probability of being accepted: {share}.{drawn}",
        f"Compared with {counted(record.compared_with)} ({record.reference}), whose mean "
        f"probability is {mean}.",
    ]
    if not record.reasons:
        answer.append("No column has a share in the difference.")
    if record.unit == "score":
        total = sum(one.share for one in (*record.reasons, *record.protected))
        answer.append(
            "Shares are parts of the score, in standard deviations of the score among these "
            f"people; they add up to {shown(total, 'extra')}."
        )
    if record.standard_error:
        answer.append("Shares are estimates, each with its standard error.")
    for one, other in record.unsettled:
        answer.append(f"The order is not settled: {one} before {other}.")
    return answer


def _reasons(found: "Mapping[int, Explanation]") -> Table:
    """The columns with their shares, those that speak against the person first."""
    rows: list[Row] = []
    for name, record in found.items():
        for of in (record.reasons, record.protected):
            ordered = sorted(of, key=lambda one: one.share > 0)
            rows += [(name, one, of is record.protected) for one in ordered]
    return Table.of(
        "reasons",
        "What speaks against acceptance (below 0), and for it",
        rows,
        column("person", take=lambda row: f"row {row[0]}" if row[0] else ""),
        column("share", "share", "extra", lambda row: row[1].share),
        column("error", "error", "weight", lambda row: row[1].error or None),
        column("text", "reason", take=lambda row: row[1].text),
        column("code", "code", take=lambda row: row[1].code),
        column("column", "column", take=lambda row: row[1].column),
        column("value", "value", take=lambda row: _value(row[1])),
        column("direction", "", take=lambda row: "" if row[2] else row[1].direction),
        column("protected", "", take=lambda row: "protected: no reason" if row[2] else ""),
        parts=1,
    )


def _value(one: "Reason") -> Cell:
    return None if one.value is None else shown(one.value)


def _figures(record: "Explanation") -> tuple[Intervals, ...]:
    rows = (*record.reasons, *record.protected)
    bars = tuple(
        Bar(
            one.column if one.value is None else f"{one.column} = {shown(one.value)}",
            one.share,
            min(0.0, one.share),
            max(0.0, one.share),
        )
        for one in rows
    )
    what = "share of the probability"
    if record.unit == "score":
        what = "share of the score, in its standard deviations"
    note = f"Compared with {counted(record.compared_with)} ({record.reference})."
    return (Intervals("What moves it", what, bars, note=note),) if bars else ()
