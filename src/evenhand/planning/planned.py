"""What is said of a launch plan: whether it is worth it, what would help, and what it costs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.findings import stands
from evenhand.result import (
    Amount,
    Between,
    Cell,
    Column,
    Curves,
    Line,
    Result,
    Table,
    column,
    with_rows,
)
from evenhand.shown import counted

if TYPE_CHECKING:
    from evenhand.planning.launch_plan import Answer, Curve, LaunchPlan

OPENINGS: "Mapping[Answer, str]" = {
    "probably worth it": "Probably worth it",
    "close call": "A close call",
    "probably not worth it": "Probably not worth it",
    "not worth it": "Not worth it at this volume",
}
FROM_THE_START = 200
"""Whoever is ahead from so few people on is ahead from the start."""
NOTHING = 0.1
"""Below this share of the full weight practically nothing is certified."""
ASSUMPTIONS = (
    "a plan is an expectation, not a certificate: it is as good as the numbers it was given",
    "people arrive independently from one population that does not change",
    "labels of accepted people arrive before the next epoch; a maturity window delays every "
    "milestone by its length",
    "bands hold the middle 80% of the simulation runs, the saving's interval that of one more run "
    "with probability 99%",
)
BANDS = "Lines: mean over the simulated runs. Bands: the middle 80% of them."


def planned(plan: "LaunchPlan") -> Result:
    """The result of a plan."""
    guarantee = (
        f"the certified learner's guarantee: |gap| at most {plan.limit:g} at every round, "
        f"certified with probability at least {1 - plan.delta:g} under its assumptions"
    )
    return Result(
        kind="launch-plan",
        title=f"Plan of a launch for {plan.horizon:,} people",
        record=plan,
        answer=(_verdict(plan), *_advice(plan)),
        facts=_facts(plan),
        tables=with_rows(
            _ways(plan),
            _over_time(plan),
            _milestones(plan),
            _groups(plan),
            _today(plan),
            Table.of_names("launch", "The launch", _launch(plan)),
            _curves(plan),
        ),
        figures=_figures(plan),
        assumptions=(guarantee, *ASSUMPTIONS),
    )


# the answer


def _verdict(plan: "LaunchPlan") -> str:
    """One sentence with numbers."""
    if plan.answer == "nothing to gain":
        return (
            f"Nothing to gain: within a gap of {plan.limit:g} no mixture of the rules is cheaper "
            f"than {plan.constant}, at any volume."
        )
    mean = plan.saving.mean
    more = "less" if mean > 0 else "more"
    size = f"{abs(mean):,.0f} {plan.unit} {more} than {plan.constant}"
    expected = f"over {plan.horizon:,} people the certified learner is expected to cost {size}"
    best = "the best policy within the limit would save"
    if plan.answer == "worth it":
        even = plan.break_even or 0
        start = "the start" if even <= FROM_THE_START else f"about {even:,} people on"
        share = f"{plan.saving_share:.0%} of the {plan.possible:,.0f} that {best}"
        return f"Worth it: {expected} ({share}), and is ahead from {start}."
    cheaper = f"it is cheaper in {plan.runs_that_save} of {plan.runs} simulation runs"
    return f"{OPENINGS[plan.answer]}: {expected}; {cheaper}, and {best} {plan.possible:,.0f}."


def _advice(plan: "LaunchPlan") -> list[str]:
    """What holds the launch back, and what would do."""
    advice = plan.advice
    if advice.note:
        return [advice.note]
    if plan.answer == "nothing to gain":
        if advice.gain_from is None or advice.gain is None:
            return [
                "At these prices the rules cannot beat the constant even without a limit; check "
                "prices and features."
            ]
        return [
            f"From a limit of about {advice.gain_from:.2g} on there is something to gain: "
            f"{advice.gain:.2g} {plan.unit} per person."
        ]
    if not advice.sought:
        return []
    sentences = []
    goal = "cheaper than the best constant"
    if plan.held_back:
        goal = f"at least half of the weight certified, and {goal}"
        # also if the weight itself is small: a limit of .001 allows .001 of any rule at once
        little = plan.final_share < NOTHING or plan.final_weight < NOTHING / 2
        part = "practically nothing" if little else f"{plan.final_share:.0%}"
        sentences.append(
            f"Of the learned policy's weight {part} is certified within {plan.horizon:,} people; "
            "the rest stays on constants."
        )
    ways = []
    if advice.limit is not None:
        ways.append(f"a limit of about {advice.limit:.2g} at this volume")
    if advice.horizon is not None:
        ways.append(f"about {advice.horizon:,} people at this limit")
    if ways:
        ways[-1] += ", by two simulation runs of each"
        return [*sentences, f"What would do ({goal}): {', or '.join(ways)}."]
    return [
        *sentences,
        f"Neither a limit of {advice.widest_limit:.2g} nor {advice.longest_horizon:,.0f} people "
        "would do; features that tell good from bad better would.",
    ]


# the figures


def _facts(plan: "LaunchPlan") -> dict[str, Cell]:
    saving, bill = plan.saving, plan.bill
    facts: dict[str, Cell] = {
        "people": plan.horizon,
        "possible saving": Amount(plan.possible, "total"),
        "expected saving": Amount(saving.mean, "total"),
        "expected saving, of one more run": Amount(Between(saving.low, saving.high), "total"),
        "accepted by the audit coin": Amount(plan.audited.mean, "count"),
        "of them bad": Amount(plan.audited_bad.mean, "count"),
        "their bill": Amount(bill.mean, "total"),
        "their bill, middle 80%": Amount(Between(bill.low, bill.high), "total"),
    }
    if plan.constant_share == 1.0:
        facts["beyond the better constant"] = f"nothing: {plan.constant} would pay it as well"
    else:
        facts[f"their bill beyond {plan.constant}"] = Amount(
            plan.bill_beyond_constant.mean, "total"
        )
    return facts


def _launch(plan: "LaunchPlan") -> dict[str, Cell]:
    source, rules = plan.population["source"], plan.population["rules"]
    floor = plan.accept_at_least
    above = [
        name
        for name, given in (("quota", plan.quota), ("audit budget", plan.audit_budget))
        if given is not None
    ]
    yields = f", unless the {' or the '.join(above)} forbids it" if above else ""
    days = ""
    if plan.per_day:
        days = f"{plan.horizon / plan.per_day:,.0f} at {plan.per_day:,.0f} people a day"
    return {
        "limit of the gap": plan.limit,
        "delta": plan.delta,
        "days": days,
        "capacity": plan.accept_at_most
        and f"at most {plan.accept_at_most:g} of the population is accepted, from the first person "
        "on, with the same delta",
        "floor": floor
        and f"at least {floor:g} of the population is accepted, with the same delta{yields}",
        "quota": plan.quota
        and f"never more than {plan.quota[0]:,} of each {plan.quota[1]:,.6g} people",
        "audit budget": plan.audit_budget,
        "price of a false accept": plan.prices[0],
        "price of a false reject": plan.prices[1],
        "simulated on": f"{source}; {counted(rules, 'rule', 'rules')}",
        "simulation runs": plan.runs,
    }


def _groups(plan: "LaunchPlan") -> Table:
    bad = plan.population["bad_rates"]
    return Table.of(
        "groups",
        "Who will come",
        plan.population["group_shares"].items(),
        column("group", take=lambda row: str(row[0])),
        column("share", "of the people", "percent", lambda row: row[1]),
        column("bad", "of them bad", "percent", lambda row: bad[row[0]]),
    )


def _today(plan: "LaunchPlan") -> Table:
    return Table.of(
        "today",
        "The rules of today",
        plan.incumbent,
        column("rule"),
        column("accepted", "accepts", "percent"),
        column("cost", "cost a person", "cost"),
        column("gap", "gap", "share"),
        column(
            "status",
            f"at most {plan.limit:g}",
            "status",
            lambda one: stands(one.gap, one.gap, plan.limit),
        ),
    )


def _over_time(plan: "LaunchPlan") -> Table:
    return Table(
        "over_time",
        "Over time",
        (
            Column("people", "people so far", "count"),
            Column("accepted", "accepted", "percent"),
            Column("audited", "by the audit coin", "percent"),
            Column("weight", "weight certified", "percent"),
            Column("bill", "audit bill so far", "total"),
        ),
        tuple(plan.over_time()),
    )


def _milestones(plan: "LaunchPlan") -> Table:
    return Table.of(
        "milestones",
        "When the learned policy is certified",
        (plan.half, plan.full),
        column("share", "of its full weight", "percent"),
        column("people", "after people", "count", lambda one: one.round),
        column("days", "after days", "count", lambda one: _days(plan, one.round)),
        column("early", "early runs", "count"),
        column("late", "late runs", "count"),
        column("reached", "runs that reach it", "count"),
        column("runs", "of runs", "count"),
        note="People: the median over the runs. Early and late: the middle 80% of them; empty is "
        "beyond the horizon.",
    )


def _days(plan: "LaunchPlan", people: int | None) -> float | None:
    return people / plan.per_day if plan.per_day and people is not None else None


def _ways(plan: "LaunchPlan") -> Table:
    columns = (
        Column("way", "way to decide"),
        Column("cost", "cost in all", "total"),
        Column("regret", "regret", "total"),
        Column("band", "its band", "total"),
        Column("first", "accepted first", "count"),
        Column("gap", "largest true gap", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in plan.courses:
        # infinity: no number of people would do
        first = one.explored if one.name != "certified" else None
        if one.total is None or one.regret is None:
            rows.append((f"{one.name}: infeasible", None, None, None, first, None))
        else:
            band = Between(one.regret.low, one.regret.high)
            rows.append((one.name, one.total.mean, one.regret.mean, band, first, one.worst_gap))
    constant, best = plan.horizon * plan.constant_cost, plan.horizon * plan.best_cost
    rows.append((plan.constant, constant, constant - best, None, None, 0.0))
    rows.append(("best within the limit", best, 0.0, None, None, None))
    never = [
        f"{one.name} is infeasible: {one.infeasible}." for one in plan.courses if one.infeasible
    ]
    note = " ".join([f"Costs in {plan.unit}.", *never])
    return Table(
        "ways", f"Ways to decide, over {plan.horizon:,} people", columns, tuple(rows), note
    )


def _named_curves(plan: "LaunchPlan") -> "dict[str, Curve]":
    return {
        "weight": plan.weight,
        "audit": plan.audit,
        "gap": plan.gap,
        "accepted": plan.accepted,
        "bill": plan.bill_so_far,
    }


def _curves(plan: "LaunchPlan") -> Table:
    """All curves, for programs; people look at the figures."""
    curves = _named_curves(plan)
    columns = [Column("people", "people so far", "count")]
    values = [plan.rounds]
    for name, curve in curves.items():
        unit = "total" if name == "bill" else "weight"
        for suffix, part in (("", curve.mean), ("_low", curve.low), ("_high", curve.high)):
            columns.append(Column(f"{name}{suffix}", f"{name}{suffix}", unit))  # type: ignore[arg-type]
            values.append(part)
    rows = tuple(tuple(float(one) for one in row) for row in zip(*values, strict=True))
    return Table("curves", "Curves", tuple(columns), rows, most=0)


def _line(name: str, curve: "Curve", less: "np.ndarray | float" = 0.0) -> Line:
    ends = (np.asarray(one) - less for one in (curve.mean, curve.low, curve.high))
    return Line(name, *(end.tolist() for end in ends))


def _figures(plan: "LaunchPlan") -> tuple[Curves, ...]:
    people = plan.rounds.tolist()
    best = plan.rounds * plan.best_cost
    constant = (plan.rounds * (plan.constant_cost - plan.best_cost)).tolist()
    costs = [_line(one.name, one.cost, best) for one in plan.courses if one.cost is not None]
    lines = (_line("certified", plan.weight),)
    accepted = (_line("accepted", plan.accepted), _line("by the audit coin", plan.audit))
    cap = () if plan.accept_at_most is None else (plan.accept_at_most,)
    so_far, share = "people so far", "share of its full weight"
    title = "How much of the learned policy is certified"
    return (
        Curves(title, so_far, share, people, lines, note=BANDS, logarithmic=True, top=1.0),
        Curves(
            "What each way to decide costs",
            so_far,
            f"{plan.unit} beyond the best within the limit",
            people,
            (*costs, Line(plan.constant, constant)),
            note=BANDS,
        ),
        Curves(
            "Who is accepted",
            so_far,
            "share of the people",
            people,
            accepted,
            cap,
            BANDS,
            logarithmic=True,
            top=1.0,
        ),
    )
