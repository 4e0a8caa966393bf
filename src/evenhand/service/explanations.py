"""Explanations for people: why somebody was decided so, and what a certificate is about.

    accept iff U < p(x),   p(x) = sum of the weights of the rules that accept x

Each feature's share of p(x) is its exact Shapley value against people who were decided on at about
the same time (`evenhand.policies.reasons`). For a rejected person the least change is told, in
units of spread and within what was observed, with which the same coin would have accepted.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis, Json
from evenhand.ledger import RULES, Drawn, Explained, Ledger, Policy
from evenhand.policies import Mixture
from evenhand.policies.reasons import Acceptance, WeightedRule, attribution, least_change
from evenhand.service.decider import Decider, verified_mixture
from evenhand.service.settings import Product
from evenhand.words import FloatArray, GroupArray

COMPARED, LOOKED_AT = 200, 2_000
"""People whom somebody is compared with, and rows of the chain among which they are looked for."""
ROUNDING = 1e-12
WITH_BORDERS = ("constant", "group", "threshold", "per-group", "tree", "linear", "table")
"""Kinds of rules whose every change of answer is known, see `borders`."""

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
    """What a feature did to the probability, compared with other people: its Shapley value."""

    feature: str
    value: float
    share: float


@dataclass(frozen=True)
class LeastChange:
    """The least change with which the same coin would have accepted: what, to what, and how much
    in units of spread.
    """

    features: tuple[str, ...]
    now: tuple[float, ...]
    values: tuple[float, ...]
    acceptance: float
    size: float


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
    compared_with: int
    usual: float | None
    reasons: tuple[Reason, ...]
    standard_error: float
    change: LeastChange | None
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
    others = _comparison(decider.ledger, product, drawn)
    usual, error, change = None, 0.0, None
    reasons: tuple[Reason, ...] = ()
    if len(others):
        documents = [rule.to_json() for rule in mixture.hypotheses]
        found = attribution(
            [
                WeightedRule(weight, _answers(rule, group), _columns(document, len(known.features)))
                for rule, weight, document in zip(
                    mixture.hypotheses, mixture.weights, documents, strict=True
                )
            ],
            row[0],
            others,
        )
        usual, error = found.baseline, found.standard_error
        named = zip(product.features, known.features, found.values.tolist(), strict=True)
        told = [Reason(*one) for one in named if abs(one[2]) > ROUNDING]
        reasons = tuple(sorted(told, key=lambda one: -abs(one.share)))
        if not drawn.accept:
            change = _change(known, mixture, product, group, others)
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
        compared_with=len(others),
        usual=usual,
        reasons=reasons,
        standard_error=error,
        change=change,
        sentence=_sentence(drawn, reasons, change),
    )


def _sentence(drawn: Drawn, reasons: tuple[Reason, ...], change: LeastChange | None) -> str:
    done, p, u = ("Accepted" if drawn.accept else "Rejected"), drawn.acceptance, drawn.u
    against = [one.feature for one in reasons if one.share < 0]
    more = ""
    if not drawn.accept:
        more += f" What spoke most against it: {against[0]}." if against else ""
        if change is not None:
            moved = zip(change.features, change.now, change.values, strict=True)
            steps = " and ".join(
                f"{name} of {to:.6g} (it was {now:.6g})" for name, now, to in moved
            )
            more += f" With {steps}, the same coin would have accepted."
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
    before = ledger.history(*product.names, after=max(0, drawn.seq - LOOKED_AT), upto=drawn.seq - 1)
    people = [row.features for row in before if row.features is not None][-COMPARED:]
    if len(people) < COMPARED:
        later = ledger.history(*product.names, after=drawn.seq, upto=drawn.seq + LOOKED_AT)
        for row in later:
            if row.features is not None and len(people) < COMPARED:
                people.append(row.features)
    return np.array(people, dtype=np.float64).reshape(len(people), len(product.features))


def _answers(rule: Hypothesis, group: GroupArray | None) -> Acceptance:
    def accepts(rows: FloatArray) -> FloatArray:
        groups = None if group is None else np.repeat(group, len(rows))
        return np.asarray(rule.accepts(rows, groups), dtype=np.float64)

    return accepts


def _columns(document: Any, width: int) -> tuple[int, ...]:
    """The columns that a rule may look at."""
    match document:
        case {"kind": "constant"} | {"kind": "group"}:
            return ()
        case {"kind": "threshold", "column": column}:
            return (column,)
        case {"kind": "tree", "column": columns}:
            return tuple(sorted({column for column in columns if column >= 0}))
        case {"kind": "linear", "weights": weights}:
            return tuple(column for column, weight in enumerate(weights) if weight)
    return tuple(range(width))


def _change(
    known: Explained,
    mixture: Mixture,
    product: Product,
    group: GroupArray | None,
    others: FloatArray,
) -> LeastChange | None:
    document = mixture.to_json()
    candidates: list[list[float]] = []
    for column in range(len(product.features)):
        crossed = [
            value
            for border in borders(document, column, known.features)
            for step in [1e-9 * max(1.0, abs(border))]
            for value in (border, border - step, border + step)
        ]
        # a model without known borders is tried at the values that were observed
        opaque = any(part["hypothesis"]["kind"] not in WITH_BORDERS for part in document["parts"])
        seen = np.quantile(others[:, column], np.linspace(0, 1, 33)).tolist() if opaque else []
        candidates.append([*crossed, *seen])

    def acceptance(rows: FloatArray) -> FloatArray:
        return mixture.acceptance(rows, None if group is None else np.repeat(group, len(rows)))

    person = np.array(known.features)
    change = least_change(acceptance, person, candidates, others, known.drawn.u)
    if change is None:
        return None
    names = tuple(product.features[column] for column in change.columns)
    now = tuple(known.features[column] for column in change.columns)
    return LeastChange(names, now, change.values, change.acceptance, change.size)


def borders(document: Any, column: int, features: tuple[float, ...]) -> Iterator[float]:
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
                yield from borders(part, column, features)
        case list():
            for part in document:
                yield from borders(part, column, features)


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
    if policy.info.get("phase") == "frozen":
        yield (
            "the audit budget was spent: a policy that was called frozen could still change, "
            "and people whom a policy could not accept were left out"
        )
    overrides = ledger.count_overrides(*product.names, upto=policy.seq)
    if overrides:
        yield (
            f"{overrides:,} overrides had been reported: "
            "the decisions concerned were left out of the certificate"
        )
    if ledger.newest_erasure(*product.names, upto=policy.seq):
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
