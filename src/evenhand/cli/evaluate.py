"""`evenhand evaluate`: what a log of decisions says about another policy: its cost and its gaps,
with intervals.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.gating import Gating, gate_options, leave
from evenhand.cli.options import (
    COMMA_LIST,
    NATURAL,
    PICTURE_FILE,
    FileOptions,
    Share,
    Unseen,
    file_options,
    json_options,
    price_options,
    rates_option,
    unseen_option,
)
from evenhand.cli.reporting import fingerprint, report_option, write_page
from evenhand.cli.show import console, emit, grid, heading, show_lines
from evenhand.errors import InvalidInput
from evenhand.words import Prices

if TYPE_CHECKING:
    from evenhand.evaluation import Candidate, DecisionLog, Evaluation
    from evenhand.evaluation.evaluate import Estimate

DEMO = "demo"
DEMO_ROWS = 20_000
DEMO_SEED = 2020
STYLES = {
    "within": "green",
    "above": "bold red",
    "not shown": "yellow",
    "contradiction": "bold red",
    "no groups": "",
}


@click.command("evaluate")
@click.argument("logs", metavar="LOGS")
@click.option(
    "--policy",
    metavar="POLICY",
    required=True,
    help="The candidate: a policy as JSON, accept-all, or reject-all.",
)
@click.option(
    "--column",
    "columns",
    metavar="ROLE=COL",
    multiple=True,
    help="A column with another name; roles: id, group, accept, acceptance, propensity, label, "
    "count. Repeat it.",
)
@click.option(
    "--good",
    metavar="VALUE",
    help="The value of the label that is the good outcome.",
)
@click.option(
    "--features", metavar="A,B,C", type=COMMA_LIST, help="Features to keep.  [default: all]"
)
@file_options
@click.option(
    "--groups",
    metavar="A,B",
    type=COMMA_LIST,
    help="The groups to compare; other people are outside.  [default: all]",
)
@click.option(
    "--skip-first",
    metavar="N",
    type=NATURAL,
    default=0,
    help="Leave out the first N rows, because the candidate was chosen with their help.",
)
@unseen_option
@click.option(
    "--drop-missing",
    is_flag=True,
    help="Leave out rows that lack a value that POLICY needs; the answer is then about people who "
    "have all values.",
)
@rates_option()
@click.option("--limit", type=Share("[0, 1]"), default=0.05, help="The limit of the gap.")
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="Probability that any interval is ever wrong, shared by the cost and all gaps.",
)
@price_options
@click.option(
    "--figure",
    metavar="FILE",
    type=PICTURE_FILE,
    help="Draw the gaps with their bands along the log, against the limit.",
)
@gate_options
@report_option
@json_options
def command(
    logs: str,
    policy: str,
    columns: tuple[str, ...],
    good: str | None,
    features: tuple[str, ...] | None,
    reading: FileOptions,
    groups: tuple[str, ...] | None,
    skip_first: int,
    unseen: Unseen,
    drop_missing: bool,
    rates: tuple[str, ...],
    limit: float,
    delta: float,
    price_false_accept: float,
    price_false_reject: float,
    figure: Path | None,
    gating: Gating,
    page: Path | None,
    document: str | Path | None,
) -> None:
    """Estimate from a log of past decisions what another policy would cost, and how far its rates
    would be apart.

    LOGS is a table (CSV, Excel, Parquet, JSON lines) in the order in which the decisions were
    drawn, with columns id, group, accept, acceptance, label, feature_... It holds, for each person:
    the features, the group, the probability of being accepted, the decision, and the outcome if the
    person was accepted. The outcomes of rejected people are unknown, so the accepted are weighted
    by their probability. `demo` is a log of 20,000 synthetic loans.

    \b
    Example: how much would accepting all applicants cost?
      evenhand evaluate demo --policy accept-all --price-false-accept 3

    \b
    Example: a policy that was found on other people
      evenhand solve loans.csv --label repaid --good yes --group sex --save policy.json
      evenhand evaluate decisions.parquet --policy policy.json --rate fpr --limit 0.1 \\
          --figure gap.png

    \b
    Which command measures what
      evaluate  what another policy would have cost, from a log with probabilities
      measure   decisions that were made, by whatever means; outcomes may be missing
      test      a policy of `solve` on new people whose outcomes are all known

    A policy of `solve --out` reads texts, dates and missing values as its file says, and knows the
    names of the outcome and the group. accept-all and reject-all need no features.

    The intervals hold at every row of the log at once, so a log may be looked at while it grows.
    The candidate must have been chosen without these rows; --skip-first leaves out those that were
    used.
    """
    from evenhand.evaluation import Candidate, evaluate, gate
    from evenhand.fairness.rates import as_rates
    from evenhand.media.drawing import require

    if figure is not None:
        require("matplotlib")  # before the work, not after
    asked = {
        "log": logs,
        "SHA-256 of the log": fingerprint(logs),
        "candidate": policy,
        "SHA-256 of the candidate": fingerprint(policy),
        "columns": columns,
        "rates": rates,
        "groups": groups,
        "rows left out at the beginning": skip_first or None,
        "limit": limit,
        "price of a false accept": price_false_accept,
        "price of a false reject": price_false_reject,
    }
    title = f"What {policy} would have done, by {logs}"
    candidate = Candidate.read(policy)
    log = read_asked_log(logs, columns, features, good, reading, candidate, unseen, drop_missing)
    log = log.without_first(skip_first)
    opened = gating.open(delta, logs, policy)
    evaluation = evaluate(
        log,
        candidate,
        rates=as_rates(rates),
        limit=limit,
        delta=opened.delta,
        prices=Prices(price_false_accept, price_false_reject),
        groups=groups or None,
    )
    result = opened.judge(evaluation, limit)
    if figure is not None:
        from evenhand.report import evaluation_figure, save_figure

        save_figure(evaluation_figure(evaluation), figure)
    figures = evaluation.to_json()
    if result is not None:
        figures["gate"] = result.to_json()
    printed = emit(document, figures)
    if not printed:
        priced = (price_false_accept, price_false_reject) != (1.0, 1.0)
        show_evaluation(evaluation, log, priced)
        if document is not None:
            click.echo(f"Figures: {document}")
        if figure is not None:
            click.echo(f"Picture: {figure}")
    write_page(
        page,
        evaluation,
        title=title,
        asked={**asked, "delta": opened.delta},
        verdict=gate(evaluation, limit) if evaluation.gaps else None,
        quiet=document == "-",
    )
    leave(result, quiet=printed)


def read_asked_log(
    logs: str,
    columns: tuple[str, ...],
    features: tuple[str, ...] | None,
    good: str | None,
    reading: FileOptions,
    candidate: "Candidate",
    unseen: Unseen,
    drop_missing: bool,
) -> "DecisionLog":
    """The log that the user asks about; `columns` are texts ROLE=COL."""
    from evenhand.evaluation import read_log

    roles = as_roles(columns)
    if logs == DEMO:
        return demo_log()
    return read_log(
        logs,
        columns=roles,
        features=features or None,
        good=good,
        candidate=candidate,
        unseen=unseen,
        drop_missing=drop_missing,
        **reading.given(),
    )


def as_roles(columns: tuple[str, ...]) -> dict[str, str]:
    """{role: column} from texts ROLE=COL."""
    roles = {}
    for text in columns:
        role, _, column = text.partition("=")
        if not column:
            raise InvalidInput(
                f"--column {text!r} is not ROLE=COL.", hint="for example --column group=sex."
            )
        roles[role.strip()] = column.strip()
    return roles


def demo_log(rows: int = DEMO_ROWS, seed: int = DEMO_SEED) -> "DecisionLog":
    """Loans of the built-in recipe, decided by a lender who leans on the score and still accepts
    each applicant with a probability of at least a tenth.
    """
    import csv
    from io import StringIO

    import numpy as np
    from scipy.special import expit

    from evenhand.cli.demo import COLUMNS, GOOD, make_lending_table
    from evenhand.evaluation import DecisionLog

    people = list(csv.DictReader(StringIO(make_lending_table(seed, rows))))
    names = COLUMNS[:5]
    features = np.array([[float(person[name]) for name in names] for person in people])
    chance = 0.1 + 0.85 * expit((features[:, names.index("credit_score")] - 650.0) / 30.0)
    accept = np.random.default_rng([seed, 1]).random(rows) < chance
    label = [1 if person["repaid"] == GOOD else -1 for person in people]
    group = [person["group"] for person in people]
    return DecisionLog.of(
        features, accept, chance, np.where(accept, label, 0), group=group, names=names, source=DEMO
    )


def show_evaluation(evaluation: "Evaluation", log: "DecisionLog", priced: bool) -> None:
    """The verdict, the figures behind it, what to beware of, and what it rests on."""
    table = grid("", ">estimate", ">between", ">and", ">people", ">worth", ">limit")

    def figures(estimate: "Estimate", sign: str = "") -> tuple[str, str, str]:
        value = "unknown" if estimate.value is None else f"{estimate.value:{sign}.4f}"
        return value, f"{estimate.lower:{sign}.4f}", f"{estimate.upper:{sign}.4f}"

    table.add_row("cost per person" if priced else "error rate", *figures(evaluation.loss))
    for rate in evaluation.rates:
        counts = f"{rate.labelled:,.0f}", f"{rate.effective:,.0f}"
        table.add_row(f"{rate.rate} {rate.group}", *figures(rate.estimate), *counts)
    for gap in evaluation.gaps:
        stands = f"≤ {evaluation.limit:g} {gap.stands(evaluation.limit)}"
        table.add_row(f"gap {gap.name}", *figures(gap.estimate, "+"), "", "", stands)
    out = console()
    show_lines(out, [evaluation.sentence], style=STYLES[evaluation.verdict])
    out.print(heading(f"\n{log.source}: {evaluation.people:,.0f} decisions"))
    accepted = f"{evaluation.accepted:,.0f} accepted"
    accepted += f" ({evaluation.accepted / evaluation.people:.1%})"
    if evaluation.open:
        accepted += f", {evaluation.open:,.0f} of them with an open outcome"
    worth = f"{evaluation.support.effective_accepts:,.0f} equally weighted ones"
    show_lines(out, [f"  {accepted}; the candidate's accepts are worth {worth}"])
    out.print(heading(f"\nIf {evaluation.candidate} had decided"))
    out.print(table)
    together = "intervals hold together, at every row of the log at once."
    show_lines(out, [f"  Estimates are doubly robust; {together}"], style="dim")
    parts = {"Beware": evaluation.warnings, "Assumptions": evaluation.assumptions}
    for title, lines in parts.items():
        if lines:
            out.print(heading(f"\n{title}"))
            show_lines(out, [f"  - {line}" for line in lines])
