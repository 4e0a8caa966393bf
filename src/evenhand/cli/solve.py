"""`evenhand solve`: the cheapest mixture of a class whose rates differ by at most a limit on a
table.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli import show
from evenhand.cli.certify import certify_options, named_ceilings, present_certified
from evenhand.cli.messages import warning_text
from evenhand.cli.options import (
    NATURAL,
    POSITIVE,
    ColumnOptions,
    Share,
    column_options,
    problem_options,
    rates_option,
)
from evenhand.cli.problem import TableProblem, policy_file, table_problem
from evenhand.cli.solved import IN_SAMPLE, solved, with_held
from evenhand.cli.telling import Telling, save_option, telling_options
from evenhand.errors import InvalidInput
from evenhand.words import LabelledSample

if TYPE_CHECKING:
    from evenhand.evaluation import Measurement, PolicyFile
    from evenhand.faircsc import FairSolution


@click.command("solve")
@click.argument("data", metavar="DATA")
@column_options
@rates_option()
@problem_options
@click.option(
    "--method",
    type=click.Choice(("column-generation", "saddle-point")),
    default="column-generation",
    help="The solver; saddle-point is the paper's recipe.",
)
@click.option("--max-calls", type=POSITIVE, help="Stop after this many oracle calls.")
@click.option(
    "--holdout",
    metavar="SHARE",
    type=Share("(0, 1)"),
    help="Hold out this share of every group, choose the policy on the rest, and test it on them.",
)
@click.option(
    "--seed",
    type=NATURAL,
    default=0,
    help="Seed of the choice of people held out, or of the split of --certify. With --certify fix "
    "seed and limit beforehand: DELTA does not cover the best of several calls.",
)
@click.option(
    "--certify",
    metavar="DELTA",
    type=Share("(0, 1)"),
    help="Fit on a third of the table (half, for classes that are not exact) and certify on the "
    "rest: the limit holds for the population with probability 1 - DELTA, not on the table alone.",
)
@certify_options
@save_option
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
    method: str,
    max_calls: int | None,
    holdout: float | None,
    seed: int,
    certify: float | None,
    ceilings: tuple[str, ...],
    no_coins: bool,
    saved: Path | None,
    telling: Telling,
) -> None:
    """Find the cheapest mixture of rules whose rates differ by at most a limit.

    DATA is a known table, a description (.toml), or a file (CSV, Excel, Parquet, JSON lines): one
    row per person, with the outcome, the group and what a decision may look at.

    \b
    Example: loans, where group and outcome are known for all people
      evenhand solve loans.csv --label repaid --good yes --group sex \\
          --rate fpr --limit 0.05 --class stumps --save policy.json

    \b
    The classes
      stumps      one cut in one column, either direction; exact
      thresholds  accept from a score on (--score COL); exact; one cut per group with
                  --group-use decide
      linear      weighted sum of the columns, logistic surrogate and best cut; heuristic
      logistic    scikit-learn's logistic regression; heuristic
      tree        scikit-learn's decision tree of depth 5; heuristic
      lightgbm    60 boosted trees (extra: trees); heuristic

    The answer is a mixture: a coin picks one of its rules for each person. The limit holds for the
    mixture, on this table. For the population that the table was drawn from it is certified with
    --certify 0.05; --no-coins then finds the cheapest single rule that passes. --out page.html
    writes the page to hand over.
    """
    if certify is None and (ceilings or no_coins):
        raise InvalidInput(
            "--ceiling and --no-coins belong to a certificate.", hint="add --certify 0.05."
        )
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
        holdout=holdout,
        seed=seed,
    )
    if certify is not None:
        present_certified(
            task,
            data,
            delta=certify,
            ceilings=named_ceilings(ceilings),
            randomise=not no_coins,
            max_calls=max_calls,
            seed=seed,
            saved=saved,
            telling=telling,
        )
        return
    solution = show.solve(task, method, max_calls)
    file = solved_file(task, solution)
    if saved is not None:
        show.write_json(saved, file.to_json(), indent=2)
    result = solved(task, solution, file)
    if task.held is not None:
        measured = test_held(task, task.held, solution)
        held = measured.result(task.limit)
        result = with_held(result, len(task.held), held, measured.to_json())
    telling.tell(
        result,
        title=f"A policy chosen on {task.source}",
        asked={
            **show.asked_of(task, data),
            "method": method,
            "seed": None if task.held is None else seed,
        },
        read=show.how_read(task),
        beware=[warning_text(one) for one in task.warnings],
        notes=show.notes_of(task),
        saved=saved,
    )


def test_held(task: TableProblem, held: LabelledSample, solution: "FairSolution") -> "Measurement":
    """What `evenhand test` would measure with the policy's file."""
    from evenhand.cli.apply import judged_by
    from evenhand.evaluation import measure_policy

    file = policy_file(task, solution.policy)
    return judged_by(file, measure_policy(solution.policy, held, prices=file.prices))


def solved_file(task: TableProblem, solution: "FairSolution") -> "PolicyFile":
    """The policy with what it is worth on the table that it was chosen on."""
    rates = show.measured_rates(task, solution)
    baseline = show.without_a_limit(task)
    totals = show.costs_of(task, solution, baseline)
    lower = solution.lower_bound
    file = policy_file(task, solution.policy)
    figures = {
        **file.figures,
        "rates": rates,
        "gaps": dict(zip(solution.report.constraint_names, solution.gaps.tolist(), strict=True)),
        "largest_gaps": {
            symbol: max(values.values()) - min(values.values()) for symbol, values in rates.items()
        },
        "lower_bound_per_person": None if lower is None else show.per_person(task, lower),
        "oracle_calls": solution.oracle_calls,
        "method": solution.report.method,
        "converged": solution.report.converged,
        **({"solver_note": solution.report.note} if solution.report.note else {}),
        "costs_per_person": {name: show.per_person(task, cost) for name, cost in totals.items()},
        "gap_without_limit": baseline.gap,
        "notes": [str(note) for note in task.table.notes],
    }
    cost = show.per_person(task, solution.cost)
    return replace(file, cost=cost, note=IN_SAMPLE, figures=figures)
