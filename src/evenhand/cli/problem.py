"""The problem that a table and the options of a command describe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from evenhand.cli.options import ColumnOptions
from evenhand.contracts import GroupUse, HypothesisClass, Policy
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses import CLASSES, Estimator, Linear, PerGroupCuts, ScoreThresholds
from evenhand.shares import require_share
from evenhand.shown import counted
from evenhand.tables import (
    DataWarning,
    Frame,
    LabelledFrame,
    Table,
    data_warnings,
    read_table,
)
from evenhand.words import (
    BoolArray,
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    LabelledSample,
    Prices,
)

if TYPE_CHECKING:
    from evenhand.evaluation import PolicyFile


@dataclass(frozen=True, eq=False)
class TableProblem:
    """A problem ready to be solved, with the names that let its answer be put in words."""

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
    """The prices as they were typed: numbers, or names of columns."""
    priced: bool
    """Whether a price is not 1, so that the cost is not the error rate."""
    dropped: int
    missing: tuple[str, ...] | None = None
    """How a missing value is written in the table, where that is not the usual way."""
    warnings: tuple[DataWarning, ...] = ()
    held: LabelledSample | None = None
    """People who were held out."""
    frame: Frame | None = None
    """The same people with all columns of the table, as they were read."""


def table_problem(
    data: str | Path,
    columns: ColumnOptions,
    *,
    rates: Sequence[str] = ("fpr",),
    limit: float = 0.05,
    kind: str = "stumps",
    score: str | None = None,
    price_false_accept: str = "1",
    price_false_reject: str = "1",
    group_use: str = "certify-only",
    holdout: float | None = None,
    seed: int = 0,
    fewest_by_default: int = 0,
    decision: str | None = None,
) -> TableProblem:
    """Read the table and build the problem that the options describe; every error in the input is
    raised here.

    decision: a column with what was decided, which is no feature and has a value in every row.

    fewest_by_default: how many people of each outcome a group needs where nothing says it; rates
    that are measured on the table itself need none.
    """
    prices = {"false_accept": price_false_accept, "false_reject": price_false_reject}
    price_columns = tuple(price for price in prices.values() if _number(price) is None)
    frame = _read(data, columns, kind, score, price_columns, fewest_by_default, decision)
    table = frame.encoded()
    held = None
    kept: slice | BoolArray = slice(None)
    if holdout is not None:
        out = held_out(table.group, holdout, seed)
        kept = ~out
        held = table.rows(out).sample
        table = table.rows(kept)
    costs: dict[str, float | FloatArray] = {}
    for name, price in prices.items():
        value = _number(price)
        costs[name] = frame.frame.finite(price)[kept] if value is None else value
    sample = table.sample
    hypotheses = CLASSES[kind]()
    if group_use == "decide" and kind == "thresholds":
        hypotheses = ScoreThresholds(per_group=True)
    elif group_use == "decide" and isinstance(hypotheses, Linear | Estimator):
        hypotheses = PerGroupCuts(hypotheses)
    return TableProblem(
        source=Path(data).name,
        problem=Prices(**costs).problem(sample.features, sample.group, sample.label),
        sample=sample,
        hypotheses=hypotheses,
        kind=kind,
        rates=as_rates(tuple(rates)),
        limit=limit,
        group_use=cast(GroupUse, group_use.replace("-", "_")),
        table=table,
        label=frame.label_name,
        good=frame.good,
        group=frame.group_name,
        prices=prices,
        priced=any(_number(price) != 1.0 for price in prices.values()),
        dropped=frame.dropped,
        missing=frame.missing,
        warnings=data_warnings(table, frame.group_name),
        held=held,
        frame=frame.frame if held is None else None,
    )


def _number(price: str) -> float | None:
    """A price that is a number; None for the name of a column."""
    try:
        return float(price)
    except ValueError:
        return None


def _read(
    data: str | Path,
    columns: ColumnOptions,
    kind: str,
    score: str | None,
    price_columns: tuple[str, ...],
    fewest_by_default: int,
    decision: str | None,
) -> LabelledFrame:
    """The table; thresholds cut one score column, other classes use any columns."""
    meaning = columns.given()
    needed = price_columns
    if decision is not None:
        needed = (*price_columns, decision)
        meaning["decision"] = decision
    if kind == "thresholds":
        if score is None or "features" in meaning:
            given = "--features was given" if "features" in meaning else "--score is missing"
            raise InvalidInput(
                f"--class thresholds cuts one score column; {given}.",
                hint="name it with --score COL, without --features.",
            )
        meaning["features"] = (score,)
    elif score:
        raise InvalidInput(
            f"--score {score} belongs to --class thresholds, but the class is {kind}.",
            hint="add --class thresholds, or leave --score out.",
        )
    frame = read_table(data, fewest_by_default=fewest_by_default, needed=needed, **meaning)
    frame = replace(frame, features=tuple(one for one in frame.features if one != decision))
    if score is not None and frame.frame[score].numbers is None:
        raise InvalidInput(
            f"--score {score} is a text column; thresholds cut a column of numbers.",
            hint="name another column, or choose --class stumps with --encode.",
        )
    return frame


def held_out(group: GroupArray, share: float, seed: int) -> BoolArray:
    """Which rows are held out: the same share of every group, drawn by `seed`."""
    require_share("holdout", share, "(0, 1)")
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(group), dtype=bool)
    for value in dict.fromkeys(group.tolist()):
        rows = np.flatnonzero(group == value)
        taken = round(share * len(rows))
        if not 0 < taken < len(rows):
            raise InvalidInput(
                f"group {value!r} has {counted(len(rows))}; --holdout {share:g} leaves nobody on "
                "one side.",
                hint="leave the group out (--groups), or hold out another share.",
            )
        chosen[rng.permutation(rows)[:taken]] = True
    return chosen


def policy_file(task: TableProblem, policy: Policy) -> "PolicyFile":
    """A policy that was chosen for a problem, ready to be used on other tables."""
    from evenhand.evaluation import PolicyFile

    return PolicyFile(
        policy,
        task.table.recipe,
        task.source,
        names=tuple(map(str, task.table.names)),
        label=task.label,
        good=task.good,
        group=task.group,
        group_use=task.group_use,
        groups=tuple(map(str, task.sample.groups)),
        rules=dict(task.hypotheses.params),
        limit=task.limit,
        limited_rates=tuple(rate.symbol for rate in task.rates),
        stated_prices=dict(task.prices),
        table=task.source,
        people=len(task.sample),
        missing=task.missing,
        figures={"warnings": [vars(one) for one in task.warnings]} if task.warnings else {},
    )
