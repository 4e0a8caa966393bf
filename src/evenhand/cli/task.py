"""From the words of the command line to the nouns of the package: a table and options become a
problem to solve.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from evenhand.cli import table as tables
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.faircsc.oracle import require_limit
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.named import CLASSES
from evenhand.words import CostSensitiveProblem, FloatArray, LabelledSample, Prices

MOST_LIMITS = 10_000


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """What the user asked for, as typed."""

    data: Path
    label: str
    group: str
    rate: str | tuple[str, ...] = "fpr"
    good: str | None = None
    groups: str | None = None
    features: str | None = None
    encode: bool = False
    drop_missing: bool = False
    delimiter: str = ","
    limit: float = 0.05
    kind: str = "stumps"
    score: str | None = None
    price_false_accept: str = "1"
    price_false_reject: str = "1"
    group_use: str = "certify-only"


@dataclass(frozen=True, eq=False)
class TableProblem:
    """A problem ready to be solved, with the names that let its answer be told in words."""

    source: str
    problem: CostSensitiveProblem
    sample: LabelledSample
    hypotheses: HypothesisClass
    kind: str
    rates: tuple[Rate, ...]
    limit: float
    group_use: GroupUse
    columns: tables.Features
    label: str
    good: str
    group: str
    prices: Mapping[str, str]
    dropped: int

    @property
    def names(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.columns.names

    @property
    def priced(self) -> bool:
        """Whether errors cost something else than 1."""
        return any(tables.number(price) != 1.0 for price in self.prices.values())

    def per_person(self, cost: float) -> float:
        """A total cost per row: the error rate where both prices are 1."""
        return cost / len(self.sample)

    @property
    def cost_name(self) -> str:
        """What `per_person` is called."""
        return "cost per person" if self.priced else "error rate"


def prepare(request: TableRequest) -> TableProblem:
    """Read the table and build the problem; every complaint about the input is made here."""
    names, rates = _feature_names(request), _rates(request.rate)
    table = tables.read_table(request.data, _delimiter(request.delimiter))
    table.require([request.label, request.group])
    names = names or _all_but(table, request)
    rows = _rows(table, request, names)
    label, good = tables.labels(rows, request.label, request.good)
    group, columns = (
        tables.groups(rows, request.group),
        tables.features(rows, names, request.encode),
    )
    use = cast(GroupUse, request.group_use.replace("-", "_"))
    return TableProblem(
        source=request.data.name,
        problem=_prices(request, rows).problem(columns.values, group, label),
        sample=LabelledSample(columns.values, group, label),
        hypotheses=_class(request.kind, use == "decide"),
        kind=request.kind,
        rates=rates,
        limit=request.limit,
        group_use=use,
        columns=columns,
        label=request.label,
        good=good,
        group=request.group,
        prices={
            "false_accept": request.price_false_accept,
            "false_reject": request.price_false_reject,
        },
        dropped=len(table) - len(rows),
    )


def _all_but(table: tables.TextTable, request: TableRequest) -> list[str]:
    names = [name for name in table.columns if name not in (request.label, request.group)]
    if not names:
        raise InvalidInput(
            f"{table.source} has nothing but the label and the group: no column is left to decide by."
        )
    return names


def _rows(table: tables.TextTable, request: TableRequest, names: list[str]) -> tables.TextTable:
    """The rows to learn from: wanted groups only, nothing missing."""
    used = [request.label, request.group, *names, *_price_columns(request)]
    table.require(used)
    if request.groups:
        table = tables.keep_groups(table, request.group, _split(request.groups))
    if request.drop_missing:
        table = tables.drop_missing(table, used)
    tables.require_present(table, used)
    return table


def _delimiter(text: str) -> str:
    mark = text.replace("\\t", "\t")
    if len(mark) != 1:
        raise InvalidInput(
            f"--delimiter is {text!r}; it is one character.", hint="',' or ';' or '\\t'."
        )
    return mark


def _rates(names: str | tuple[str, ...]) -> tuple[Rate, ...]:
    return as_rates(names if isinstance(names, str) else tuple(dict.fromkeys(names)))


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _feature_names(request: TableRequest) -> list[str]:
    """The columns asked for, or none for "all but label and group"."""
    names = _split(request.features or "")
    if request.kind == "thresholds":
        names = [_score(request, names)]
    elif request.score:
        raise InvalidInput(
            f"--score {request.score} belongs to --class thresholds, but the class is {request.kind}."
        )
    if request.label == request.group:
        raise InvalidInput(f"{request.label!r} is both --label and --group; they are two columns.")
    if request.label in names:
        raise InvalidInput(
            f"the label {request.label!r} cannot be a feature: it is what the decision is about."
        )
    if request.group in names:
        raise InvalidInput(
            f"the group {request.group!r} cannot be a feature: hypotheses would decide by it.",
            hint="leave it out; if the group may influence decisions, add --group-use decide.",
        )
    return names


def _score(request: TableRequest, names: list[str]) -> str:
    if request.score is None or names:
        given = "--features was given" if names else "--score is missing"
        raise InvalidInput(
            f"--class thresholds cuts one score column; {given}.",
            hint="name it with --score COL, without --features.",
        )
    return request.score


def _price_columns(request: TableRequest) -> list[str]:
    prices = (request.price_false_accept, request.price_false_reject)
    return [price for price in prices if tables.number(price) is None]


def _prices(request: TableRequest, table: tables.TextTable) -> Prices:
    def price(text: str) -> float | FloatArray:
        value = tables.number(text)
        return tables.numbers(table, text) if value is None else value

    return Prices(price(request.price_false_accept), price(request.price_false_reject))


def _class(kind: str, decide: bool) -> HypothesisClass:
    """The class of that name; `decide`: the group may influence the decision."""
    return ScoreThresholds(per_group=True) if kind == "thresholds" and decide else CLASSES[kind]()


def parse_limits(text: str, limit: float) -> FloatArray:
    """ "0:0.3:31" (start:stop:count) or "0,0.05,0.1"; `limit` always belongs to the grid, which is
    stretched to reach it.
    """
    require_limit(limit)
    grid = _grid(text)
    beyond = np.linspace(grid.max(), limit, 20) if limit > grid.max() else np.array([limit])
    return np.unique(np.round(np.append(grid, beyond), 12))


def _grid(text: str) -> FloatArray:
    parts = [tables.number(part) for part in text.split(":" if ":" in text else ",")]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or (":" in text and not _start_stop_count(known)):
        raise InvalidInput(
            f"--limits is {text!r}; it is start:stop:count or a list.",
            hint="for example 0:0.3:31, or 0,0.05,0.1.",
        )
    wrong = [part for part in known if not 0 <= part < np.inf]
    if wrong:
        raise InvalidInput(
            f"--limits {text!r} contains {wrong[0]:g}; a limit is a finite number of at least 0."
        )
    return np.linspace(known[0], known[1], int(known[2])) if ":" in text else np.array(known)


def _start_stop_count(parts: list[float]) -> bool:
    return len(parts) == 3 and parts[2].is_integer() and 1 <= parts[2] <= MOST_LIMITS
