"""`evenhand frontier`: Figure 1 of the paper for a table, and what each limit costs."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli.options import (
    CSV_FILE,
    PICTURE_FILE,
    ColumnOptions,
    column_options,
    json_options,
    problem_options,
    rates_option,
)
from evenhand.cli.problem import TableProblem, table_problem
from evenhand.cli.show import (
    console,
    emit,
    grid,
    heading,
    money,
    notes_of,
    per_person,
    progress,
    show_task,
    without_a_limit,
)
from evenhand.cli.solved import IN_SAMPLE, cost_name
from evenhand.contracts import Hypothesis, Json, Policy
from evenhand.errors import InvalidInput, install_hint
from evenhand.findings import ROUNDING
from evenhand.policies import Mixture
from evenhand.shares import require_limit, require_share
from evenhand.tables import number
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.faircsc import Frontier

MOST_LIMITS = 10_000
SHORT = 36
"""Letters of a rule in a table at most; a longer one gets a number there."""
LONG = 220
"""Letters after which a rule is cut below the table."""


@click.command("frontier")
@click.argument("data", metavar="DATA")
@column_options
@rates_option(help="The rate whose gap is limited: one of them.")
@problem_options
@click.option(
    "--limits",
    metavar="GRID",
    default="0:0.3:31",
    help="Limits to try: start:stop:count, or a list 0,0.05,0.1.",
)
@click.option(
    "--out",
    type=PICTURE_FILE,
    help="The picture: .png, .svg or .pdf.  [default: frontier.png; no picture where matplotlib is "
    "not installed]",
)
@click.option(
    "--table", metavar="TABLE.CSV", type=CSV_FILE, help="Save the figures behind it as CSV."
)
@json_options
def command(
    data: str,
    columns: ColumnOptions,
    rates: tuple[str, ...],
    limit: float,
    kind: str,
    score: str | None,
    price_false_accept: str,
    price_false_reject: str,
    group_use: str,
    limits: str,
    out: Path | None,
    table: Path | None,
    document: str | Path | None,
) -> None:
    """Draw what mixtures can reach, and what each limit costs.

    The picture is Figure 1 of the paper, for your table: gap across, accuracy up, the part within
    --limit in green. It needs two groups (choose them with --groups A,B) and one rate.

    \b
    Example
      evenhand frontier loans.csv --label repaid --good yes --group sex \\
          --rate fpr --limit 0.05 --limits 0:0.3:31 --out frontier.png --table frontier.csv
    """
    from evenhand.media.drawing import installed, require

    if out is not None:
        require("matplotlib")  # who asks for a picture is told before the work, not after
    elif installed("matplotlib"):
        out = Path("frontier.png")
    if len(rates) > 1:
        raise InvalidInput(
            f"{len(rates)} rates are named, {' and '.join(rates)}; the picture has one gap.",
            hint="name one of them; `evenhand solve` limits several at once.",
            argument="rate",
        )
    tried = parse_limits(limits, limit)
    task = table_problem(
        data,
        columns,
        rates=rates,
        limit=limit,
        kind=kind,
        score=score,
        price_false_accept=price_false_accept,
        price_false_reject=price_false_reject,
        group_use=group_use,
    )
    traced = trace(task, tried)
    if out is not None:
        draw(task, traced, out)
    if table is not None:
        save_table(task, traced, table)
    if emit(document, frontier_document(task, traced, out, table)):
        return
    screen = console()
    show_task(screen, task)
    show_frontier(screen, task, traced)
    screen.print(f"\n{IN_SAMPLE}")
    picture = f"Picture: {out}" if out else f"No picture: {install_hint('plots')}."
    click.echo(f"\n{picture}" + (f"\nTable: {table}" if table else ""))


def parse_limits(text: str, limit: float) -> FloatArray:
    """ "0:0.3:31" (start:stop:count) or "0,0.05,0.1"; `limit` always belongs to the grid, which is
    stretched to reach it.
    """
    require_limit(limit)
    ranged = ":" in text
    parts = [number(part) for part in text.split(":" if ranged else ",")]
    known = [part for part in parts if part is not None]
    counted = len(known) == 3 and known[2].is_integer() and 1 <= known[2] <= MOST_LIMITS
    if len(known) < len(parts) or (ranged and not counted):
        raise InvalidInput(
            f"--limits is {text!r}; it is start:stop:count or a list.",
            hint="for example 0:0.3:31, or 0,0.05,0.1.",
        )
    for part in known[:2] if ranged else known:
        require_share("limits", part, "[0, 1]")
    grid = np.linspace(known[0], known[1], int(known[2])) if ranged else np.array(known)
    beyond = np.linspace(grid.max(), limit, 20) if limit > grid.max() else np.array([limit])
    return np.unique(np.round(np.append(grid, beyond), 12))


def trace(task: TableProblem, grid: FloatArray) -> "Frontier":
    """Solve at every limit, with a bar on stderr."""
    from evenhand.faircsc import frontier

    groups = task.sample.groups
    if len(groups) > 2:
        raise InvalidInput(
            f"the column {task.group!r} has {len(groups)} groups "
            f"({', '.join(map(str, groups))}); the "
            "picture compares two.",
            hint="choose two with --groups A,B; `evenhand solve` takes any number.",
        )
    with progress("limits and directions", len(grid) + 32) as count:
        return frontier(
            task.problem,
            task.hypotheses,
            task.rates[0],
            task.sample,
            grid.tolist(),
            group_use=task.group_use,
            progress=count,
        )


def prices_of_fairness(task: TableProblem, traced: "Frontier") -> FloatArray:
    """What each limit costs in total beyond the cheapest rule without one; never below 0."""
    return np.maximum(traced.costs - without_a_limit(task).cost, 0.0)


def draw(task: TableProblem, traced: "Frontier", path: Path) -> None:
    """Write the picture."""
    from evenhand.report import draw_region, save_figure

    groups = task.sample.groups
    figure = draw_region(
        traced,
        task.limit,
        people=len(task.sample),
        rate=task.rates[0],
        groups=(groups[0], groups[1]),
        priced=task.priced,
    )
    title = f"{task.source}: {len(task.sample):,} people, {task.kind}"
    figure.suptitle(title, fontsize=13, fontweight="bold")
    save_figure(figure, path)


def frontier_document(
    task: TableProblem, traced: "Frontier", out: Path | None, table: Path | None
) -> Json:
    """The figures behind the picture."""
    sample = task.sample
    prices = prices_of_fairness(task, traced)
    return {
        "table": {"file": task.source, "people": len(sample), "dropped": task.dropped},
        "label": {"column": task.label, "good": task.good, "share": (sample.label == 1).mean()},
        "groups": {g: int((sample.group == g).sum()) for g in sample.groups},
        "class": dict(task.hypotheses.params),
        "rate": task.rates[0].symbol,
        "limit": task.limit,
        "without_limit": {
            "cost_per_person": per_person(task, without_a_limit(task).cost),
            "gap": without_a_limit(task).gap,
        },
        "limits": [
            {
                "limit": float(limit),
                "cost_per_person": per_person(task, solution.cost),
                "price_of_fairness": per_person(task, float(price)),
                "gap": float(solution.gaps[0]),
                "weights": list(solution.policy.weights),
                "in_words": solution.policy.describe(task.table.names).splitlines(),
            }
            for limit, solution, price in zip(traced.limits, traced.solutions, prices, strict=True)
        ],
        "notes": [str(note) for note in notes_of(task)],
        "warnings": [vars(one) for one in task.warnings],
        "written": {"picture": out, "table": table},
    }


def save_table(task: TableProblem, traced: "Frontier", path: Path) -> None:
    """One line per limit."""
    name = cost_name(task).replace(" ", "_")
    prices = prices_of_fairness(task, traced)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["limit", name, "price_of_fairness", "gap", "lower_bound", "oracle_calls", "mixture"]
        )
        for limit, solution, price in zip(traced.limits, traced.solutions, prices, strict=True):
            lower = solution.lower_bound
            writer.writerow(
                [
                    float(limit),
                    per_person(task, solution.cost),
                    per_person(task, float(price)),
                    float(solution.gaps[0]),
                    "" if lower is None else per_person(task, lower),
                    solution.oracle_calls,
                    "; ".join(solution.policy.describe(task.table.names).splitlines()),
                ]
            )


@dataclass
class RuleBook:
    """Short names for rules whose description is long: "rule 1", "rule 2", ... in order of
    appearance.
    """

    names: Sequence[str]
    numbered: list[Hypothesis] = field(default_factory=list)

    def short(self, rule: Hypothesis) -> str:
        """The description, or its number."""
        text = rule.describe(self.names).removeprefix("accept if ")
        if len(text) <= SHORT:
            return text
        places = (i for i, one in enumerate(self.numbered) if one is rule or one == rule)
        place = next(places, len(self.numbered))
        if place == len(self.numbered):
            self.numbered.append(rule)
        return f"rule {place + 1}"

    def mixture(self, policy: Policy, most: int | None = None) -> str:
        """ "0.73 credit_score >= 612 + 0.27 accept all applicants", the heaviest rules of a
        mixture; a policy that is none in its own words.
        """
        if not isinstance(policy, Mixture):
            return policy.describe(self.names)
        parts = sorted(
            zip(policy.weights, policy.hypotheses, strict=True), key=lambda part: -part[0]
        )
        if len(parts) == 1:
            return self.short(parts[0][1])
        named = [f"{weight:.2f} {self.short(rule)}" for weight, rule in parts[:most]]
        more = len(parts) - len(named)
        return " + ".join([*named, *([f"{more} more"] if more else [])])

    def show(self, out: "Console") -> None:
        """What the numbers stand for; very long rules are cut (--table saves them whole)."""
        from rich.text import Text

        for place, hypothesis in enumerate(self.numbered, 1):
            rule = hypothesis.describe(self.names)
            cut = rule if len(rule) <= LONG else rule[:LONG] + " ..."
            out.print(Text(f"  rule {place}: {cut}"))


def show_frontier(out: "Console", task: TableProblem, frontier: "Frontier") -> None:
    """limit -> cost, what fairness costs, the mixture in short; limits that change nothing any more
    share one row.
    """
    rules = RuleBook(task.table.names)
    cost = cost_name(task).replace(" ", "\n", 1)
    table = grid(">limit", f">{cost}", ">price of\nfairness", ">gap", "~mixture")
    prices = prices_of_fairness(task, frontier)
    changes = np.flatnonzero(np.abs(np.diff(frontier.costs)) > 1e-12 * np.abs(frontier.costs).max())
    last = int(changes[-1]) + 1 if len(changes) else 0
    for i in range(last + 1):
        solution = frontier.solutions[i]
        limit = frontier.limits[i]
        more = " or more" if i == last and last + 1 < len(frontier.limits) else ""
        table.add_row(
            f"{limit:.4g}{more}",
            money(task, solution.cost),
            money(task, float(prices[i])),
            f"{round(float(solution.gaps[0]), 3) + 0.0:+.3f}",
            rules.mixture(solution.policy),
            style="bold" if abs(limit - task.limit) <= ROUNDING else None,
        )
    out.print(heading("\nWhat a limit costs"))
    out.print(table)
    # The same figure as in `solve`, whatever the rate and the limits.
    free = without_a_limit(task)
    out.print(f"  without a limit (gap {free.gap:.3f}): {money(task, free.cost)}")
    rules.show(out)
