"""`evenhand alternatives`: is there a rule with a smaller gap that costs no more than today's?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli import show
from evenhand.cli.options import (
    COMMA_LIST,
    NATURAL,
    POSITIVE,
    ColumnOptions,
    Share,
    class_options,
    column_options,
    rates_option,
)
from evenhand.cli.problem import policy_file, table_problem
from evenhand.cli.telling import Telling, save_option, telling_options
from evenhand.errors import InvalidInput
from evenhand.tables import DECISION, Frame, Note, number, prepare, two_values
from evenhand.words import FloatArray, Prices

if TYPE_CHECKING:
    pass


@click.command("alternatives")
@click.argument("data", metavar="TABLE")
@click.option(
    "--incumbent",
    metavar="POLICY.JSON|COL|RULE",
    required=True,
    help="What is used today: a policy of `evenhand solve --save`, the column with its decisions "
    '(or probabilities of being accepted), or a rule such as "score>=620".',
)
@click.option(
    "--accepted",
    metavar="VALUE",
    help="With a column: the value of an acceptance. Default: 1 of 0/1 or -1/1.",
)
@click.option(
    "--rejected",
    metavar="A,B",
    type=COMMA_LIST,
    help="With a column: the values of rejections, if several.",
)
@column_options
@rates_option()
@class_options
@click.option(
    "--extra-cost",
    type=float,
    default=0.0,
    help="How much more than the incumbent an alternative may cost, per person.",
)
@click.option(
    "--least-improvement",
    type=Share("[0, 1]"),
    default=0.02,
    help='Say "none" if no mixture is proved to make the gap smaller by more than this.',
)
@click.option("--no-coins", is_flag=True, help="Alternatives are single rules, without a lottery.")
@click.option("--candidates", type=POSITIVE, default=3, help="Test at most this many.")
@click.option(
    "--delta", type=Share("(0, 1)"), default=0.05, help="Probability that the verdict is wrong."
)
@click.option(
    "--fit-share",
    type=Share("(0, 1)"),
    default=1 / 3,
    show_default="1/3",
    help="Share that is searched.",
)
@click.option("--max-calls", type=POSITIVE, help="Stop each fit after this many oracle calls.")
@click.option(
    "--seed",
    type=NATURAL,
    default=0,
    help="Seed of the split and of all draws. Fix it beforehand: delta does not cover the best of "
    "several calls.",
)
@save_option
@telling_options
def command(
    data: str,
    incumbent: str,
    accepted: str | None,
    rejected: tuple[str, ...] | None,
    columns: ColumnOptions,
    rates: tuple[str, ...],
    kind: str,
    score: str | None,
    price_false_accept: str,
    price_false_reject: str,
    group_use: str,
    extra_cost: float,
    least_improvement: float,
    no_coins: bool,
    candidates: int,
    delta: float,
    fit_share: float,
    max_calls: int | None,
    seed: int,
    saved: Path | None,
    telling: Telling,
) -> None:
    """Is there a rule with a smaller gap that costs no more than the incumbent?

    TABLE is a file or a known table of people whose outcomes are all known. A third of them is
    searched for alternatives; the others test what was found, so that "found" holds for the
    population. For --class stumps and thresholds it is also proved which gaps no mixture of the
    class reaches at the incumbent's cost; other classes are searched, and what the search missed is
    not excluded.

    \b
    Example: today's rule is a cut-off
      evenhand alternatives loans.csv --label repaid --good yes --group sex \\
          --incumbent "credit_score>=600"

    \b
    Example: today's decisions stand in a column
      evenhand alternatives loans.csv --label repaid --good yes --group sex \\
          --incumbent approved --accepted yes --rate fnr --out alternatives.html

    \b
    The verdicts
      found  an alternative has a smaller gap and costs no more (with --extra-cost: little more)
      none   no mixture of the class makes the gap smaller by more than --least-improvement
      open   neither is shown; the text says which gaps are excluded, and which are not
    """
    from evenhand.table_alternatives import alternatives

    kinds = _kind(incumbent, accepted, rejected or ())
    task = table_problem(
        data,
        columns,
        rates=rates,
        kind=kind,
        score=score,
        price_false_accept=price_false_accept,
        price_false_reject=price_false_reject,
        group_use=group_use,
        decision=incumbent if kinds == "column" else None,
    )
    assert task.frame is not None
    decided, words, doubt = _decided(kinds, incumbent, task.frame, accepted, rejected or ())
    bad = task.sample.label == -1
    problem = task.problem
    prices = Prices(
        _one(np.where(bad, problem.cost_if_accepted, 0.0), bad),
        _one(np.where(bad, 0.0, problem.cost_if_rejected), ~bad),
    )
    found = alternatives(
        task.hypotheses,
        task.sample,
        decided,
        rates=task.rates,
        prices=prices,
        extra_cost=extra_cost,
        least_improvement=least_improvement,
        delta=delta,
        candidates=candidates,
        randomise=not no_coins,
        group_use=task.group_use,
        fit_share=fit_share,
        max_calls=max_calls,
        seed=seed,
    )
    names = list(task.table.names)
    found = replace(found, columns=tuple(names))
    written = None
    if saved is not None and found.best is not None:
        written = saved
        best = found.best
        cost = found.incumbent_cost + best.cost_difference
        file = replace(policy_file(task, best.policy), limit=None, cost=cost, note=found.sentence)
        show.write_json(saved, file.to_json(), indent=2)
    telling.tell(
        found.result(names),
        title=f"Alternatives to {words}",
        asked={
            **show.asked_of(task, data),
            "limit": None,
            "incumbent": words,
            "further cost allowed": extra_cost,
            "least improvement": least_improvement,
            "coins at decision time": not no_coins,
            "delta": delta,
            "seed": seed,
        },
        read=show.how_read(task),
        notes=[*show.notes_of(task), *doubt],
        saved=written,
    )
    if saved is not None and written is None and not telling.quiet:
        click.echo("\nNothing saved: no alternative is shown to be better.")


def _kind(incumbent: str, accepted: str | None, rejected: tuple[str, ...]) -> str:
    """Whether the incumbent is a policy file, a rule or a column."""
    kind = "column"
    if incumbent.endswith(".json"):
        kind = "policy"
    elif any(sign in incumbent for sign in (">=", "<")):
        kind = "rule"
    if kind != "column" and (accepted is not None or rejected):
        raise InvalidInput(
            f"--accepted and --rejected read a column of decisions, and --incumbent {incumbent} "
            f"is a {kind}.",
            hint="leave them out, or name a column.",
            argument="accepted",
        )
    return kind


def _decided(
    kind: str, incumbent: str, frame: Frame, accepted: str | None, rejected: tuple[str, ...]
) -> tuple[FloatArray, str, list[Note]]:
    """The incumbent's probability of accepting each person, what it is in words, and notes."""
    if kind == "policy":
        chance, notes = _by_policy(incumbent, frame)
        return chance, Path(incumbent).name, notes
    if kind == "rule":
        return _by_rule(incumbent, frame), f"accept if {incumbent}", []
    column = frame[incumbent]
    values = column.numbers
    if values is not None and accepted is None:
        distinct = np.unique(values)
        inside = bool(((values >= 0) & (values <= 1)).all())
        if inside and (len(distinct) > 2 or not np.isin(distinct, (0.0, 1.0)).all()):
            words = f"accept with probability {incumbent}"
            return np.asarray(values, dtype=np.float64), words, []
        if len(distinct) > 2:
            raise InvalidInput(
                f"{frame.source}: the column {incumbent!r} holds {len(distinct):,} different "
                "numbers; decisions have two values, and probabilities lie between 0 and 1.",
                hint=f'if it is a score, name its cut-off: --incumbent "{incumbent}>=600".',
                argument="incumbent",
            )
    decided, value = two_values(frame, incumbent, accepted, rejected, DECISION)
    return (decided > 0).astype(np.float64), f"{incumbent} = {value}", []


def _by_policy(path: str, frame: Frame) -> tuple[FloatArray, list[Note]]:
    from evenhand.cli.apply import groups_of, same_table
    from evenhand.evaluation import PolicyFile

    file = PolicyFile.read(path)
    groups, _ = groups_of(file, frame, None, drop=False, unseen="refuse")
    ready = prepare(frame, file.recipe, drop_missing=False, unseen="refuse")
    notes = [*ready.notes, *same_table(file, frame.source)]
    return np.asarray(file.policy.acceptance(ready.features, groups), dtype=np.float64), notes


def _by_rule(text: str, frame: Frame) -> FloatArray:
    sign = ">=" if ">=" in text else "<"
    name, _, cut = text.partition(sign)
    value = number(cut)
    column = name.strip()
    if value is None or not column:
        raise InvalidInput(
            f"--incumbent is {text!r}; a rule is a column, >= or <, and a number.",
            hint='--incumbent "score>=620".',
            argument="incumbent",
        )
    frame.require([column])
    scores = frame.finite(column)
    accepted = scores >= value if sign == ">=" else scores < value
    return np.asarray(accepted, dtype=np.float64)


def _one(values: FloatArray, here: "np.ndarray") -> "float | FloatArray":
    """One price where all people concerned have the same."""
    distinct = np.unique(values[here])
    return float(distinct[0]) if len(distinct) == 1 else values
