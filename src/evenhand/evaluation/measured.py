"""What is said of a measurement: the largest gaps first, then every comparison and every rate."""

from collections.abc import Iterator, Sequence
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Literal

from evenhand.evaluation.gates import gate
from evenhand.fairness.acceptance import acceptance_table
from evenhand.result import (
    Amount,
    Bar,
    Between,
    Cell,
    Intervals,
    Result,
    Table,
    Taken,
    Verdict,
    column,
    shown,
    with_rows,
)

if TYPE_CHECKING:
    from evenhand.evaluation.measurement import Measurement, PairMeasure, RateMeasure

FEW = 4
"""So many rates are named in the answer; the tables have all of them."""
MOST_COMPARED = 12
"""So many comparisons of one rate are shown to people; crossed groups have hundreds of pairs."""
MOST_DRAWN = 24
INDEPENDENT = (
    "the people of the table were drawn independently from the population that the statement is "
    "about, each person once"
)
UNDETERMINED = (
    "outcomes are missing, and each may be good or bad. Where a rate is a range, such as 0.100 to "
    "0.850, these outcomes do not determine it, and no method can say more without further "
    "assumptions; see `evenhand evaluate` for logs with probabilities"
)

Compared = tuple["RateMeasure", "PairMeasure"]


def measured(
    record: "Measurement", limit: float | None = None, least_ratio: float | None = None
) -> Result:
    """The result of a measurement, judged if something is allowed."""
    judged = limit is not None or least_ratio is not None
    verdict = gate(record, limit, least_ratio) if judged else None
    return Result(
        kind="measurement",
        title=f"Rates of {record.people:,} decisions",
        record=record,
        answer=_answer(record),
        verdict=verdict,
        facts=_facts(record),
        tables=_tables(record, verdict),
        figures=_figures(record, limit, least_ratio),
        beware=_beware(record),
        assumptions=_assumptions(record),
        read=record.read,
    )


def _answer(record: "Measurement") -> tuple[str, ...]:
    sure = f"with probability {1 - record.delta:g}"
    rates = sorted(record.rates, key=lambda rate: -rate.gap_interval[0])
    answer = [_rate_sentence(rate) for rate in rates if rate.pairs]
    if not answer:
        answer = ["Nothing is compared: there is one group only, or every group is too small."]
    else:
        left = len(answer) - FEW
        answer = answer[:FEW]
        if left > 0:
            answer.append(f"{left} further comparisons of rates are in the tables below.")
        looks = ""
        if record.watch:
            looks = ", at all looks at the growing table and for groups that turn up later"
        answer.append(f"All of these intervals hold at once {sure}{looks}.")
    if record.acceptance is None:
        return tuple(answer)
    said = record.acceptance.sentences
    return (*answer, *said) if record.acceptance.useful else (*said, *answer)


def _facts(record: "Measurement") -> dict[str, Cell]:
    facts: dict[str, Cell] = {
        "people": record.people,
        "accepted": Amount(record.accepted, "count"),
        "accepted, of all people": Amount(
            record.accepted / record.people if record.people else nan, "percent"
        ),
        "outcomes known": record.outcomes or None,
    }
    if record.cost is not None and record.cost_interval is not None:
        facts["cost per person here"] = Amount(record.cost, "cost")
        facts["cost in the population"] = Amount(Between(*record.cost_interval), "cost")
    return facts


def _tables(record: "Measurement", verdict: Verdict | None) -> tuple[Table, ...]:
    compared = [(rate, pair) for rate in record.rates for pair in _farthest_first(rate.pairs)]
    pairs = Table.of(
        "pairs",
        "Groups compared",
        compared,
        column("rate", "rate", take=lambda row: row[0].name),
        column("grouping", "grouping", take=lambda row: row[0].grouping),
        column("group", "group", take=lambda row: str(row[1].group)),
        column("against", "against", take=lambda row: str(row[1].reference)),
        *_ends("difference"),
        *_ends("ratio"),
        note="Pairs whose difference is shown to be largest stand first."
        if any(len(rate.pairs) > MOST_COMPARED for rate in record.rates)
        else "",
        parts=2,
        most=MOST_COMPARED,
    )
    groups = Table.of(
        "rates",
        "Rates",
        [(rate, one) for rate in record.rates for one in rate.groups],
        column("rate", "rate", take=lambda row: row[0].name),
        column("grouping", "grouping", take=lambda row: row[0].grouping),
        column("group", "group", take=lambda row: str(row[1].group)),
        column("people", "people", "count", lambda row: row[1].people),
        column("counted", "of whom", take=lambda row: row[0].counted),
        column("unknown", "outcome missing", "count", lambda row: row[1].unknown or None),
        column("here", "rate here", "share", lambda row: _between(row[1].least, row[1].largest)),
        column(
            "interval",
            "in the population",
            "share",
            lambda row: Between(row[1].lower, row[1].upper),
        ),
        parts=2,
    )
    tables = [pairs, groups]
    if record.acceptance is not None:
        title = "Whom it accepts, of these people"
        tables.append(acceptance_table(record.acceptance, title))
    if verdict is not None:
        tables.append(verdict.table)
    return with_rows(*tables)


def _between(low: float, high: float) -> Cell:
    return nan if isnan(low) else Between(low, high)


def _ends(kind: Literal["difference", "ratio"]) -> Iterator[Taken]:
    """The columns of differences, or of ratios: on these people, and in the population."""

    def here(row: Compared) -> Cell:
        value: float | None = getattr(row[1], kind)
        if getattr(row[1], f"{kind}_interval") is None:
            return None
        return nan if value is None else value

    def there(row: Compared) -> Cell:
        ends = getattr(row[1], f"{kind}_interval")
        return None if ends is None else Between(*ends)

    yield column(kind, f"{kind} here", kind, here)
    yield column(f"{kind}_interval", "in the population", kind, there)


def _rate_sentence(rate: "RateMeasure") -> str:
    parts = []
    if any(pair.difference_interval for pair in rate.pairs):
        low, high = (shown(end, "share") for end in rate.gap_interval)
        pair = rate.largest_pair
        if pair is None:
            parts.append(
                f"these outcomes do not determine the largest gap; it lies between {low} and {high}"
            )
        else:
            parts.append(
                f"the largest gap is {shown(rate.gap, 'share')} ({pair.name}) on these people, and "
                f"between {low} and {high} in the population"
            )
    if rate.ratio_interval is not None:
        here = "" if rate.ratio is None else f"{shown(rate.ratio, 'ratio')} on these people, and "
        low, high = (shown(end, "ratio") for end in rate.ratio_interval)
        parts.append(f"the smallest ratio is {here}between {low} and {high} in the population")
    by = f" by {rate.grouping}" if rate.grouping else ""
    return f"{rate.name[0].upper()}{rate.name[1:]}{by}: {'; '.join(parts)}."


def _farthest_first(pairs: Sequence["PairMeasure"]) -> Sequence["PairMeasure"]:
    """As they are if they are few; else those first whose difference is shown to be largest."""
    if len(pairs) <= MOST_COMPARED:
        return pairs

    def distance(pair: "PairMeasure") -> tuple[float, float]:
        """The least |difference| (or |log ratio|) that the interval allows, then the value."""
        if pair.difference_interval is not None:
            low, high = pair.difference_interval
            return max(0.0, low, -high), abs(pair.difference or 0.0)
        low, high = pair.ratio_interval or (0.0, inf)
        return max(0.0, low - 1.0, 1.0 - high), abs((pair.ratio or 1.0) - 1.0)

    return sorted(pairs, key=distance, reverse=True)


def _figures(
    record: "Measurement", limit: float | None, least_ratio: float | None
) -> tuple[Intervals, ...]:
    bars: dict[str, list[Bar]] = {"difference": [], "ratio": []}
    for rate in record.rates:
        where = f"{rate.symbol} by {rate.grouping}: " if rate.grouping else f"{rate.symbol}: "
        for pair in _farthest_first(rate.pairs)[: MOST_DRAWN // len(record.rates) or 1]:
            for kind, word in (("difference", "minus"), ("ratio", "over")):
                ends = getattr(pair, f"{kind}_interval")
                if ends is not None:
                    name = f"{where}{pair.group} {word} {pair.reference}"
                    bars[kind].append(Bar(name, getattr(pair, kind), *ends))
    made = []
    limits: tuple[float, ...]
    if bars["difference"]:
        limits = () if limit is None else (-limit, limit)
        what = "difference of the rate between two groups"
        made.append(Intervals("Differences", what, tuple(bars["difference"]), limits))
    if bars["ratio"]:
        limits = () if least_ratio is None else (least_ratio,)
        made.append(Intervals("Ratios", "ratio of two groups", tuple(bars["ratio"]), limits, 1.0))
    return tuple(made)


def _beware(record: "Measurement") -> tuple[str, ...]:
    beware = [f"not compared: {one}." for one in record.set_aside]
    if not all(rate.is_identified for rate in record.rates):
        beware.append(f"{UNDETERMINED}.")
    return tuple(beware)


def _assumptions(record: "Measurement") -> tuple[str, ...]:
    assumptions = [INDEPENDENT]
    if record.cost is not None:
        assumptions.append("none of these people had a part in choosing the policy")
    if record.watch:
        assumptions.append("the rows stand in the order in which the people arrived")
    return (*assumptions, record.meaning)
