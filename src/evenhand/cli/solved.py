"""What is said of a plain `solve`: the policy, its rates on this table, and what it costs.

The record is the policy file: all its figures are of this table, and none is
claimed for the population.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenhand.cli.problem import TableProblem
from evenhand.fairness.rates import RATES
from evenhand.findings import ROUNDING, stands
from evenhand.policies import Mixture
from evenhand.result import Amount, Bar, Cell, Column, Intervals, Result, Table, column, shown

if TYPE_CHECKING:
    from evenhand.evaluation import PolicyFile
    from evenhand.faircsc import FairSolution

IN_SAMPLE = (
    "These rates are measured on this table, the one the policy was chosen on. They are not "
    "certified for the population: on new people the gap may be larger."
)
FREE = "without a limit"
COIN = "A coin that knows nothing about the person picks the rule, anew for each person."


def solved(task: TableProblem, solution: "FairSolution", file: "PolicyFile") -> Result:
    """The result of a plain solve, with its policy file."""
    figures = file.figures
    costs = figures["costs_per_person"]
    policy = tuple(solution.policy.describe(task.table.names).splitlines())
    coin = (COIN,) if len(solution.policy.weights) > 1 else ()
    name = cost_name(task)
    facts: dict[str, Cell] = {
        "people": len(task.sample),
        name: Amount(costs["policy"], "cost"),
        f"{name} {FREE}": Amount(costs["without_limit"], "cost"),
        f"largest gap {FREE}": Amount(figures["gap_without_limit"], "share"),
        f"{name}, accepting all applicants": Amount(costs["accept_all"], "cost"),
        f"{name}, rejecting all applicants": Amount(costs["reject_all"], "cost"),
        "oracle calls": solution.oracle_calls,
        "method": solution.report.method,
        "rules mixed": len(solution.policy.weights),
    }
    return Result(
        kind="solution",
        title=f"A policy chosen on {task.source}",
        record=file.to_json(),
        answer=(
            *_answer(task, figures),
            optimality(task, solution),
            use_of_group(task, solution.policy),
        ),
        facts=facts,
        tables=(_rates(task, figures), _gaps(task, figures)),
        figures=_figures(figures),
        policy=(*policy, *coin),
        beware=(IN_SAMPLE, *_cheaper_than_free(costs), *_solver(solution)),
    )


def _answer(task: TableProblem, figures: Mapping[str, Any]) -> tuple[str, ...]:
    """The largest gaps, and the cost beside that of the constants."""
    gaps = [figures["largest_gaps"][rate.symbol] for rate in task.rates]
    limited = " and ".join(rate.name for rate in task.rates)
    costs = figures["costs_per_person"]
    constant = min(costs["accept_all"], costs["reject_all"])
    saved = 1 - costs["policy"] / constant if constant > 0 else 0.0
    less = "no less than"
    if saved > ROUNDING:
        less = f"{shown(saved, 'percent')} less than"
    return (
        f"On this table the largest gap in {limited} is {shown(max(gaps), 'share')}; "
        f"at most {task.limit:g} was asked for.",
        f"It costs {less} the better of accepting and rejecting all applicants.",
    )


def cost_name(task: TableProblem) -> str:
    """What a cost per person is called."""
    return "cost per person" if task.priced else "error rate"


def optimality(task: TableProblem, solution: "FairSolution") -> str:
    """How far from the best mixture within the limit, in words."""
    if solution.lower_bound is None:
        reason = (
            "this method proves none"
            if task.hypotheses.exact
            else "this class searches by a heuristic"
        )
        return f"There is no lower bound, because {reason}; a better mixture may exist."
    cost, lower = (one / len(task.sample) for one in (solution.cost, solution.lower_bound))
    if cost - lower <= 1e-9 * max(1.0, abs(cost)):
        return (
            "It is optimal: no mixture of this class within the limit costs less, as the lower "
            "bound proves."
        )
    return (
        f"The lower bound is {shown(lower, 'cost')}: at most {cost - lower:.2g} above the optimum."
    )


def _rates(task: TableProblem, figures: Mapping[str, Any]) -> Table:
    """The rate of each group with the people behind it."""
    sample = task.sample
    rows: list[tuple[Cell, ...]] = []
    for rate in _measured(figures):
        counted = rate.in_denominator(sample.label)
        rows += [
            (rate.name, str(group), value, int((counted & (sample.group == group)).sum()))
            for group, value in figures["rates"][rate.symbol].items()
        ]
    columns = (
        Column("rate", "rate"),
        Column("group", "group"),
        Column("value", "rate here", "share"),
        Column("people", "people", "count"),
    )
    note = "People: those that the rate is a share of."
    return Table("rates", "Rates on this table", columns, tuple(rows), note, parts=1)


def _gaps(task: TableProblem, figures: Mapping[str, Any]) -> Table:
    """The largest gap of each rate beside its limit."""
    largest = figures["largest_gaps"]
    limited = [rate.symbol for rate in task.rates]

    def allowed(symbol: str) -> float | None:
        return task.limit if symbol in limited else None

    def kept(symbol: str) -> str:
        if symbol not in limited:
            return "not limited"
        within = stands(largest[symbol], largest[symbol], task.limit) == "within"
        return "kept" if within else "EXCEEDED"

    return Table.of(
        "gaps",
        "Largest gaps on this table",
        _measured(figures),
        column("rate", take=lambda rate: rate.name),
        column("gap", "largest gap", "share", lambda rate: largest[rate.symbol]),
        column("limit", "limit", "ratio", lambda rate: allowed(rate.symbol)),
        column("kept", "", take=lambda rate: kept(rate.symbol)),
    )


def _measured(figures: Mapping[str, Any]) -> list[Any]:
    return [rate for rate in RATES.values() if rate.symbol in figures["rates"]]


def _figures(figures: Mapping[str, Any]) -> tuple[Intervals, ...]:
    bars = tuple(
        Bar(f"{rate.symbol} of {group}", value, value, value)
        for rate in _measured(figures)
        for group, value in figures["rates"][rate.symbol].items()
    )
    return (
        Intervals("Rates of the groups", "rate on this table", bars, note="Dot: on this table."),
    )


def _cheaper_than_free(costs: Mapping[str, float]) -> list[str]:
    """A remark where a mixture within the limit costs less than what was found without one."""
    if costs["policy"] >= costs["without_limit"] - ROUNDING * max(1.0, costs["without_limit"]):
        return []
    return [
        "The search without a limit is a heuristic, the same for every rate and limit: on the way "
        "to this limit a cheaper rule was met."
    ]


def _solver(solution: "FairSolution") -> tuple[str, ...]:
    return (solution.report.note,) if solution.report.note else ()


def use_of_group(task: TableProblem, policy: Mixture) -> str:
    """Whether the policy looks at the group, or at what reveals it."""
    if task.group_use != "certify_only":
        return "The group may influence the decision."
    disguised = [
        f"{one.name} reveals {one.share:.0%} of it"
        for one in task.warnings
        if one.kind == "reveals the group" and uses(task, policy, one.name)
    ]
    if disguised:
        return f"The group is no input, but {' and '.join(disguised)}."
    return "The group is not looked at."


def uses(task: TableProblem, policy: Mixture, name: str) -> bool:
    """Whether a rule of the policy looks at a column of the source; True where that is unknown."""
    used = policy.columns_used
    if used is None:
        return True
    return name in {task.table.sources[column] for column in used}


def with_held(result: Result, people: int, held: Result, measured: Mapping[str, Any]) -> Result:
    """The result with what was measured on the people who were held out."""
    where = f"On the {people:,} people who were held out"
    verdict = None if held.verdict is None else replace(held.verdict, about=where)
    return replace(
        result,
        record={**result.record, "holdout": measured},  # type: ignore[dict-item]
        answer=(*result.answer, *(f"{where}: {one}" for one in held.answer)),
        verdict=verdict,
        facts={
            **result.facts,
            **{f"held out: {name}": value for name, value in held.facts.items()},
        },
        tables=(
            *result.tables,
            *(
                replace(one, key=f"holdout_{one.key}", title=f"{one.title} (people held out)")
                for one in held.tables
            ),
        ),
        figures=(*result.figures, *held.figures),
        beware=(*result.beware, *held.beware),
        assumptions=(*result.assumptions, *held.assumptions),
    )
