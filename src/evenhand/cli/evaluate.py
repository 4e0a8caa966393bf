"""`evenhand evaluate`: what a log of decisions says about another policy: its cost and its gaps,
with intervals.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import (
    FILE_OPTIONS,
    JSON_OPTION,
    MANY_RATES,
    NATURAL,
    PICTURE_FILE,
    PRICE_OPTIONS,
    OutputFile,
    file_reading,
    option,
    split,
)
from evenhand.cli.show import console, emit, grid, heading, show_lines
from evenhand.contracts import Params
from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from evenhand.evaluation import DecisionLog, Evaluation
    from evenhand.evaluation.evaluate import Estimate

DEMO, DEMO_ROWS, DEMO_SEED = "demo", 20_000, 2020
FORMATS = ("parquet", "csv", "excel", "jsonl", "obp", "dsjson", "vw")
LOG_FILE = OutputFile(".parquet", ".csv", ".jsonl", ".npz", ".dsjson", ".vw", ".dat")
STYLES = {
    "within": "green",
    "above": "bold red",
    "not shown": "yellow",
    "contradiction": "bold red",
    "no groups": "",
}


@click.command(
    "evaluate",
    params=[
        click.Argument(["logs"], metavar="LOGS"),
        option("--policy POLICY", "The candidate: a policy as JSON, accept-all, or reject-all."),
        option(
            "--format kind", "Whose format LOGS has.  [default: by suffix]", click.Choice(FORMATS)
        ),
        option(
            "--column columns ROLE=COL",
            "A column with another name; roles: id, group, accept, acceptance, propensity, label, "
            "count. Repeat it.",
            multiple=True,
        ),
        option(
            "--good VALUE",
            "The value of the label (VW: the cost of an accept) that is the good outcome.",
        ),
        option("--features A,B,C", "Features to keep.  [default: all]"),
        *FILE_OPTIONS,
        option("--groups A,B", "The groups to compare; other people are outside.  [default: all]"),
        option(
            "--skip-first N",
            "Leave out the first N rows, because the candidate was chosen with their help.",
            NATURAL,
            default=0,
        ),
        MANY_RATES,
        option("--limit", "The largest allowed gap.", float, default=0.05),
        option(
            "--delta",
            "How likely any interval may be wrong, at any time: shared by the cost and all gaps.",
            float,
            default=0.05,
        ),
        *PRICE_OPTIONS,
        option(
            "--figure FILE",
            "Draw the gaps with their bands along the log, against the limit.",
            PICTURE_FILE,
        ),
        JSON_OPTION,
        option(
            "--convert-to converted FILE",
            "Write the log in another format, by suffix; then --policy may be left out.",
            LOG_FILE,
        ),
    ],
)
def command(logs: str, policy: str | None, converted: Path | None, **options: Any) -> None:
    """Tell from a log of past decisions what another policy would cost, and how far its rates would
    be apart.

    LOGS holds, for each person: the features, the group, the probability with which the person was
    accepted, whether it happened, and the outcome of the accepted. Nobody sees the outcomes of the
    rejected, so the accepted are weighted by their probability. Logs without probabilities are
    refused: nothing can be certified from them. `demo` is a log of 20,000 invented loans.

    \b
    Example: how much would accepting everybody cost?
      evenhand evaluate demo --policy accept-all --price-false-accept 3

    \b
    Example: a policy that was found on other people
      evenhand solve loans.csv --label repaid --good yes --group sex --out policy.json
      evenhand evaluate decisions.parquet --policy policy.json --rate fpr --limit 0.1 \\
          --figure gap.png

    \b
    Example: from Vowpal Wabbit's format to Parquet
      evenhand evaluate decisions.dsjson --convert-to decisions.parquet

    \b
    The formats, by suffix
      .parquet .csv .xlsx .jsonl  columns id, group, accept, acceptance, label, feature_...
      .npz                  Open Bandit Pipeline's dict (action 1 accepts)
      .dsjson               Vowpal Wabbit's decision logs (action 1 accepts, 2 rejects)
      .vw .dat              Vowpal Wabbit's cb text, action:cost:probability

    \b
    Which command measures what
      evaluate  what another policy would have cost, from a log with probabilities
      measure   decisions that were made, by whatever means; outcomes may be missing
      test      a policy of `solve` on new people whose outcomes are all known

    The intervals hold at every row of the log at once, so a log may be looked at while it grows.
    The candidate must have been chosen without these rows; --skip-first leaves out those that were
    used.
    """
    from evenhand.evaluation import write_log
    from evenhand.report.drawing import require

    if options["figure"] is not None:
        require("matplotlib")  # before the work, not after
    if policy is None and converted is None:
        raise InvalidInput(
            "there is nothing to do: neither --policy nor --convert-to was given.",
            hint="--policy policy.json, or accept-all to begin with.",
        )
    log = asked_log(logs, options).without_first(options["skip_first"])
    if converted is not None:
        write_log(log, converted)
    if policy is not None:
        evaluation = asked_evaluation(log, policy, options)
        if options["figure"] is not None:
            from evenhand.report import evaluation_figure, save_figure

            save_figure(evaluation_figure(evaluation), options["figure"])
        if emit(options["document"], evaluation.to_json()):
            return
        show_evaluation(evaluation, log, options)
        for name, path in {"Figures": options["document"], "Picture": options["figure"]}.items():
            if path is not None:
                click.echo(f"{name}: {path}")
    elif emit(options["document"], {"log": converted, "rows": len(log)}):
        return
    if converted is not None:
        click.echo(f"Log: {converted} ({len(log):,} rows)")


def asked_evaluation(log: "DecisionLog", policy: str, options: Params) -> "Evaluation":
    """What the log says about the policy."""
    from evenhand.evaluation import Candidate, evaluate
    from evenhand.fairness.rates import as_rates
    from evenhand.words import Prices

    return evaluate(
        log,
        Candidate.read(policy),
        rates=as_rates(tuple(dict.fromkeys(options["rate"]))),
        limit=options["limit"],
        failure_probability=options["delta"],
        prices=Prices(options["price_false_accept"], options["price_false_reject"]),
        groups=split(options["groups"]) or None,
    )


def asked_log(logs: str, options: Params) -> "DecisionLog":
    """The log that was asked for."""
    from evenhand.evaluation import read_log

    roles = {}
    for text in options["columns"]:
        role, _, column = text.partition("=")
        if not column:
            raise InvalidInput(
                f"--column {text!r} is not ROLE=COL.", hint="for example --column group=sex."
            )
        roles[role.strip()] = column.strip()
    if logs == DEMO:
        return demo_log()
    return read_log(
        logs,
        options["kind"],
        columns=roles,
        features=split(options["features"]) or None,
        good=options["good"],
        **file_reading(options),
    )


def demo_log(rows: int = DEMO_ROWS, seed: int = DEMO_SEED) -> "DecisionLog":
    """Loans of the built-in recipe, decided by a lender who leans on the score and still gives
    everybody a chance of a tenth.
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


def show_evaluation(evaluation: "Evaluation", log: "DecisionLog", options: Params) -> None:
    """The verdict, the figures behind it, what to beware of, and what it rests on."""
    priced = (options["price_false_accept"], options["price_false_reject"]) != (1.0, 1.0)
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
