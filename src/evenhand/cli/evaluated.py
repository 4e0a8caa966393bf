"""From the words of `evenhand evaluate` to an evaluation, and its telling."""

import csv
from collections.abc import Mapping
from io import StringIO
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from evenhand.cli.lending import COLUMNS, GOOD, make_lending_table
from evenhand.cli.show import console, heading
from evenhand.errors import InvalidInput
from evenhand.evaluation import Candidate, DecisionLog, Evaluation, evaluate, read_log
from evenhand.fairness.rates import as_rates
from evenhand.words import Prices

DEMO, DEMO_ROWS, DEMO_SEED = "demo", 20_000, 2020
STYLES = {
    "within": "green",
    "above": "bold red",
    "not shown": "yellow",
    "contradiction": "bold red",
    "no groups": "",
}


def read(logs: str, options: Mapping[str, Any]) -> DecisionLog:
    """The log that was asked for, without the rows that were to be left out."""
    names = [
        name.strip() for name in (options["features"] or "").split(",") if name.strip()
    ] or None
    roles = dict(_role(text) for text in options["columns"])
    log = (
        demo_log()
        if logs == DEMO
        else read_log(logs, options["kind"], columns=roles, features=names, good=options["good"])
    )
    return log.without_first(options["skip_first"])


def _role(text: str) -> tuple[str, str]:
    role, mark, column = text.partition("=")
    if not mark or not column:
        raise InvalidInput(
            f"--column {text!r} is not ROLE=COL.", hint="for example --column group=sex."
        )
    return role.strip(), column.strip()


def demo_log(rows: int = DEMO_ROWS, seed: int = DEMO_SEED) -> DecisionLog:
    """Loans of the built-in recipe, decided by a lender who leans on the score and still gives
    everybody a chance of a tenth.
    """
    people = list(csv.DictReader(StringIO(make_lending_table(seed, rows))))
    names = COLUMNS[:5]
    features = np.array([[float(person[name]) for name in names] for person in people])
    chance = 0.1 + 0.85 / (1.0 + np.exp(-(features[:, names.index("credit_score")] - 650.0) / 30.0))
    accept = np.random.default_rng([seed, 1]).random(rows) < chance
    label = [1 if person["repaid"] == GOOD else -1 for person in people]
    group = [person["group"] for person in people]
    return DecisionLog.of(
        features, accept, chance, np.where(accept, label, 0), group=group, names=names, source=DEMO
    )


def judge(log: DecisionLog, policy: str, options: Mapping[str, Any]) -> Evaluation:
    """Evaluate the candidate."""
    chosen = [name.strip() for name in (options["groups"] or "").split(",") if name.strip()] or None
    return evaluate(
        log,
        Candidate.read(policy),
        rates=as_rates(tuple(dict.fromkeys(options["rate"]))),
        limit=options["limit"],
        failure_probability=options["delta"],
        prices=Prices(options["price_false_accept"], options["price_false_reject"]),
        groups=chosen,
    )


def show(found: Evaluation, log: DecisionLog, options: Mapping[str, Any]) -> None:
    """The verdict, the figures behind it, what to beware of, and what it rests on."""
    out = console()
    out.print(Text(found.sentence, style=STYLES[found.verdict]))
    out.print(heading(f"\n{log.source}: {found.people:,.0f} decisions"))
    out.print(Text(f"  {_log(found)}"))
    out.print(heading(f"\nIf {found.candidate} had decided"))
    out.print(_table(found, options))
    out.print(
        Text(
            "  Estimates are doubly robust; intervals hold together, at every row of the log at once.",
            style="dim",
        )
    )
    for title, lines in (("Beware", found.warnings), ("Assumptions", found.assumptions)):
        if lines:
            out.print(heading(f"\n{title}"))
            for line in lines:
                out.print(Text(f"  - {line}"))


def _log(found: Evaluation) -> str:
    seen = f"{found.accepted:,.0f} accepted ({found.accepted / found.people:.1%})"
    open = f", {found.open:,.0f} of them with an open outcome" if found.open else ""
    return f"{seen}{open}; the candidate's accepts are worth {found.support.effective_accepts:,.0f} equally weighted ones"


def _table(found: Evaluation, options: Mapping[str, Any]) -> Table:
    priced = (options["price_false_accept"], options["price_false_reject"]) != (1.0, 1.0)
    table = Table(box=None, padding=(0, 1))
    for name in ("", "estimate", "between", "and", "people", "worth", "limit"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    table.add_row(
        "cost per person" if priced else "error rate", *_figures(found.loss, ""), "", "", ""
    )
    for rate in found.rates:
        table.add_row(
            f"{rate.rate} {rate.group}",
            *_figures(rate.estimate, ""),
            f"{rate.labelled:,.0f}",
            f"{rate.effective:,.0f}",
            "",
        )
    for gap in found.gaps:
        stands = gap.stands(found.limit)
        table.add_row(
            f"gap {gap.name}", *_figures(gap.estimate, "+"), "", "", f"≤ {found.limit:g} {stands}"
        )
    return table


def _figures(estimate: Any, sign: str) -> tuple[str, str, str]:
    told = "unknown" if estimate.value is None else f"{estimate.value:{sign}.4f}"
    return told, f"{estimate.lower:{sign}.4f}", f"{estimate.upper:{sign}.4f}"
