"""What the commands print (rich, to stdout) and how they show that they are at work (to stderr)."""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli.messages import note_line, warning_text
from evenhand.cli.problem import TableProblem
from evenhand.contracts import Params
from evenhand.errors import CannotEstimateRate, NotConverged
from evenhand.fairness.rates import RATES, GapConstraints
from evenhand.shown import counted
from evenhand.tables import Note
from evenhand.words import Group

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenhand.faircsc import FairSolution


def console(quiet: bool = False) -> "Console":
    """Standard output; 110 columns wide when it is a file or a pipe, unless COLUMNS says how wide.
    Tables fit 80 columns. `quiet` prints nothing.
    """
    from rich.console import Console

    out = Console(highlight=False, quiet=quiet)
    if out.is_terminal or "COLUMNS" in os.environ:
        return out
    return Console(highlight=False, quiet=quiet, width=110)


@contextmanager
def progress(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that is gone afterwards; yields the function that takes the number of steps
    done.
    """
    from rich import progress as bars
    from rich.console import Console

    err = Console(stderr=True)
    with bars.Progress(
        bars.SpinnerColumn(),
        bars.TextColumn(text),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Yields the function that is called with what is done now, how far it is, and how far it will
    go: a bar on stderr, or, where that is no terminal, one line for each thing that is done.
    """
    from rich import progress as bars
    from rich.console import Console

    err = Console(stderr=True)
    said: list[str] = []
    with bars.Progress(
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task("", total=None)

        def report(what: str, done: int, total: int) -> None:
            if not err.is_terminal and said[-1:] != [what]:
                said.append(what)
                click.echo(f"{what} ...", err=True)
            bar.update(task, description=what, completed=done, total=total)

        yield report


def heading(text: str) -> "Text":
    """A line that opens a part."""
    from rich.text import Text

    return Text(text, style="bold")


def show_lines(out: "Console", lines: Iterable[str], style: str = "") -> None:
    """Texts as they are, without markup."""
    from rich.text import Text

    for line in lines:
        out.print(Text(line, style=style))


def grid(*columns: str, padding: int = 1, rows: Iterable[Iterable[str]] = ()) -> "Table":
    """A table without lines; the columns whose name begins with ">" are flush right, those whose
    name begins with "~" may be broken into several lines.
    """
    from rich.table import Table

    table = Table(box=None, padding=(0, padding + 1, 0, 0), show_header=any(columns))
    for name in columns:
        wrapped = name.startswith("~")
        table.add_column(
            name.lstrip(">~"),
            justify="right" if name.startswith(">") else "left",
            no_wrap=not wrapped,
            overflow="fold" if wrapped else "ellipsis",
        )
    for row in rows:
        table.add_row(*row)
    return table


def write_json(path: Path, document: Params, indent: int | None = 1) -> None:
    """A document as a file that other programs read."""
    text = json.dumps(document, indent=indent, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def emit(target: str | Path | None, document: Params) -> bool:
    """Obey --json: print the document, and nothing else is to be printed then (True); or save it
    where a file was named (False).
    """
    if target is None:
        return False
    plain = as_json(document)
    if target != "-":
        write_json(Path(target), plain)
        return False
    click.echo(json.dumps(plain, indent=1, allow_nan=False))
    return True


def as_json(value: object) -> Any:
    """The same as plain JSON: numbers that are not finite are null, keys are texts."""
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple | set | range):
        return [as_json(one) for one in value]
    if isinstance(value, float):
        return (value + 0.0) if np.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)


# a problem on a table, and its solution


def solve(
    task: TableProblem, method: str = "column-generation", max_calls: int | None = None
) -> "FairSolution":
    """Solve, with a counter of oracle calls on stderr."""
    from evenhand.faircsc import solve_fair

    with warnings.catch_warnings(), progress("oracle calls", max_calls) as count:
        warnings.simplefilter("ignore", NotConverged)  # the report says it
        return solve_fair(
            task.problem,
            task.hypotheses,
            task.rates,
            task.sample,
            task.limit,
            method=method,  # type: ignore[arg-type]  # click offers nothing else
            group_use=task.group_use,
            max_calls=max_calls,
            progress=count,
        )


def per_person(task: TableProblem, cost: float) -> float:
    """A total cost per row: the error rate where both prices are 1."""
    return cost / len(task.sample)


def measured_rates(task: TableProblem, solution: "FairSolution") -> dict[str, dict[Group, float]]:
    """{symbol: {group: rate}} for every rate that the table lets us estimate."""
    measured: dict[str, dict[Group, float]] = {}
    for rate in RATES.values():
        try:
            rates = GapConstraints.on(rate, task.sample).group_rates(solution.acceptance)
        except CannotEstimateRate:
            continue  # a rate that is not limited may be unknown; a limited one was refused before
        # Sums of weights may miss 0 and 1 by a rounding error.
        measured |= {
            symbol: {group: min(max(value, 0.0), 1.0) for group, value in by_group.items()}
            for symbol, by_group in rates.items()
        }
    return measured


def columns_read(task: TableProblem) -> dict[str, str]:
    """How the columns of the outcome and of the group were read."""
    sample = task.sample
    good = float((sample.label == 1).mean())
    sizes = ", ".join(f"{g} ({int((sample.group == g).sum()):,})" for g in sample.groups)
    outcome = f"{task.label} = {task.good} ({good:.1%} of them)"
    return {"good outcome": outcome, f"groups in {task.group}": sizes}


def asked_of(task: TableProblem, data: str) -> dict[str, object]:
    """What was asked: the table, and what is common to everything that is solved on it."""
    from evenhand.cli.telling import fingerprint

    rows = task.source if task.frame is None else task.frame.source
    priced = " and ".join(
        f"{name.replace('_', ' ')} {price}" for name, price in task.prices.items()
    )
    return {
        "table": rows if rows == task.source else f"{rows}, described by {task.source}",
        "people": len(task.sample),
        "columns to decide by": task.table.names,
        "rows left out": task.dropped or None,
        "prices": priced if task.priced else "each error costs 1",
        "SHA-256 of the table": fingerprint(data),
        "rates": tuple(rate.name for rate in task.rates),
        "limit": task.limit,
        "rules": task.kind,
        "the group": group_use_words(task),
    }


def group_use_words(task: TableProblem) -> str:
    """Whether a rule may look at the group."""
    return "is not looked at" if task.group_use == "certify_only" else "may influence decisions"


def how_read(task: TableProblem) -> list[str]:
    """How the table was read, beside its notes."""
    lines = [f"{name}: {value}" for name, value in columns_read(task).items()]
    gaps = task.table.gaps
    if gaps is not None and gaps.per_column:
        lines.append(f"missing values: {gaps.describe()}")
    if task.dropped:
        why = "other groups, or a value or the outcome is missing"
        lines.append(f"left out: {counted(task.dropped, 'row', 'rows')} ({why})")
    for name, columns in task.table.encoded.items():
        several = f"{len(columns)} column{'s' * (len(columns) > 1)}"
        lines.append(f"encoded: {name} as {several} of 0 and 1 ({columns[0]}, ...)")
    return lines


def show_task(out: "Console", task: TableProblem) -> None:
    """Whom the table is about, and how it was read."""
    out.print(heading(f"{task.source}: {counted(len(task.sample))}"))
    lines = [f"  {line}" for line in how_read(task)]
    show_lines(out, [*lines, *(note_line(note) for note in notes_of(task))])
    warnings = [f"  WARNING: {warning_text(one)}" for one in task.warnings]
    show_lines(out, warnings, style="yellow")


SHOWN_ELSEWHERE = ("encoded", "missing values")
"""The kinds of notes that `show_task` prints as figures of its own."""


def notes_of(task: TableProblem) -> list[Note]:
    """What was done to the rows on the way in, except what is shown elsewhere."""
    return [note for note in task.table.notes if note.kind not in SHOWN_ELSEWHERE]


BASELINE_RATES = ("fpr", "fnr", "selection")
"""In the direction of these rates a heuristic class is searched without a limit."""


@dataclass(frozen=True)
class Baseline:
    """What the cheapest rule without a limit costs in total, and its largest gap in the rates that
    are limited.
    """

    cost: float
    gap: float


@lru_cache(maxsize=2)  # the screen and the document ask for the same one
@lru_cache(maxsize=1)
def without_a_limit(task: TableProblem) -> Baseline:
    """The cheapest rule of the class without a limit: one baseline per table, class and prices.

    An exact class has one cheapest rule. A heuristic search meets cheaper rules on the way to a
    limit, others for each rate; so it is asked in one fixed way, near the costs alone in the
    direction of every rate, whatever rate and limit the command is about.
    """
    from evenhand.faircsc import solve_fair

    rates = task.rates[:1] if task.hypotheses.exact else [RATES[name] for name in BASELINE_RATES]
    found: list[FairSolution] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        for rate in rates:
            try:
                found.append(
                    solve_fair(
                        task.problem,
                        task.hypotheses,
                        rate,
                        task.sample,
                        1.0,
                        group_use=task.group_use,
                    )
                )
            except CannotEstimateRate:
                continue
    best = min(found, key=lambda solution: solution.cost)
    gaps = GapConstraints.on(task.rates, task.sample).gaps(best.acceptance)
    return Baseline(best.cost, float(np.abs(gaps).max()))


def costs_of(task: TableProblem, solution: "FairSolution", baseline: Baseline) -> dict[str, float]:
    """The total cost of the policy, and of what it is compared with."""
    problem = task.problem
    return {
        "policy": solution.cost,
        "without_limit": baseline.cost,
        "accept_all": problem.rejection_total + float(problem.acceptance_cost.sum()),
        "reject_all": problem.rejection_total,
    }
