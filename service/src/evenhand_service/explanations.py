"""Explanations for people: why somebody was decided so, and what a certificate is about.

    accept iff U < p(x),   p(x) = sum of the weights of the rules that accept x

Each feature's share is its Shapley value against people who were decided on at about the same time:
of p(x), or of the scores that reject the person where the rules are linear; exact for rules on one
feature and for linear rules (`evenhand.policies.explanation`). For a rejected person the least
change is named, in units of spread and within what was observed, with which the same coin would
have accepted.
"""

from dataclasses import asdict, dataclass

import numpy as np

from evenhand.contracts import Json
from evenhand.hypotheses import REJECT_ALL
from evenhand.policies import Mixture, SourceColumn
from evenhand.policies import explain as explain_policy
from evenhand.policies.explanation import (
    ROUNDING,
    TIED,
    ProposedChange,
    Value,
    change_words,
    number_columns,
    schema_columns,
)
from evenhand.words import FloatArray, GroupArray
from evenhand_service.decider import Decider, verified_mixture
from evenhand_service.ledger import Drawn, Ledger, Standing, list_decisions
from evenhand_service.settings import Product

COMPARED = 200
"""People whom somebody is compared with: all of those who were decided on last."""
AS_DRAWN = (
    "The certificate is about the policy as drawn, before people overrule it. "
    "An overruled decision stays in it as it was drawn; where its label is lost, "
    "it counts at its worst."
)
"""What the claim of every certificate is about."""


@dataclass(frozen=True)
class RulePart:
    """One rule of the mixture, and its answer."""

    weight: float
    words: str
    accepts: bool


@dataclass(frozen=True)
class Reason:
    """What a feature did to the probability or the score, compared with other people: its Shapley
    value, with its standard error (0 where it is exact).
    """

    feature: str
    value: Value
    share: float
    error: float


@dataclass(frozen=True)
class LeastChange:
    """The least change with which the same coin would have accepted: what, to what, and how much
    in units of spread.
    """

    features: tuple[str, ...]
    now: tuple[Value, ...]
    values: tuple[Value, ...]
    acceptance: float
    size: float
    words: str


@dataclass(frozen=True)
class Explanation:
    """One decision, explained."""

    key: str
    accept: bool
    acceptance: float
    coin: float
    audit: bool
    chance_decided: bool
    mode: str
    at: float
    epoch: int
    policy: str
    status: str
    overruled: bool
    usable: bool
    learned_from: str
    parts: tuple[RulePart, ...]
    compared_with: int
    usual: float | None
    reasons: tuple[Reason, ...]
    unit: str
    standard_error: float
    notes: tuple[str, ...]
    change: LeastChange | None
    sentence: str

    def to_json(self) -> Json:
        """Plain JSON."""
        return asdict(self)


def explain(decider: Decider, key: str) -> Explanation:
    """Explain a decision by its policy; NotFound, or Gone after an erasure."""
    ledger = decider.ledger
    known = decider.ledger.explain(key)
    drawn = known.drawn
    product = decider.product(known.drawn.product)
    mixture = verified_mixture(
        ledger.policy(drawn.policy), ledger.keyring.public_key, ledger, product.trusted
    )
    by_group = mixture.group_use == "decide"
    group = np.array([known.group], dtype=object) if by_group else None
    person = np.array(known.features)
    others = _comparison(ledger, product, drawn)
    found = None
    change = None
    reasons: tuple[Reason, ...] = ()
    against: tuple[Reason, ...] = ()
    if len(others):
        # The least change is that with which the same coin would have accepted.
        found = explain_policy(
            mixture,
            person,
            others,
            columns=_columns(product),
            group=known.group if by_group else None,
            above=1.0 if drawn.accept else drawn.u,
        )
        reasons = tuple(
            Reason(one.column, one.value, one.share, one.error) for one in found.reasons
        )
        # nobody is told a feature where no rule rejects, and the draw alone did
        if found.principal_reasons():
            against = tuple(one for one in reasons if one.share < 0)
        change = _change(found.change)
    return Explanation(
        key=drawn.key,
        accept=drawn.accept,
        acceptance=drawn.acceptance,
        coin=drawn.u,
        audit=drawn.audit,
        chance_decided=0.0 < drawn.acceptance < 1.0,
        mode=drawn.mode,
        at=drawn.at,
        epoch=drawn.epoch,
        policy=drawn.policy,
        status=known.standing.status,
        overruled=known.standing.overruled,
        usable=drawn.usable,
        learned_from=learned_from(drawn, known.standing),
        parts=_parts(mixture, product, group, person),
        compared_with=0 if found is None else found.compared_with,
        usual=None if found is None else found.reference_probability,
        reasons=reasons,
        unit="probability" if found is None else found.unit,
        standard_error=0.0 if found is None else found.standard_error,
        notes=() if found is None else found.notes,
        change=change,
        sentence=_sentence(drawn, against, change, mixture.weight_of(REJECT_ALL)),
    )


def _parts(
    mixture: Mixture, product: Product, group: GroupArray | None, person: FloatArray
) -> tuple[RulePart, ...]:
    """The rules of the mixture with their answers, the heaviest first."""
    parts = []
    for rule, weight in zip(mixture.hypotheses, mixture.weights, strict=True):
        words = rule.describe(product.slots)
        model = rule.to_json().get("model")
        if model is not None:  # fitted models are distinguished by their hashes
            words = f"{words} (model {model['sha256'][:12]})"
        parts.append(RulePart(weight, words, bool(rule.accepts(person[np.newaxis], group)[0])))
    return tuple(sorted(parts, key=lambda part: -part.weight))


def learned_from(drawn: Drawn, standing: Standing) -> str:
    """What a decision teaches the learner, in words."""
    if drawn.mode != "live":
        return f"no: it was made in {drawn.mode} mode, and only live decisions are learned from"
    if not drawn.first:
        return "no: it is not the person's first application in the window"
    if not drawn.accept:
        return (
            "yes: that this person came, and was rejected with this probability; "
            "the outcome is never seen"
        )
    outcome = {
        "pending": "the outcome counts when it is known",
        "resolved": "the outcome is known and counts from the next closing on",
        "disputed": "two outcomes contradict each other, so neither counts until it is settled",
        "overruled": "people refused this person, so the outcome counts at its worst",
    }
    return f"yes: {outcome[standing.status]}"


def _sentence(
    drawn: Drawn, against: tuple[Reason, ...], change: LeastChange | None, reject_all: float
) -> str:
    """In words. `against`: the reasons that speak against the person; `reject_all`: the weight of
    rejecting all applicants.
    """
    done = "Accepted" if drawn.accept else "Rejected"
    p = drawn.acceptance
    u = drawn.u
    if drawn.mode == "killed":
        return (
            f"{done}: the kill switch was on, and all were {done.lower()}. "
            "Nothing about the person had a say."
        )
    more = ""
    if not drawn.accept:
        most = [one for one in against if one.share <= against[0].share + TIED]
        names = " and ".join(one.feature for one in most)
        more += f" What spoke most against it: {names}" if most else ""
        more += (", equally." if len(most) > 1 else ".") if most else ""
        if change is not None:
            more += f" With {change.words}, the same coin would have accepted."
        elif u >= 1.0 - reject_all - ROUNDING:
            more += f" Rejecting all has the weight {reject_all:.4g}, and the coin fell there."
    if p in (0.0, 1.0):
        return (
            f"{done}: the policy was certain (probability of being accepted {p:g}); "
            f"chance had no say.{more}"
        )
    drew = (
        f"{done}: the probability of being accepted was {p:.4g}, and the coin fell at {u:.4f}. "
        "Chance had a say."
    )
    if drawn.audit:
        return f"{drew} The audit coin, which ignores the person, would have accepted anybody here."
    if drawn.accept:
        return f"{drew} A coin at or above {p:.4g} would have meant a rejection."
    return f"{drew} A coin below {p:.4g} would have meant acceptance.{more}"


def _comparison(ledger: Ledger, product: Product, drawn: Drawn) -> FloatArray:
    """The features of the people who were decided on last before this one, and of the first ones
    after it where these are few; nobody who was erased.
    """
    people: list[tuple[float, ...]] = []
    for later in (False, True):
        border: int | None = drawn.seq
        while border is not None and len(people) < COMPARED:
            if later:
                page = list_decisions(ledger, product.name, after=border)
                rows = page.rows[::-1]
                border = page.newer
            else:
                page = list_decisions(ledger, product.name, before=border)
                rows = page.rows
                border = page.older
            people += [row.features for row in rows if row.features is not None]
    return np.array(people[:COMPARED], dtype=np.float64).reshape(-1, product.width)


def _columns(product: Product) -> tuple[SourceColumn, ...]:
    """The features as they are sent."""
    if product.schema is None:
        return number_columns(product.features)
    by_name = {one.name: one for one in schema_columns(product.schema)}
    return tuple(by_name[name] for name in product.features)


def _change(found: ProposedChange | None) -> LeastChange | None:
    """A change of the past: what the values were."""
    if found is None:
        return None
    words = change_words(found.columns, found.now, found.then, "was")
    return LeastChange(found.columns, found.now, found.then, found.after, found.size, words)
