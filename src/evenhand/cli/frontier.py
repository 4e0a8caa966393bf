"""`evenhand frontier`: Figure 1 of the paper for a table, and what each limit costs."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import ONE_RATE, PROBLEM_OPTIONS, TABLE_OPTIONS, output_path, with_options

if TYPE_CHECKING:
    from evenhand.cli.task import TableProblem
    from evenhand.faircsc import Frontier
    from evenhand.words import FloatArray


@click.command("frontier")
@with_options(
    *TABLE_OPTIONS,
    ONE_RATE,
    *PROBLEM_OPTIONS,
    click.option(
        "--limits",
        default="0:0.3:31",
        show_default=True,
        metavar="GRID",
        help="Limits to try: start:stop:count, or a list 0,0.05,0.1.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path("frontier.png"),
        show_default=True,
        callback=output_path(".png", ".svg", ".pdf"),
        help="The picture: .png, .svg or .pdf.",
    ),
    click.option(
        "--table",
        type=click.Path(path_type=Path),
        callback=output_path(".csv"),
        metavar="TABLE.CSV",
        help="Save the figures behind it as CSV.",
    ),
)
def command(limits: str, out: Path, table: Path | None, **options: Any) -> None:
    """Draw what mixtures can reach, and what each limit costs.

    The picture is Figure 1 of the paper, for your table: gap across, accuracy up, the part within
    --limit in green. It needs two groups (choose them with --groups A,B) and one rate.

    \b
    Example
      evenhand frontier loans.csv --label repaid --good yes --group sex \\
          --rate fpr --limit 0.05 --limits 0:0.3:31 --out frontier.png --table frontier.csv
    """
    from evenhand.cli.task import TableRequest, parse_limits, prepare

    grid = parse_limits(limits, options["limit"])
    task = prepare(TableRequest(**options))
    traced = trace(task, grid)
    draw(task, traced, out)
    if table is not None:
        save_table(task, traced, table)
    report(task, traced)
    click.echo(f"\nPicture: {out}" + (f"\nTable: {table}" if table else ""))


def report(task: "TableProblem", traced: "Frontier") -> None:
    """Print the table of limits."""
    from evenhand.cli import show

    out = show.console()
    show.show_task(out, task)
    show.show_frontier(out, task, traced)
    out.print(f"\n{show.IN_SAMPLE}")


def trace(task: "TableProblem", grid: "FloatArray") -> "Frontier":
    """Solve at every limit, with a bar on stderr."""
    from evenhand.cli.show import progress
    from evenhand.errors import InvalidInput
    from evenhand.faircsc import frontier

    if len(task.sample.groups) > 2:
        raise InvalidInput(
            f"the column {task.group!r} has {len(task.sample.groups)} groups ({', '.join(task.sample.groups)}); the picture compares two.",
            hint="choose two with --groups A,B; `evenhand solve` takes any number.",
        )
    with progress("limits and directions", len(grid) + 32) as told:
        return frontier(
            task.problem,
            task.hypotheses,
            task.rates[0],
            task.sample,
            grid.tolist(),
            group_use=task.group_use,
            progress=told,
        )


def draw(task: "TableProblem", traced: "Frontier", path: Path) -> None:
    """Write the picture."""
    from evenhand.report import draw_region, save_figure

    groups = task.sample.groups
    title = f"{task.source}: {len(task.sample):,} people, {task.kind}"
    figure = draw_region(
        traced,
        task.limit,
        people=len(task.sample),
        rate=task.rates[0],
        groups=(groups[0], groups[1]),
        priced=task.priced,
        title=title,
    )
    save_figure(figure, path)


def save_table(task: "TableProblem", traced: "Frontier", path: Path) -> None:
    """One line per limit."""
    name = task.cost_name.replace(" ", "_")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["limit", name, "price_of_fairness", "gap", "lower_bound", "oracle_calls", "mixture"]
        )
        for limit, solution, price in zip(
            traced.limits, traced.solutions, traced.price_of_fairness, strict=True
        ):
            lower = "" if solution.lower_bound is None else task.per_person(solution.lower_bound)
            words = "; ".join(solution.policy.describe(task.names).splitlines())
            figures = [
                float(limit),
                task.per_person(solution.cost),
                task.per_person(float(price)),
                float(solution.gaps[0]),
            ]
            writer.writerow([*figures, lower, solution.oracle_calls, words])
