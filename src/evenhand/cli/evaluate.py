"""`evenhand evaluate`: what a log of decisions says about another policy: its cost and its gaps,
with intervals.
"""

from typing import TYPE_CHECKING

import click

from evenhand.cli.gating import Gating, gate_options
from evenhand.cli.options import (
    COMMA_LIST,
    NATURAL,
    FileOptions,
    Share,
    Unseen,
    file_options,
    price_options,
    rates_option,
    unseen_option,
)
from evenhand.cli.telling import Telling, fingerprint, leave, telling_options
from evenhand.errors import InvalidInput
from evenhand.words import Prices

if TYPE_CHECKING:
    from evenhand.evaluation import Candidate, DecisionLog

DEMO = "demo"
DEMO_ROWS = 20_000
DEMO_SEED = 2020


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
@gate_options
@telling_options
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
    gating: Gating,
    telling: Telling,
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
          --out gap.png

    \b
    Which command measures what
      evaluate  what another policy would have cost, from a log with probabilities
      measure   decisions that were made, by whatever means; outcomes may be missing
      test      a policy of `solve` on new people whose outcomes are all known

    A policy of `solve --save` reads texts, dates and missing values as its file says, and knows the
    names of the outcome and the group. accept-all and reject-all need no features.

    The intervals hold at every row of the log at once, so a log may be looked at while it grows.
    The candidate must have been chosen without these rows; --skip-first leaves out those that were
    used.
    """
    from evenhand.evaluation import Candidate, evaluate
    from evenhand.fairness.rates import as_rates

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
    verdict = opened.judge(evaluation, limit)
    telling.tell(
        evaluation.result(),
        title=f"What {policy} would have done, by {log.source or logs}",
        asked={**asked, "delta": opened.delta},
    )
    leave(verdict)


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
