"""`evenhand plan`: what a launch will cost and bring, before anybody is decided about."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from evenhand.cli.options import (
    CLASS_NAME,
    FLAGS,
    GROUP_USE,
    JSON_OPTION,
    LISTS,
    MANY_RATES,
    MEANING_OPTIONS,
    NATURAL,
    PICTURE_FILE,
    PLAIN,
    POSITIVE,
    PRICE_OPTIONS,
    SCORE,
    option,
    table_problem,
)
from evenhand.cli.show import console, emit, grid, heading, progress, show_lines, show_task
from evenhand.contracts import GroupUse, Json, Params
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import as_rates
from evenhand.tables import FEWEST, number
from evenhand.words import Prices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.planning import LaunchPlan
    from evenhand.planning.plan import Milestone

DEFAULT_PEOPLE = 100_000
FROM_NUMBERS = ("shares", "bad_rates", "separation", "auc")
FROM_TABLE = ("label", "good", "bad", "group", "groups", "features", "score", "kind")
SAME_IN_BOTH = ("limit", "per_day", "rules", "audit_budget", "lives", "seed")
COLOURS = {
    "worth it": "green",
    "close call": "yellow",
    "not worth it": "red",
    "nothing to gain": "red",
}
POPULATION_OPTIONS = (
    option("--shares A=X,B=Y", "Each group's share of the people, for example a=0.6,b=0.4."),
    option(
        "--bad-rates A=X,B=Y", "Each group's share of bad outcomes; one number if they are equal."
    ),
    option(
        "--separation",
        "Distance between the mean scores of good and bad, in standard deviations.",
        float,
    ),
    option("--auc", "The same as an AUC: 0.76 is a separation of 1.", float),
    option("--data TABLE", "Past people with known outcomes, instead of the four numbers above."),
    *MEANING_OPTIONS,
    option(
        "--class kind", "The rules.  [default: thresholds with --score, else stumps]", CLASS_NAME
    ),
    SCORE,
)
LAUNCH_OPTIONS = (
    option("--limit", "The gap that is never to be exceeded.", float, default=0.05),
    option("--delta", "How likely the promise may fail over the whole life.", float, default=0.05),
    MANY_RATES,
    GROUP_USE,
    option("--rules", "How many rules the class has.  [default: by class]", POSITIVE),
    option("--people", "How many people will come in all.  [default: 100000]", int),
    option("--per-day", "People per day; with --days it gives --people.", float),
    option("--days", "Days of the whole life.", float),
    *PRICE_OPTIONS,
    option("--audit-budget", "Bad accepts that audits may cost at most.", float),
    option("--lives", "Simulated lives behind each figure.", POSITIVE, default=8),
    option("--seed", "The seed of the first life.", NATURAL, default=0),
    option("--out PICTURE", "Draw the plan: .png, .svg or .pdf.", PICTURE_FILE),
    JSON_OPTION,
)


@click.command("plan", params=[*POPULATION_OPTIONS, *LAUNCH_OPTIONS])
def command(out: Path | None, document: str | None, **options: Any) -> None:
    """Tell what a launch will cost and bring, before anybody is decided about.

    From a few numbers about the people who will come, or from a table of past people, it simulates
    the certified learner's whole life: when the learned policy gets its weight, how many people are
    accepted to learn and what they cost, what remains to be paid beyond the best policy within the
    limit, the same for the paper's two-phase algorithm and for explore-then-commit, and whether it
    is worth it at all. It takes seconds, from a large table a minute.

    \b
    Example: 60% of the people belong to group a, 20% of them turn out bad, 30% of group b
      evenhand plan --shares a=0.6,b=0.4 --bad-rates a=0.2,b=0.3 --auc 0.76 \\
          --limit 0.05 --people 50000 --price-false-accept 5 --lives 4 --out plan.png

    \b
    Example: from past people
      evenhand plan --data loans.csv --label repaid --good yes --group sex \\
          --score credit_score --limit 0.1 --per-day 200 --days 365

    \b
    How to read it
      bad accept     somebody accepted whose outcome is bad; it costs --price-false-accept
      audit coin     a coin that ignores the person and accepts; without it nothing is certified
      best constant  accepting or rejecting everybody: a gap of exactly 0 and nothing to learn
      regret         cost beyond the best policy within the limit, which only a simulation knows
      rules          the promise must hold for all rules of the class at once: with more rules the
                     weight comes later

    A plan is an expectation, not a certificate: it is as good as the numbers it was given.
    """
    from evenhand.report import plan_figure, save_figure
    from evenhand.report.drawing import require

    if out is not None:
        require("matplotlib")  # before the work, not after
    shown = console(quiet=document == "-")
    with progress("simulated lives"):
        plan = make_plan(options, shown)
    if out is not None:
        save_figure(plan_figure(plan), out)
    if emit(document, plan.to_json()):
        return
    show_plan(shown, plan)
    written = {"Picture": out, "Figures": document}
    click.echo("".join(f"\n{name}: {path}" for name, path in written.items() if path is not None))


def make_plan(options: Params, out: "Console") -> "LaunchPlan":
    """The plan that was asked for; how a table was read is shown before."""
    from evenhand.planning import plan, plan_from_sample

    launch = launch_settings(options)
    from_table = options["data"] is not None
    for name in FROM_NUMBERS if from_table else FROM_TABLE:
        if options[name] is not None:
            flag = "class" if name == "kind" else name.replace("_", "-")
            raise InvalidInput(
                f"--{flag} belongs to a plan from {'numbers' if from_table else 'a table'}.",
                hint="the table of --data tells them; leave it out."
                if from_table
                else "add --data FILE, or leave it out.",
            )
    if from_table:
        kind = options["kind"] or ("thresholds" if options["score"] else "stumps")
        names = (*PLAIN, *LISTS, *FLAGS, "score", "group_use", "data")
        given = {name: options[name] for name in names}
        task = table_problem({**given, "kind": kind, "fewest_by_default": FEWEST})
        show_task(out, task)
        return plan_from_sample(task.sample, task.hypotheses, **launch)
    for name in ("shares", "bad_rates"):
        if options[name] is None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} is missing.",
                hint="give --shares, --bad-rates and --auc, or a table of past people with --data.",
            )
    rates = number(options["bad_rates"])
    return plan(
        group_shares=pairs(options["shares"], "--shares"),
        bad_rates=rates if rates is not None else pairs(options["bad_rates"], "--bad-rates"),
        separation=options["separation"],
        auc=options["auc"],
        **launch,
    )


def launch_settings(options: Params) -> Json:
    """What a plan from numbers and a plan from a table have in common."""
    people = options["people"]
    by_days = options["per_day"] is not None and options["days"] is not None
    return {
        **{name: options[name] for name in SAME_IN_BOTH},
        "failure_probability": options["delta"],
        "horizon": people if people is not None or by_days else DEFAULT_PEOPLE,
        "days": options["days"] if people is not None or by_days else None,
        "prices": Prices(options["price_false_accept"], options["price_false_reject"]),
        "rate": as_rates(tuple(dict.fromkeys(options["rate"]))),
        "group_use": cast(GroupUse, options["group_use"].replace("-", "_")),
    }


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


def show_plan(out: "Console", plan: "LaunchPlan") -> None:
    """The verdict first, then the figures behind it."""
    from evenhand.planning.plan import ASSUMPTIONS

    show_lines(out, [plan.verdict], style=f"bold {COLOURS[plan.answer]}")
    show_lines(out, [*plan.advice, *(f"Forecast: {line}" for line in plan.outlook)])
    out.print(heading("\nThe launch"))
    out.print(_facts(plan))
    out.print(heading(f"\nWays to decide, over {plan.horizon:,} people"))
    out.print(_courses(plan))
    for course in plan.courses:
        if course.infeasible is not None:
            show_lines(out, [f"  {course.name} is infeasible: {course.infeasible}."])
    promise = (
        f"\nThe certified learner's promise: |gap| at most {plan.limit:g} at every round, "
        f"certified with probability at least {1 - plan.failure_probability:g} under its "
        f"assumptions. The plan itself: {'; '.join(ASSUMPTIONS)}."
    )
    show_lines(out, [promise], style="dim")


def _facts(plan: "LaunchPlan") -> "Table":
    population, people = plan.population, f"{plan.horizon:,}"
    if plan.per_day:
        people += f", {plan.days(plan.horizon)} at {plan.per_day:,.0f} a day"
    groups = ", ".join(
        f"{group} {share:.0%} (bad {population['bad_rates'][group]:.1%})"
        for group, share in population["group_shares"].items()
    )
    bill = f"{plan.bill.describe()} at {plan.prices[0]:g} each"
    if plan.constant.startswith("accepting"):
        bill += f", which {plan.constant} would pay as well"
    else:
        bill += f"; {plan.bill_beyond_constant.describe()} more than {plan.constant}"

    def when(milestone: "Milestone") -> str:
        """A milestone, also in days where it is reached and people come by days."""
        text = milestone.describe()
        if plan.per_day is None or milestone.round is None:
            return text
        return f"{text}, {plan.days(milestone.round)}"

    saving = plan.horizon * (plan.constant_cost - plan.best_cost)
    rows = {
        "people": people,
        "groups": groups,
        "simulated on": f"{population['source']}; {population['rules']:,} rules; "
        f"{plan.lives} lives",
        "half of the weight": when(plan.half),
        "95% of the weight": when(plan.full),
        "accepted by the audit coin": f"{plan.audited.describe()} people, "
        f"{plan.audited_bad.describe()} of them bad",
        "their bill": bill,
        "possible saving": f"{saving:,.0f} against {plan.constant}",
        "expected saving": plan.saving.describe(),
    }
    table = grid("~", "~", padding=2, rows=rows.items())
    table.show_header, table.columns[0].style = False, "dim"
    return table


def _courses(plan: "LaunchPlan") -> "Table":
    numbers = (">cost\nin all", ">regret,\nand its band", ">accepted\nfirst", ">largest\ntrue gap")
    table = grid("", *numbers, padding=1)
    for course in plan.courses:
        first = f"{course.explored:,.0f}" if course.explored < 1e15 else "never enough"
        first = "" if course.name == "certified" else first
        if course.total is None or course.regret is None:
            cells = ["infeasible", "", first, ""]
        else:
            gap = f"{course.worst_gap:.3f}"
            cells = [f"{course.total.mean:,.0f}", course.regret.describe(), first, gap]
        table.add_row(course.name, *cells, style="bold" if course is plan.certified else None)
    constant, best = plan.horizon * plan.constant_cost, plan.horizon * plan.best_cost
    table.add_row(plan.constant, f"{constant:,.0f}", f"{constant - best:,.0f}", "", "0.000")
    limit = f"\N{LESS-THAN OR EQUAL TO} {plan.limit:g}"
    table.add_row("best within the limit", f"{best:,.0f}", "0", "", limit, style="dim")
    return table
