"""What is missing, what has happened, and what to expect, in sentences for people."""

from math import ceil, inf, isfinite

from evenhand.algorithms.base import Note
from evenhand.algorithms.certified.certificates import uncovered
from evenhand.algorithms.certified.choose import PlanningInputs
from evenhand.algorithms.certified.evidence import FIRST_PEOPLE
from evenhand.algorithms.certified.forecast import RateForecast
from evenhand.algorithms.certified.hard_counts import budget_left, budget_spent
from evenhand.algorithms.certified.priced_course import expected_course
from evenhand.algorithms.certified.state import CertifiedState
from evenhand.hypotheses.constants import Unread
from evenhand.rounds import Rounds

MOST_NAMED = 20
"""So many values outside of the certificate are named in a note."""


def notes(state: CertifiedState, rounds: Rounds, audit_budget: float | None) -> tuple[Note, ...]:
    """What is missing, and what has happened."""
    return (*_about_evidence(state), *_about_counts(state, rounds, audit_budget))


def _about_evidence(state: CertifiedState) -> list[Note]:
    """What ended the run before, what the start waits for, and who is not covered."""
    found = []
    if state.ended:
        why = "; ".join(state.ended)
        text = f"suspended at round {state.began} ({why}); this is certification run {state.run}."
        found.append(Note("suspended", text))
    members = () if state.process is None else state.process.members
    lost = [rule for rule in members if isinstance(rule, Unread)]
    if lost:
        text = (
            f"{len(lost)} fitted rules could not be read from the file and left the policy; all "
            f"other evidence goes on. The first one: {lost[0].reason}"
        )
        found.append(Note("unread rules", text))
    if state.trouble is not None and state.process is None:
        text = f"only constants are deployed: {state.trouble}."
        found.append(Note("no rules", text))
    elif state.trouble is not None:
        text = f"no new rule was nominated: {state.trouble}. What is certified stays in force."
        found.append(Note("no rules", text))
    groups = state.guarantee.groups or state.evidence.groups
    if state.process is None and len(groups) < 2:
        text = (
            f"only constants are deployed: {len(groups)} of the groups that people came from have "
            f"{FIRST_PEOPLE} people, and a gap is between two."
        )
        found.append(Note("waiting for people", text))
    elif state.process is None:
        for group, rate, have in state.evidence.missing(
            state.guarantee.rates, state.guarantee.groups
        ):
            text = (
                f"only constants are deployed: among the {state.closed_to - state.began:,} people "
                f"whose cohorts have closed, group {group!r} has {have:g} "
                f"{rate.denominator_name}; {FIRST_PEOPLE} are needed to begin."
            )
            found.append(Note("waiting for people", text, group))
    if state.evidence.unresolved:
        text = (
            f"{state.evidence.unresolved:g} labels had not come when their cohort closed; they "
            "count as the worst case."
        )
        if state.guarantee.maturity is None:
            text += (
                " If outcomes take time, say how long: maturity=, with at= in decide and observe "
                "(maturity_days of a service)."
            )
        found.append(Note("unresolved labels", text))
    rare = {group: people for group, people in uncovered(state).items() if group is not None}
    if rare and state.process is not None:
        some = list(rare.items())[:MOST_NAMED]
        named = ", ".join(f"{group!r} ({people:g})" for group, people in some)
        why = "they are not among the groups of the guarantee"
        if state.guarantee.reserved(state.run):
            why = (
                f"a group joins once it has {FIRST_PEOPLE} people; a value with fewer may be a typo"
            )
        found.append(Note("outside", f"outside the certificate: people of {named}; {why}."))
    return found


def _about_counts(state: CertifiedState, rounds: Rounds, audit_budget: float | None) -> list[Note]:
    """What the audit budget and the quota do."""
    found = []
    if budget_spent(audit_budget, rounds):
        found.append(_spent(state, audit_budget))
    elif not state.audits_open:
        text = (
            f"audits are paused: {rounds.audits_pending} labels of audited people have not "
            f"come, and count as bad until they do; {budget_left(audit_budget, rounds):g} of the "
            "audit budget are left."
        )
        if state.process is None:
            text += _would_do(state)
        found.append(Note("audits paused", text))
    if not state.quota_open:
        found.append(Note("quota used up", "nobody is accepted until the next period begins."))
    return found


def _spent(state: CertifiedState, audit_budget: float | None) -> Note:
    """The budget is spent: after the start the policy is frozen; before it, constants stay in
    force, and a larger budget would have done.
    """
    if state.process is not None:
        return Note("frozen", "the audit budget is spent: the policy is frozen.")
    text = (
        f"the audit budget of {audit_budget:g} is spent before anything could be "
        "certified: constants stay in force for good."
    )
    return Note("budget too small", text + _would_do(state))


def _would_do(state: CertifiedState) -> str:
    needed = budget_for_start(state)
    if not isfinite(needed):
        return ""
    return f" About {ceil(needed):,} would do to begin, and more to learn."


def budget_for_start(state: CertifiedState) -> float:
    """About how many bad accepts the start needs: until each group has its first people in each
    denominator, by the counts so far (and half a person more in each).
    """
    evidence = state.evidence
    groups = state.guarantee.groups or tuple(evidence.seen)
    if len(groups) < 2:
        return inf
    bad = evidence.negatives + 0.5
    sizes = [
        evidence.denominator(group, rate) for group in groups for rate in state.guarantee.rates
    ]
    return 1.2 * FIRST_PEOPLE * bad / (min(sizes) + 0.5)


def forecasts(inputs: PlanningInputs) -> tuple[RateForecast, ...]:
    """How far the evidence of each rate is expected to come within the horizon."""
    if not len(inputs.past.weight):
        return ()
    start = float(inputs.round)
    horizon = start + inputs.rounds_ahead
    chooses = inputs.audit_rate == "auto"
    if not inputs.state.guarantee.nominates:
        prospect = inputs.prospect
        course = expected_course(
            prospect,
            *inputs.pooled,
            start,
            horizon,
            more_audits=chooses,
            budget=inputs.budget_left,
        )
        return prospect.forecasts(course, horizon)
    prospect = inputs.prospect.narrowed()
    if chooses:
        course = prospect.course(start, horizon)
    else:
        course = prospect.trajectory(0.0, start, horizon)
    return prospect.forecasts(course, horizon)
