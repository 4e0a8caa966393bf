"""`evenhand frontier`: Figure 1 of the paper for a table, and what each limit costs."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli import show
from evenhand.cli.messages import warning_text
from evenhand.cli.options import ColumnOptions, column_options, problem_options, rates_option
from evenhand.cli.problem import TableProblem, table_problem
from evenhand.cli.telling import Telling, telling_options
from evenhand.errors import InvalidInput
from evenhand.result import Amount, Result
from evenhand.shares import require_limit, require_share
from evenhand.tables import number
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from evenhand.faircsc import Frontier

MOST_LIMITS = 10_000


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
@telling_options
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
    telling: Telling,
) -> None:
    """Find what mixtures can reach, and what each limit costs.

    The figures are what each limit costs, and Figure 1 of the paper for your table: gap across,
    cost up, and what mixtures reach. The mixture within --limit is given in words. It needs two
    groups (choose them with --groups A,B) and one rate.

    \b
    Example
      evenhand frontier loans.csv --label repaid --good yes --group sex \\
          --rate fpr --limit 0.05 --limits 0:0.3:31 --out frontier.png --out frontier.csv
    """
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
    telling.tell(
        told(task, trace(task, tried)),
        title=f"What a limit costs on {task.source}",
        asked={**show.asked_of(task, data), "limits": limits},
        read=show.how_read(task),
        beware=[warning_text(one) for one in task.warnings],
        notes=show.notes_of(task),
    )


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
    with show.progress("limits and directions", len(grid) + 32) as count:
        return frontier(
            task.problem,
            task.hypotheses,
            task.rates[0],
            task.sample,
            grid.tolist(),
            group_use=task.group_use,
            progress=count,
        )


def told(task: TableProblem, traced: "Frontier") -> Result:
    """What is said of the limits; without a limit it is the same search as that of `solve`."""
    free = show.without_a_limit(task)
    cost = show.per_person(task, free.cost)
    result = traced.result(task.limit, task.table.names, cost)
    without = {
        "cost without a limit": Amount(cost, "cost"),
        "gap without a limit": Amount(free.gap, "share"),
    }
    return replace(result, facts={**result.facts, **without})
