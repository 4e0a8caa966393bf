"""Explanations for people: why somebody was decided so, and what a certificate is about.

    accept iff U < p(x),   p(x) = sum of the weights of the rules that accept x

A feature lowered p by as much as p could rise if that feature alone had another value. Only values
at which some rule changes its answer have to be tried, so the search is exact for thresholds, trees
and linear rules.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.ledger import RULES, Drawn, Explained, Ledger, Policy
from evenhand.policies import Mixture
from evenhand.service.decider import Decider, verified_mixture
from evenhand.service.settings import Product

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
class Lever:
    """With this feature at `value` and all else equal the probability would be `acceptance`."""

    feature: str
    now: float
    value: float
    acceptance: float
    gain: float


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
    parts: tuple[RulePart, ...]
    levers: tuple[Lever, ...]
    sentence: str

    def to_json(self) -> Json:
        """Plain JSON."""
        return asdict(self)


def explain(decider: Decider, tenant: str, key: str) -> Explanation:
    """Explain a decision by its policy; NotFound, or Gone after an erasure."""
    known = decider.ledger.explain(tenant, key)
    drawn, product = known.drawn, decider.product(tenant, known.drawn.product)
    mixture = verified_mixture(
        decider.ledger.policy(drawn.policy), decider.ledger.keyring.public_key
    )
    by_group = mixture.group_use == "decide"
    group = np.array([known.group], dtype=object) if by_group else None
    row, rules = np.array([known.features]), zip(mixture.hypotheses, mixture.weights, strict=True)
    parts = tuple(
        RulePart(weight, rule.describe(product.features), bool(rule.accepts(row, group)[0]))
        for rule, weight in sorted(rules, key=lambda part: -part[1])
    )
    levers = tuple(sorted(_levers(known, mixture, product, group), key=lambda one: -one.gain))
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
        parts=parts,
        levers=levers,
        sentence=_sentence(drawn, levers),
    )


def _sentence(drawn: Drawn, levers: tuple[Lever, ...]) -> str:
    done, p, u = ("Accepted" if drawn.accept else "Rejected"), drawn.acceptance, drawn.u
    if p in (0.0, 1.0):
        return (
            f"{done}: the policy was certain (probability of being accepted {p:g}); "
            "chance had no say."
        )
    drew = (
        f"{done}: the probability of being accepted was {p:.4g}, and the coin fell at {u:.4f}. "
        "Chance had a say."
    )
    if drawn.audit:
        return f"{drew} The audit coin, which ignores the person, would have accepted anybody here."
    if drawn.accept:
        return f"{drew} A coin at or above {p:.4g} would have meant a rejection."
    more = f" Most was lost by {levers[0].feature}." if levers else ""
    return f"{drew} A coin below {p:.4g} would have meant acceptance.{more}"


def _levers(known: Explained, mixture: Mixture, product: Product, group: Any) -> Iterator[Lever]:
    """For each feature the value that raises the probability most; none if nothing raises it."""
    document = mixture.to_json()
    for column, name in enumerate(product.features):
        now = known.features[column]
        tried = sorted(
            {
                value
                for border in _borders(document, column, known.features)
                for step in [1e-9 * max(1.0, abs(border))]
                for value in (border, border - step, border + step)
            },
            key=lambda value: abs(value - now),
        )
        if not tried:
            continue
        rows = np.tile(np.array(known.features), (len(tried), 1))
        rows[:, column] = tried
        groups = None if group is None else np.repeat(group, len(tried))
        acceptance = mixture.acceptance(rows, groups)
        best = int(np.argmax(acceptance))
        gain = float(acceptance[best]) - known.drawn.acceptance
        if gain > 0:
            yield Lever(name, now, tried[best], float(acceptance[best]), gain)


def _borders(document: Any, column: int, features: tuple[float, ...]) -> Iterator[float]:
    """The values of one column at which a rule of a policy's document changes its answer."""
    match document:
        case {"kind": "threshold", "column": at, "value": value}:
            if at == column:
                yield value
        case {"kind": "tree", "column": columns, "value": values}:
            yield from (v for at, v in zip(columns, values, strict=True) if at == column)
        case {"kind": "linear", "weights": weights, "threshold": threshold}:
            if weights[column]:  # w.x = threshold, solved for one column
                terms = enumerate(zip(weights, features, strict=True))
                rest = sum(w * x for i, (w, x) in terms if i != column)
                yield (threshold - rest) / weights[column]
        case dict():
            for part in document.values():
                yield from _borders(part, column, features)
        case list():
            for part in document:
                yield from _borders(part, column, features)


def mark_of_older_rules(ledger: Ledger, product: Product, policy: Policy) -> Json:
    """{} for a policy of the present rules; else the version of its rules, a sentence, and what may
    concern its certificate. A certificate is shown as it was issued; nothing is computed again.
    """
    if policy.rules >= RULES:
        return {}
    return {
        "rules": policy.rules,
        "issued_under": f"issued under rules {policy.rules}; the rules of now are {RULES}",
        "may_concern": list(concerns(ledger, product, policy)),
    }


def concerns(ledger: Ledger, product: Product, policy: Policy) -> Iterator[str]:
    """In words, the ways by which data entered a certificate of rules 1 that later rules have
    closed, if the ledger says that they had been used when the policy was published.
    """
    if policy.rules > 1:
        yield (
            "nothing: rules 3 brought a sharper bound, "
            "which cannot continue the sums of the one before"
        )
        return
    names = (product.tenant, product.name)
    if policy.info.get("phase") == "frozen":
        yield (
            "the audit budget was spent: a policy that was called frozen could still change, "
            "and people whom a policy could not accept were left out"
        )
    overrides = ledger.count_overrides(*names, upto=policy.seq)
    if overrides:
        yield (
            f"{overrides:,} overrides had been reported: "
            "the decisions concerned were left out of the certificate"
        )
    if ledger.newest_erasure(*names, upto=policy.seq):
        yield (
            "people had been erased: they were left out, and everything was certified anew from "
            "those who were left, with the full failure probability again"
        )
    if product.groups is None:
        yield (
            "no groups were listed: a group that was not among the first people is outside, "
            "although the claim says any two groups"
        )
    if product.maturity is not None:
        yield (
            "labels have a maturity window: a label that came after it, but before the epoch "
            "closed, counted as come in the drift test, whose false alarms were therefore not "
            "bounded as stated"
        )
