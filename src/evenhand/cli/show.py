"""What the commands print (rich, to stdout) and how they show that they are at work (to stderr)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from evenhand.cli.task import TableProblem
from evenhand.contracts import Hypothesis
from evenhand.errors import CannotEstimateRate
from evenhand.faircsc import FairSolution, Frontier
from evenhand.fairness.rates import RATES, GapConstraints, Rate
from evenhand.policies import Mixture

IN_SAMPLE = (
    "These rates are measured on this table, the one the policy was chosen on. They are not certified for the population: "
    "on new people the gap may be larger."
)
HOLDS = 1e-9
"""Rounding that does not count as exceeding a limit."""
SHORT, LONG = 36, 220
"""Rules longer than SHORT get a number in tables; rules longer than LONG are cut there."""


def console() -> Console:
    """Standard output; at least 110 columns wide when it is a file or a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=max(out.width, 110))


@contextmanager
def progress(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that is gone afterwards; yields the function that is told the number of steps
    done.
    """
    columns = (
        SpinnerColumn(),
        TextColumn(text),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    err = Console(stderr=True)
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)


def heading(text: str) -> Text:
    """A line that opens a part."""
    return Text(text, style="bold")


def show_task(out: Console, task: TableProblem) -> None:
    """Whom the table is about, and how it was read."""
    good = int((task.sample.label == 1).sum())
    sizes = ", ".join(f"{g} ({int((task.sample.group == g).sum()):,})" for g in task.sample.groups)
    out.print(heading(f"{task.source}: {len(task.sample):,} people"))
    out.print(
        Text(f"  good outcome: {task.label} = {task.good} ({good / len(task.sample):.1%} of them)")
    )
    out.print(Text(f"  groups in {task.group}: {sizes}"))
    if task.dropped:
        out.print(Text(f"  left out: {task.dropped:,} rows (other groups, or a missing value)"))
    for name, columns in task.table.encoded.items():
        out.print(
            Text(
                f"  encoded: {name} as {len(columns)} column{'s' * (len(columns) > 1)} of 0 and 1 ({columns[0]}, ...)"
            )
        )


def show_policy(out: Console, task: TableProblem, policy: Mixture) -> None:
    """The mixture in words."""
    use = (
        "the group is not looked at"
        if task.group_use == "certify_only"
        else "the group may influence the decision"
    )
    out.print(heading(f"\nPolicy ({use})"))
    for line in policy.describe(task.names).splitlines():
        out.print(Text(f"  {line}"), soft_wrap=False)
    if len(policy.weights) > 1:
        out.print(
            Text(
                "  A coin that knows nothing about the person picks the rule, anew for each person."
            )
        )


def measured_rates(task: TableProblem, solution: FairSolution) -> dict[str, dict[Any, float]]:
    """{symbol: {group: rate}} for every rate that the table lets us estimate."""
    found: dict[str, dict[Any, float]] = {}
    for rate in RATES.values():
        try:
            found |= GapConstraints.on(rate, task.sample).group_rates(solution.acceptance)
        except (
            CannotEstimateRate
        ):  # a rate that is not limited may be unknown; a limited one was refused before
            continue
    return found


def show_rates(out: Console, task: TableProblem, solution: FairSolution) -> None:
    """A table of rates per group with the people behind each, and the largest gap beside its limit."""
    table = Table(box=None, padding=(0, 2))
    table.add_column("rate")
    for group in task.sample.groups:
        table.add_column(f"group {group}", justify="right")
    table.add_column("largest gap", justify="right")
    table.add_column("limit", justify="left")
    measured = measured_rates(task, solution)
    for rate in RATES.values():
        if rate.symbol in measured:
            table.add_row(*_rate_row(task, rate, measured[rate.symbol]))
    out.print(heading("\nRates on this table"))
    out.print(table)
    out.print(Text("  (n): the people that the rate is a share of.", style="dim"))


def _rate_row(task: TableProblem, rate: Rate, values: dict[Any, float]) -> list[str]:
    counted = rate.in_denominator(task.sample.label)
    cells = [
        f"{value:.3f} ({int((counted & (task.sample.group == g)).sum()):,})"
        for g, value in values.items()
    ]
    gap = max(values.values()) - min(values.values())
    kept = "kept" if gap <= task.limit + HOLDS else "EXCEEDED"
    return [
        rate.name,
        *cells,
        f"{gap:.3f}",
        f"≤ {task.limit:g} {kept}" if rate in task.rates else "not limited",
    ]


def show_cost(out: Console, task: TableProblem, solution: FairSolution) -> None:
    """Cost, what it is compared with, how near to optimal, and the work it took."""
    out.print(heading("\nCost"))
    out.print(Text(f"  {task.cost_name}: {money(task, task.per_person(solution.cost))}"))
    for name, cost in reference_costs(task, solution).items():
        out.print(Text(f"  {name}: {money(task, task.per_person(cost))}"))
    out.print(Text(f"  {optimality(task, solution)}"))
    calls = f"{solution.oracle_calls} oracle call{'s' * (solution.oracle_calls != 1)}"
    out.print(
        Text(
            f"  {calls}, method {solution.report.method}, {solution.support_size} rule{'s' * (solution.support_size != 1)} mixed"
        )
    )


def reference_costs(task: TableProblem, solution: FairSolution) -> dict[str, float]:
    """Total costs to compare with: the constants, and the class's answer at multiplier 0, which is
    the one without a limit.
    """
    free = [step for step in solution.report.iterations if not any(step.multipliers)]
    costs = (
        {
            f"without a limit (gap {np.abs(free[0].gaps).max():.3f})": _total(
                task, solution, free[0].cost
            )
        }
        if free
        else {}
    )
    everybody = np.ones(len(task.problem))
    return costs | {
        "accept everybody": task.problem.cost(everybody),
        "reject everybody": task.problem.rejection_total,
    }


def _total(task: TableProblem, solution: FairSolution, normalised: float) -> float:
    return task.problem.rejection_total + solution.report.cost_scale * normalised


def optimality(task: TableProblem, solution: FairSolution) -> str:
    """How far from the best mixture within the limit, in words."""
    if solution.lower_bound is None:
        reason = (
            "this class searches by a heuristic"
            if not task.hypotheses.exact
            else "this method proves none"
        )
        return f"no lower bound: {reason}; a better mixture may exist"
    slack = task.per_person(solution.cost - solution.lower_bound)
    if slack <= 1e-9 * max(1.0, abs(task.per_person(solution.cost))):
        return "optimal: no mixture of this class within the limit costs less (proved by the lower bound)"
    return f"lower bound {money(task, task.per_person(solution.lower_bound))}: at most {slack:.2g} above the optimum"


def money(task: TableProblem, cost: float) -> str:
    """A cost per person: four decimals of an error rate, five digits of a price."""
    return (
        f"{cost:.4f}" if not task.priced else f"{cost:,.0f}" if abs(cost) >= 1000 else f"{cost:.5g}"
    )


@dataclass
class RuleBook:
    """Short names for rules whose description is long: "rule 1", "rule 2", ... in order of
    appearance.
    """

    names: Sequence[str]
    numbered: dict[str, int] = field(default_factory=dict)

    def short(self, rule: Hypothesis) -> str:
        """The description, or its number."""
        text = rule.describe(self.names).removeprefix("accept if ")
        return (
            text
            if len(text) <= SHORT
            else f"rule {self.numbered.setdefault(text, len(self.numbered) + 1)}"
        )

    def mixture(self, policy: Mixture) -> str:
        """ "0.73 credit_score >= 612 + 0.27 accept everybody"."""
        parts = sorted(
            zip(policy.weights, policy.hypotheses, strict=True), key=lambda part: -part[0]
        )
        if len(parts) == 1:
            return self.short(parts[0][1])
        return " + ".join(f"{weight:.2f} {self.short(rule)}" for weight, rule in parts)

    def show(self, out: Console) -> None:
        """What the numbers stand for; very long rules are cut (the file of --table has them whole)."""
        for text, number in self.numbered.items():
            rule = text if text.startswith("accept ") else f"accept if {text}"
            out.print(
                Text(f"  rule {number}: {rule if len(rule) <= LONG else rule[:LONG] + ' ...'}")
            )


def show_frontier(out: Console, task: TableProblem, frontier: Frontier) -> None:
    """limit -> cost, what fairness costs, the mixture in short; limits that change nothing any more
    share one row.
    """
    table, rules = Table(box=None, padding=(0, 1)), RuleBook(task.names)
    for name in ("limit", task.cost_name, "price of fairness", "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("mixture")
    last = _first_free(frontier)
    for i in range(last + 1):
        chosen = "bold" if abs(frontier.limits[i] - task.limit) <= HOLDS else None
        more = " or more" if i == last and last + 1 < len(frontier.limits) else ""
        table.add_row(
            *_frontier_row(task, frontier, i, more),
            rules.mixture(frontier.solutions[i].policy),
            style=chosen,
        )
    out.print(heading("\nWhat a limit costs"))
    out.print(table)
    rules.show(out)


def _first_free(frontier: Frontier) -> int:
    """The first limit from which on the answer stays the same."""
    changes = np.flatnonzero(np.abs(np.diff(frontier.costs)) > 1e-12 * np.abs(frontier.costs).max())
    return int(changes[-1]) + 1 if len(changes) else 0


def _frontier_row(task: TableProblem, frontier: Frontier, i: int, more: str) -> list[str]:
    solution, price = (
        frontier.solutions[i],
        max(0.0, task.per_person(float(frontier.price_of_fairness[i]))),
    )
    figures = [
        f"{frontier.limits[i]:.4g}{more}",
        money(task, task.per_person(solution.cost)),
        money(task, price),
    ]
    return [*figures, f"{float(solution.gaps[0]):+.3f}"]
