"""From the words of `evenhand plan` to a plan, and the plan as a table."""

from typing import Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenhand.cli.show import heading, show_task
from evenhand.cli.task import LISTS, PLAIN, TableRequest, prepare
from evenhand.contracts import GroupUse
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import as_rates
from evenhand.planning import Course, LaunchPlan, plan, plan_from_sample
from evenhand.planning.plan import ASSUMPTIONS
from evenhand.tables import FEWEST, number
from evenhand.words import Prices

DEFAULT_PEOPLE = 100_000
FROM_NUMBERS = ("shares", "bad_rates", "separation", "auc")
FROM_TABLE = ("label", "good", "bad", "group", "groups", "features", "score", "kind")
COLOURS = {
    "worth it": "green",
    "close call": "yellow",
    "not worth it": "red",
    "nothing to gain": "red",
}


def make(options: dict[str, Any], out: Console) -> LaunchPlan:
    """The plan that was asked for; how a table was read is shown before."""
    shared = _shared(options)
    if options["data"] is not None:
        return _from_table(options, shared, out)
    _refuse(options, FROM_TABLE, "a table", "add --data FILE, or leave it out.")
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
        **shared,
    )


def _shared(options: dict[str, Any]) -> dict[str, Any]:
    told = options["per_day"] is not None and options["days"] is not None
    return {
        "limit": options["limit"],
        "failure_probability": options["delta"],
        "horizon": options["people"] if options["people"] is not None or told else DEFAULT_PEOPLE,
        "per_day": options["per_day"],
        "days": options["days"] if told or options["people"] is not None else None,
        "prices": Prices(options["price_false_accept"], options["price_false_reject"]),
        "rate": as_rates(tuple(dict.fromkeys(options["rate"]))),
        "group_use": cast(GroupUse, options["group_use"].replace("-", "_")),
        "rules": options["rules"],
        "audit_budget": options["audit_budget"],
        "lives": options["lives"],
        "seed": options["seed"],
    }


def _from_table(options: dict[str, Any], shared: dict[str, Any], out: Console) -> LaunchPlan:
    _refuse(options, FROM_NUMBERS, "numbers", "the table of --data tells them; leave it out.")
    kind = options["kind"] or ("thresholds" if options["score"] else "stumps")
    names = (*PLAIN, *LISTS, "drop_unlabelled", "score", "group_use", "data")
    asked = TableRequest(kind=kind, fewest_unsaid=FEWEST, **{name: options[name] for name in names})
    task = prepare(asked)
    show_task(out, task)
    return plan_from_sample(task.sample, task.hypotheses, **shared)


def _refuse(options: dict[str, Any], names: tuple[str, ...], kind: str, hint: str) -> None:
    for name in names:
        if options[name] is not None:
            shown = "class" if name == "kind" else name.replace("_", "-")
            raise InvalidInput(f"--{shown} belongs to a plan from {kind}.", hint=hint)


def pairs(text: str, option: str) -> dict[str, float]:
    """ "a=0.6,b=0.4" -> {"a": 0.6, "b": 0.4}."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        share = number(value)
        if not equals or share is None or not name.strip():
            raise InvalidInput(f"{option} is {text!r}; it is a list like a=0.6,b=0.4.")
        if name.strip() in found:
            raise InvalidInput(f"{option} names group {name.strip()!r} twice.")
        found[name.strip()] = share
    return found


# what is printed


def show_plan(out: Console, plan: LaunchPlan) -> None:
    """The verdict first, then the figures behind it."""
    out.print(Text(plan.verdict, style=f"bold {COLOURS[plan.answer]}"))
    for line in plan.advice:
        out.print(Text(line))
    for line in plan.outlook:
        out.print(Text(f"Forecast: {line}"))
    out.print(heading("\nThe launch"))
    out.print(_facts(plan))
    out.print(heading(f"\nWays to decide, over {plan.horizon:,} people"))
    out.print(_courses(plan))
    for course in plan.courses:
        if course.infeasible is not None:
            out.print(Text(f"  {course.name} is infeasible: {course.infeasible}."))
    sure = 1 - plan.failure_probability
    out.print(
        Text(
            f"\nThe certified learner's promise: |gap| at most {plan.limit:g} at every round, certified with probability at least {sure:g} "
            f"under its assumptions. The plan itself: {'; '.join(ASSUMPTIONS)}.",
            style="dim",
        )
    )


def _facts(plan: LaunchPlan) -> Table:
    table = Table(box=None, padding=(0, 2), show_header=False)
    table.add_column(style="dim")
    table.add_column()
    rows = {
        "people": f"{plan.horizon:,}"
        + (f", {plan.days(plan.horizon)} at {plan.per_day:,.0f} a day" if plan.per_day else ""),
        "groups": ", ".join(
            f"{group} {share:.0%} (bad {plan.population['bad_rates'][group]:.1%})"
            for group, share in plan.population["group_shares"].items()
        ),
        "simulated on": f"{plan.population['source']}; {plan.population['rules']:,} rules; {plan.lives} lives",
        "half of the weight": _when(plan, plan.half.describe(), plan.half.round),
        "95% of the weight": _when(plan, plan.full.describe(), plan.full.round),
        "accepted by the audit coin": f"{plan.audited.describe()} people, {plan.audited_bad.describe()} of them bad",
        "their bill": f"{plan.bill.describe()} at {plan.prices[0]:g} each" + _beyond(plan),
        "possible saving": f"{plan.horizon * (plan.constant_cost - plan.best_cost):,.0f} against {plan.constant}",
        "expected saving": plan.saving.describe(),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _when(plan: LaunchPlan, text: str, round: int | None) -> str:
    return text if plan.per_day is None or round is None else f"{text}, {plan.days(round)}"


def _beyond(plan: LaunchPlan) -> str:
    if plan.constant.startswith("accepting"):
        return f", which {plan.constant} would pay as well"
    return f"; {plan.bill_beyond_constant.describe()} more than {plan.constant}"


def _courses(plan: LaunchPlan) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column("", no_wrap=True)
    for name in ("cost in all", "regret, and its band", "accepted\nfirst", "largest\ntrue gap"):
        table.add_column(name, justify="right", no_wrap=True)
    for course in plan.courses:
        table.add_row(*_cells(course), style="bold" if course is plan.certified else None)
    constant = plan.horizon * plan.constant_cost
    table.add_row(
        plan.constant,
        f"{constant:,.0f}",
        f"{constant - plan.horizon * plan.best_cost:,.0f}",
        "",
        "0.000",
    )
    best = plan.horizon * plan.best_cost
    table.add_row(
        "best within the limit",
        f"{best:,.0f}",
        "0",
        "",
        f"\N{LESS-THAN OR EQUAL TO} {plan.limit:g}",
        style="dim",
    )
    return table


def _cells(course: Course) -> list[str]:
    first = (
        ""
        if course.name == "certified"
        else f"{course.explored:,.0f}"
        if course.explored < 1e15
        else "never enough"
    )
    if course.infeasible is not None:
        return [course.name, "infeasible", "", first, ""]
    assert course.total is not None  # feasible, so it was simulated
    assert course.regret is not None
    return [
        course.name,
        f"{course.total.mean:,.0f}",
        course.regret.describe(),
        first,
        f"{course.worst_gap:.3f}",
    ]
