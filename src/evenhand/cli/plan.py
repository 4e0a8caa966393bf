"""`evenhand plan`: what a launch will cost and save, before the first decision."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from evenhand.cli.capacity import Capacity, capacity_options
from evenhand.cli.messages import warning_text
from evenhand.cli.options import (
    CLASS_NAME,
    NATURAL,
    POSITIVE,
    ColumnOptions,
    Share,
    column_options,
    group_use_option,
    price_options,
    rates_option,
    score_option,
)
from evenhand.cli.problem import table_problem
from evenhand.cli.show import how_read, notes_of, stages
from evenhand.cli.telling import Telling, fingerprint, telling_options
from evenhand.contracts import GroupUse, Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import as_rates
from evenhand.tables import FEWEST, number
from evenhand.words import Prices

if TYPE_CHECKING:
    from evenhand.planning import LaunchPlan

DEFAULT_PEOPLE = 100_000


@click.command("plan")
@click.option(
    "--shares",
    metavar="A=X,B=Y",
    help="Each group's share of the people, for example a=0.6,b=0.4.",
)
@click.option(
    "--bad-rates",
    metavar="A=X,B=Y",
    help="Each group's share of bad outcomes; one number if they are equal.",
)
@click.option(
    "--separation",
    type=float,
    help="Distance between the mean scores of good and bad, in standard deviations.",
)
@click.option("--auc", type=float, help="The same as an AUC: 0.76 is a separation of 1.")
@click.option(
    "--data",
    metavar="TABLE",
    help="Past people with known outcomes, instead of the four numbers above.",
)
@column_options
@click.option(
    "--class",
    "kind",
    type=CLASS_NAME,
    help="The rules.  [default: thresholds with --score, else stumps]",
)
@score_option
@click.option(
    "--limit",
    type=Share("(0, 1]"),
    default=0.05,
    help="The gap that no policy may exceed, in any round.",
)
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="Largest probability that a policy ever exceeds the limit.",
)
@rates_option()
@group_use_option
@click.option("--rules", type=POSITIVE, help="How many rules the class has.  [default: by class]")
@click.option("--people", type=int, help="How many people will come in all.  [default: 100000]")
@click.option("--per-day", type=float, help="People per day; with --days it gives --people.")
@click.option("--days", type=float, help="Days that the learner will be in use.")
@price_options
@click.option("--audit-budget", type=float, help="Bad accepts that audits may cost at most.")
@capacity_options
@click.option("--runs", type=POSITIVE, default=8, help="Simulation runs behind each figure.")
@click.option("--seed", type=NATURAL, default=0, help="The seed of the first run.")
@telling_options
def command(
    shares: str | None,
    bad_rates: str | None,
    separation: float | None,
    auc: float | None,
    data: str | None,
    columns: ColumnOptions,
    kind: str | None,
    score: str | None,
    limit: float,
    delta: float,
    rates: tuple[str, ...],
    group_use: str,
    rules: int | None,
    people: int | None,
    per_day: float | None,
    days: float | None,
    price_false_accept: float,
    price_false_reject: float,
    audit_budget: float | None,
    capacity: Capacity,
    runs: int,
    seed: int,
    telling: Telling,
) -> None:
    """Estimate what a launch will cost and save, before the first decision.

    A plan simulates whole runs of the certified learner, from a few numbers about the people who
    will come or from a table of past people. It shows when the learned policy is certified, how
    many people are accepted only to learn and what they cost, the cost beyond the best policy
    within the limit, and whether it is worth it. It also shows the cost of the paper's two-phase
    algorithm and of explore-then-commit. This takes seconds; from a large table, a minute or more.

    \b
    Example: 60% of the people belong to group a, 20% of them turn out bad, 30% of group b
      evenhand plan --shares a=0.6,b=0.4 --bad-rates a=0.2,b=0.3 --auc 0.76 \\
          --limit 0.05 --people 50000 --price-false-accept 5 --runs 4 --out plan.png

    \b
    Example: from past people
      evenhand plan --data loans.csv --label repaid --good yes --group sex \\
          --score credit_score --limit 0.1 --per-day 200 --days 365

    \b
    Example: one person in five at most, at most 50 a day, and the rule of today
      evenhand plan --data loans.csv --label repaid --good yes --group sex \\
          --score credit_score --limit 0.1 --per-day 200 --days 365 \\
          --capacity 0.2 --quota 50 --incumbent "credit_score>=620"

    \b
    How to read it
      bad accept     somebody accepted whose outcome is bad; it costs --price-false-accept
      audit coin     a coin that ignores the person and accepts; without it nothing is certified
      best constant  accepting or rejecting all applicants: a gap of exactly 0, nothing to learn
      regret         cost beyond the best policy within the limit, which only a simulation knows
      rules          the limit must hold for all rules of the class at once: with more rules the
                     weight comes later
      by lot         accepting a share of the people at random: a gap of exactly 0, too

    A plan is an expectation, not a certificate: it is as good as the numbers it was given.
    """
    from evenhand.planning import plan_from_sample

    numbers = {
        "--shares": shares,
        "--bad-rates": bad_rates,
        "--separation": separation,
        "--auc": auc,
    }
    table_only = {
        "--label": columns.label,
        "--good": columns.good,
        "--bad": columns.bad,
        "--group": columns.group,
        "--groups": columns.groups,
        "--features": columns.features,
        "--score": score,
        "--class": kind,
        "--incumbent": capacity.incumbent,
    }
    if data is not None:
        require_not_given(
            numbers, "belongs to a plan from numbers", "the table of --data has them; leave it out."
        )
    else:
        require_not_given(
            table_only, "belongs to a plan from a table", "add --data FILE, or leave it out."
        )
    by_days = per_day is not None and days is not None
    if people is None and not by_days:
        people = DEFAULT_PEOPLE
        days = None
    launch: Json = {
        "limit": limit,
        "delta": delta,
        "rate": as_rates(rates),
        "group_use": cast(GroupUse, group_use.replace("-", "_")),
        "rules": rules,
        "horizon": people,
        "per_day": per_day,
        "days": days,
        "prices": Prices(price_false_accept, price_false_reject),
        "audit_budget": audit_budget,
        **capacity.settings(days=per_day is not None),
        "runs": runs,
        "seed": seed,
    }
    task = None
    with stages() as report:
        launch["progress"] = report
        if data is None:
            made = plan_from_numbers(shares, bad_rates, separation, auc, launch)
        else:
            report("reading the table", 0, 1)
            task = table_problem(
                data,
                columns,
                kind=kind or ("thresholds" if score else "stumps"),
                score=score,
                group_use=group_use,
                fewest_by_default=FEWEST,
            )
            today = capacity.candidates(task.table.names)
            made = plan_from_sample(task.sample, task.hypotheses, candidates=today, **launch)
            named = zip(made.incumbent, today, strict=True)
            made = replace(
                made,
                incumbent=tuple(
                    replace(found, rule=rule.describe(task.table.names)) for found, rule in named
                ),
            )
    telling.tell(
        made.result(),
        title=f"Plan of a launch for {made.horizon:,} people",
        asked={
            "table": data,
            "SHA-256": None if data is None else fingerprint(data),
            "shares of the groups": shares,
            "shares of bad outcomes": bad_rates,
            "AUC": auc,
            "separation": separation,
            "rates": rates,
            "seed": seed,
        },
        read=() if task is None else how_read(task),
        beware=() if task is None else [warning_text(one) for one in task.warnings],
        notes=() if task is None else notes_of(task),
    )


def require_not_given(options: dict[str, Any], belongs: str, hint: str) -> None:
    """Raise an error that names the first of these options that the user has given."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInput(f"{name} {belongs}.", hint=hint)


def plan_from_numbers(
    shares: str | None,
    bad_rates: str | None,
    separation: float | None,
    auc: float | None,
    launch: Json,
) -> "LaunchPlan":
    """The plan for a population that a few numbers describe."""
    from evenhand.planning import plan

    way_out = "give --shares, --bad-rates and --auc, or a table of past people with --data."
    if shares is None:
        raise InvalidInput("--shares is missing.", hint=way_out)
    if bad_rates is None:
        raise InvalidInput("--bad-rates is missing.", hint=way_out)
    one_rate = number(bad_rates)
    return plan(
        group_shares=pairs(shares, "--shares"),
        bad_rates=one_rate if one_rate is not None else pairs(bad_rates, "--bad-rates"),
        separation=separation,
        auc=auc,
        **launch,
    )


def pairs(text: str, option: str) -> dict[str, float]:
    """ "a=0.6,b=0.4" -> {"a": 0.6, "b": 0.4}."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        share = number(value)
        if not equals or share is None or not name.strip():
            raise InvalidInput(f"{option} is {text!r}; it is a list like a=0.6,b=0.4.")
        if name.strip() in shares:
            raise InvalidInput(f"{option} names group {name.strip()!r} twice.")
        shares[name.strip()] = share
    return shares
