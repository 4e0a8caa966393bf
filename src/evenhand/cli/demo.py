"""`evenhand demo`: a first look, told as a story on the built-in lending table."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.cli.task import TableProblem
    from evenhand.faircsc import FairSolution, Frontier

LIMIT = 0.05


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("evenhand-demo"),
    show_default=True,
    metavar="DIR",
    help="Folder for the table, the policy and the picture; created if need be.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=0),
    default=6,
    show_default=True,
    help="How often each learner of the last act meets its applicants; 0 leaves that act out.",
)
def command(out: Path, seeds: int) -> None:
    """Solve a lending table, draw what fairness costs, and compare learners.

    \b
    Example
      evenhand demo --out evenhand-demo

    The table is invented (its recipe is in evenhand/cli/lending.py), and the demo needs nothing
    else.
    """
    from evenhand.cli.show import console

    out.mkdir(parents=True, exist_ok=True)
    tell(console(), out, seeds)


def tell(out: "Console", folder: Path, seeds: int) -> None:
    """The story, in six parts; four without the learners."""
    from evenhand.cli.frontier import trace
    from evenhand.cli.lending import write_lending_csv
    from evenhand.cli.solve import save_policy, solve_task
    from evenhand.cli.task import parse_limits

    data, policy = folder / "lending.csv", folder / "policy.json"
    write_lending_csv(data)
    task, unlimited = lending_task(data, LIMIT), lending_task(data, 1.0)
    tell_the_problem(out, unlimited, solve_task(unlimited))
    solution = solve_task(task)
    tell_the_answer(out, task, solution)
    save_policy(task, solution, policy)
    traced = trace(task, parse_limits("0:0.3:31", LIMIT))
    tell_the_price(out, task, traced)
    image = picture(out, task, traced, folder / "frontier.png")
    paths: dict[str, Path | None] = {"the table": data, "the policy": policy, "the picture": image}
    if seeds:
        from evenhand.cli.demo_certified import tell_the_certificate
        from evenhand.cli.demo_learning import tell_the_learning

        paths["the report"] = tell_the_learning(
            out, folder / "learners", seeds, os.cpu_count() or 1
        )
        paths["the certificate"], paths["the true gap"] = tell_the_certificate(out, folder)
    tell_the_paths(out, paths)


def lending_task(data: Path, limit: float) -> "TableProblem":
    """The built-in table as a task: stumps, false positive rate."""
    from evenhand.cli import lending
    from evenhand.cli.task import TableRequest, prepare

    return prepare(
        TableRequest(
            data=data, label=lending.LABEL, good=lending.GOOD, group=lending.GROUP, limit=limit
        )
    )


def _rates_in_words(task: "TableProblem", solution: "FairSolution") -> str:
    from evenhand.cli.show import measured_rates

    rates = measured_rates(task, solution)["FPR"]
    return " and ".join(f"{rate:.0%} of group {group}" for group, rate in rates.items())


def tell_the_problem(out: "Console", task: "TableProblem", solution: "FairSolution") -> None:
    """What goes wrong without a limit."""
    from evenhand.cli.show import heading, show_task

    out.print(heading("1. A lender, two groups, and a rule that looks reasonable\n"))
    show_task(out, task)
    out.print(
        f"\nThe rule with the fewest errors is: [bold]{solution.policy.hypotheses[0].describe(task.names)}[/bold]. It errs on "
        f"{task.per_person(solution.cost):.1%} of the people. But look at those who would [italic]not[/italic] repay: it gives "
        f"a loan to {_rates_in_words(task, solution)}. The same mistake is made far more often in one group than in the other: "
        f"a gap of {abs(float(solution.gaps[0])):.2f}, although both groups repay equally often.\n"
    )


def tell_the_answer(out: "Console", task: "TableProblem", solution: "FairSolution") -> None:
    """The mixture within the limit."""
    from evenhand.cli.show import heading, optimality, show_policy, show_rates

    out.print(heading(f"2. Now the gap may be {LIMIT:g} at most"))
    show_policy(out, task, solution.policy)
    show_rates(out, task, solution)
    out.print(
        f"\nNow {_rates_in_words(task, solution)} get a loan although they would not repay. The price: "
        f"{task.per_person(solution.cost):.1%} errors. This is {optimality(task, solution)}. Neither rule alone would do: the "
        f"limit holds for the mixture, and nobody's group was looked at to decide.\n"
    )


def tell_the_price(out: "Console", task: "TableProblem", traced: "Frontier") -> None:
    """The cost of fairness over a few limits."""
    from dataclasses import replace

    from evenhand.cli.show import IN_SAMPLE, heading, show_frontier

    out.print(heading("3. And other limits?"))
    some = [i for i, limit in enumerate(traced.limits) if round(float(limit) * 1000) % 50 == 0]
    few = replace(
        traced, limits=traced.limits[some], solutions=tuple(traced.solutions[i] for i in some)
    )
    show_frontier(out, task, few)
    out.print(f"\n[dim]{IN_SAMPLE}[/dim]\n")


def picture(out: "Console", task: "TableProblem", traced: "Frontier", path: Path) -> Path | None:
    """Draw it; without matplotlib the demo goes on without a picture."""
    from evenhand.cli.frontier import draw
    from evenhand.errors import EvenhandError

    try:
        draw(task, traced, path)
    except EvenhandError as error:
        out.print(f"No picture: {error}\n", markup=False)
        return None
    return path


def tell_the_paths(out: "Console", paths: Mapping[str, Path | None]) -> None:
    """What was written, and what to type next."""
    from evenhand.cli.show import heading

    out.print(heading(f"\n{6 if 'the report' in paths else 4}. Yours to look at"))
    for name, path in paths.items():
        if path is not None:
            out.print(f"  {name + ':':<17}{path}", markup=False, soft_wrap=True)
    out.print("\nTry it yourself:")
    common = f"{paths['the table']} --label repaid --good yes --group group"
    out.print(
        f"  evenhand solve {common} --rate fpr --rate fnr --limit 0.1", markup=False, soft_wrap=True
    )
    out.print(
        f"  evenhand frontier {common} --class linear --out linear.png",
        markup=False,
        soft_wrap=True,
    )
    out.print(
        "  evenhand compare --environment thresholds --rounds 50000 --seeds 5",
        markup=False,
        soft_wrap=True,
    )
    plan = "--shares a=0.6,b=0.4 --bad-rates a=0.2,b=0.3 --auc 0.76 --limit 0.05 --price-false-accept 5 --out plan.png"
    out.print(f"  evenhand plan {plan}", markup=False, soft_wrap=True)
