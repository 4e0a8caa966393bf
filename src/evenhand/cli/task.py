"""From the words of the command line to the nouns of the package: a table and options become a
problem to solve.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.faircsc.oracle import require_limit
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.named import CLASSES
from evenhand.tables import Table, number, read_table
from evenhand.words import CostSensitiveProblem, FloatArray, LabelledSample, Prices

MOST_LIMITS = 10_000
PLAIN = ("label", "good", "group", "encode", "drop_missing", "delimiter", "fewest")
LISTS = ("bad", "groups", "features", "missing")
"""The options that say what the columns of a table mean; a `Description` has the same names."""


def split(text: str | None) -> tuple[str, ...]:
    """ "a, b" -> ("a", "b")."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def meaning(options: Mapping[str, Any]) -> dict[str, Any]:
    """What options say about the columns of a table, as `read_table` takes it."""
    given = {key: options.get(key) for key in PLAIN}
    given |= {key: split(options.get(key)) or None for key in LISTS}
    given["unlabelled"] = "drop" if options.get("drop_unlabelled") else None
    return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """What the user asked for, as typed."""

    data: str | Path
    label: str | None = None
    group: str | None = None
    rate: str | tuple[str, ...] = "fpr"
    good: str | None = None
    bad: str | None = None
    groups: str | None = None
    features: str | None = None
    encode: bool = False
    drop_missing: bool = False
    drop_unlabelled: bool = False
    delimiter: str = ","
    missing: str | None = None
    fewest: int | None = None
    fewest_unsaid: int = 0
    """What `fewest` is by default: rates that are measured on the table itself need nobody."""
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
    table: Table
    label: str
    good: str
    group: str
    prices: Mapping[str, str]
    priced: bool
    dropped: int

    @property
    def names(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.table.names

    def per_person(self, cost: float) -> float:
        """A total cost per row: the error rate where both prices are 1."""
        return cost / len(self.sample)

    @property
    def cost_name(self) -> str:
        """What `per_person` is called."""
        return "cost per person" if self.priced else "error rate"


def prepare(request: TableRequest) -> TableProblem:
    """Read the table and build the problem; every complaint about the input is made here."""
    rates = as_rates(
        request.rate if isinstance(request.rate, str) else tuple(dict.fromkeys(request.rate))
    )
    prices = {
        "false_accept": request.price_false_accept,
        "false_reject": request.price_false_reject,
    }
    values = {name: number(price) for name, price in prices.items()}
    described = {"fewest": request.fewest_unsaid, **meaning(vars(request))}
    described["needed"] = tuple(prices[name] for name, value in values.items() if value is None)
    # one score column for thresholds, any columns for other classes
    if request.kind == "thresholds":
        if request.score is None or request.features:
            given = "--features was given" if request.features else "--score is missing"
            raise InvalidInput(
                f"--class thresholds cuts one score column; {given}.",
                hint="name it with --score COL, without --features.",
            )
        described["features"] = (request.score,)
    elif request.score:
        raise InvalidInput(
            f"--score {request.score} belongs to --class thresholds, "
            f"but the class is {request.kind}."
        )
    frame = read_table(request.data, **described)
    table = frame.encoded()
    sample = table.sample
    costs: dict[str, float | FloatArray] = {
        name: frame.frame.finite(prices[name]) if value is None else value
        for name, value in values.items()
    }
    decide = request.group_use == "decide"
    return TableProblem(
        source=Path(request.data).name,
        problem=Prices(**costs).problem(sample.features, sample.group, sample.label),
        sample=sample,
        hypotheses=ScoreThresholds(per_group=True)
        if request.kind == "thresholds" and decide
        else CLASSES[request.kind](),
        kind=request.kind,
        rates=rates,
        limit=request.limit,
        group_use=cast(GroupUse, request.group_use.replace("-", "_")),
        table=table,
        label=frame.label_name,
        good=frame.good,
        group=frame.group_name,
        prices=prices,
        priced=any(value != 1.0 for value in values.values()),
        dropped=frame.dropped,
    )


def parse_limits(text: str, limit: float) -> FloatArray:
    """ "0:0.3:31" (start:stop:count) or "0,0.05,0.1"; `limit` always belongs to the grid, which is
    stretched to reach it.
    """
    require_limit(limit)
    parts = [number(part) for part in text.split(":" if ":" in text else ",")]
    known = [part for part in parts if part is not None]
    ranged = ":" in text
    counted = len(known) == 3 and known[2].is_integer() and 1 <= known[2] <= MOST_LIMITS
    if len(known) < len(parts) or (ranged and not counted):
        raise InvalidInput(
            f"--limits is {text!r}; it is start:stop:count or a list.",
            hint="for example 0:0.3:31, or 0,0.05,0.1.",
        )
    wrong = [part for part in known if not 0 <= part < np.inf]
    if wrong:
        raise InvalidInput(
            f"--limits {text!r} contains {wrong[0]:g}; a limit is a finite number of at least 0."
        )
    grid = np.linspace(known[0], known[1], int(known[2])) if ranged else np.array(known)
    beyond = np.linspace(grid.max(), limit, 20) if limit > grid.max() else np.array([limit])
    return np.unique(np.round(np.append(grid, beyond), 12))
