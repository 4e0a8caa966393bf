"""Explanations for people: why somebody was decided so, and what a certificate is about.

    accept iff U < p(x),   p(x) = sum of the weights of the rules that accept x

Each feature's share of p(x) is its exact Shapley value against people who were decided on at about
the same time (`evenhand.policies.reasons`). For a rejected person the least change is named, in
units of spread and within what was observed, with which the same coin would have accepted.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from evenhand.contracts import Hypothesis, Json
from evenhand.hypotheses import REJECT_ALL
from evenhand.policies import Mixture
from evenhand.policies.reasons import (
    MOST_EVALUATIONS,
    Attribution,
    Changeable,
    WeightedRule,
    attribution,
    least_change,
)
from evenhand.schema import MISSING
from evenhand.words import FloatArray, GroupArray
from evenhand_service.decider import Decider, verified_mixture
from evenhand_service.ledger import Drawn, Explained, Ledger, Standing, list_decisions
from evenhand_service.settings import Product

COMPARED = 200
LOOKED_AT = 2_000
"""People whom somebody is compared with, and rows of the chain among which they are looked for."""
ROUNDING = 1e-12
TIED = 1e-9
WITH_BORDERS = ("constant", "group", "threshold", "per-group", "tree", "linear")
"""Kinds of rules whose every change of answer is known, see `hyperplanes`."""

AS_DRAWN = (
    "The certificate is about the policy as drawn, before people overrule it. "
    "An overruled decision stays in it as it was drawn; where its label is lost, "
    "it counts at its worst."
)
"""What the claim of every certificate is about."""


Value = float | bool | str | None
"""Of a feature, as it is sent; None where it is missing."""


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
    value: Value
    share: float


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
    standard_error: float
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
    compared = 0
    change = None
    reasons: tuple[Reason, ...] = ()
    if len(others):
        found, compared = _shares(mixture, product, group, person, others)
        reasons = _reasons(found, _shown(product, known.features))
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
        learned_from=learned_from(drawn, known.standing),
        parts=_parts(mixture, product, group, person),
        compared_with=compared,
        usual=None if found is None else found.baseline,
        reasons=reasons,
        standard_error=0.0 if found is None else found.standard_error,
        change=change,
        sentence=_sentence(drawn, reasons, change, mixture.weight_of(REJECT_ALL)),
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


def _reasons(found: Attribution, shown: dict[str, Value]) -> tuple[Reason, ...]:
    """The features that had a say, the largest share first."""
    shares = zip(shown.items(), found.values.tolist(), strict=True)
    named = (Reason(name, value, share) for (name, value), share in shares if abs(share) > ROUNDING)
    return tuple(sorted(named, key=lambda one: -round(abs(one.share), 9)))


def _shares(
    mixture: Mixture,
    product: Product,
    group: GroupArray | None,
    person: FloatArray,
    others: FloatArray,
) -> tuple[Attribution, int]:
    """What each feature did to the person's chance, compared with so many others: fewer for a model
    on many columns, such that the shares stay exact.
    """
    fitting = COMPARED
    if not _has_borders(mixture):
        fitting = min(COMPARED, max(32, MOST_EVALUATIONS // 4 >> min(len(product.features), 30)))

    def answers(rule: Hypothesis, rows: FloatArray) -> FloatArray:
        groups = None if group is None else np.repeat(group, len(rows))
        return np.asarray(rule.accepts(rows, groups), dtype=np.float64)

    rules = [
        WeightedRule(weight, partial(answers, rule), _features_used(rule, product))
        for rule, weight in zip(mixture.hypotheses, mixture.weights, strict=True)
    ]
    asked_of = others[-fitting:]
    return attribution(rules, person, asked_of, places=_places(product)), len(asked_of)


def _has_borders(mixture: Mixture) -> bool:
    """Whether every change of answer of its rules is known."""
    return all(rule.to_json()["kind"] in WITH_BORDERS for rule in mixture.hypotheses)


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
    drawn: Drawn, reasons: tuple[Reason, ...], change: LeastChange | None, reject_all: float
) -> str:
    """In words. `reject_all`: the weight of rejecting all applicants."""
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
        against = [one for one in reasons if one.share < 0]
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


def _places(product: Product) -> list[slice]:
    """Where each feature stands in the matrix."""
    if product.schema is None:
        return [slice(j, j + 1) for j in range(len(product.features))]
    return [product.schema.places[name] for name in product.features]


def _shown(product: Product, features: Sequence[float]) -> dict[str, Value]:
    """The values of a person as they were sent, by the name of the feature."""
    if product.schema is None:
        return dict(zip(product.features, features, strict=True))
    return product.schema.records(np.array([features]))[0]


def _features_used(rule: Hypothesis, product: Product) -> tuple[int, ...]:
    """The features that a rule may look at: all of them, if it does not know."""
    if rule.columns_used is None:
        return tuple(range(len(product.features)))
    names = {product.slots[column] for column in rule.columns_used}
    return tuple(sorted(product.features.index(name) for name in names))


def _changeable(product: Product) -> list[Changeable]:
    """What may be proposed: numbers along their range, categories and truth values that were
    observed, and never a text, which may be somebody else's own words.
    """
    found: list[Changeable] = []
    for name, place in zip(product.features, _places(product), strict=True):
        column = None if product.schema is None else product.schema[name]
        kind = "number" if column is None else column.kind
        missing = MISSING if column is not None and column.missing else None
        changeable = {"number": "number", "text": "fixed"}.get(kind, "name")
        found.append(Changeable(place, cast(Any, changeable), missing))
    return found


def _change(
    known: Explained,
    mixture: Mixture,
    product: Product,
    group: GroupArray | None,
    others: FloatArray,
) -> LeastChange | None:
    borders = hyperplanes(mixture.to_json(), product.width)
    columns = _changeable(product)
    if not _has_borders(mixture):
        observed = _observed_values(columns, others)
        borders = np.vstack([borders[0], observed[0]]), np.r_[borders[1], observed[1]]

    def acceptance(rows: FloatArray) -> FloatArray:
        asked = None if group is None else np.repeat(group, len(rows))
        return mixture.acceptance_of_checked(rows, asked)

    person = np.array(known.features)
    change = least_change(acceptance, person, borders, others, known.drawn.u, columns)
    if change is None:
        return None
    changed = person.copy()
    for j, value in zip(change.columns, change.values, strict=True):
        changed[columns[j].place.start] = value
    now = _shown(product, known.features)
    then = _shown(product, changed.tolist())
    names = tuple(product.features[j] for j in change.columns)
    words = " and ".join(_moved(name, now[name], then[name]) for name in names)
    return LeastChange(
        names,
        tuple(now[name] for name in names),
        tuple(then[name] for name in names),
        change.acceptance,
        change.size,
        words,
    )


def _observed_values(
    columns: Sequence[Changeable], others: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(w, c) of every w.x = c at which a model without known borders is tried: numbers that were
    observed, at most 33 of each feature.
    """
    weights = [np.zeros((0, others.shape[1]))]
    right = [np.zeros(0)]
    for at in (column.place.start for column in columns if column.kind == "number"):
        seen = others[others[:, at] != MISSING, at]
        if len(seen):
            tried = np.unique(np.quantile(seen, np.linspace(0, 1, 33), method="nearest"))
            weights.append(np.tile(np.eye(others.shape[1])[at], (len(tried), 1)))
            right.append(tried)
    return np.vstack(weights), np.concatenate(right)


def _moved(name: str, was: Value, to: Value) -> str:
    """A change in words, with so many digits that the two numbers read differently."""
    before = "missing" if was is None else str(was)
    if isinstance(to, bool | str) or to is None:
        return f"{name} {str(to)!r} (it was {before!r})"
    if isinstance(was, float | int):
        texts = (f"{was:.{digits}g}" for digits in (6, 10, 14, 17))
        before = next((text for text in texts if float(text) != to), before)
    return f"{name} of {to:.10g} (it was {before})"


def hyperplanes(document: Any, width: int) -> tuple[FloatArray, FloatArray]:
    """(w, c) of every w.x = c at which a rule of a policy's document changes its answer."""
    found: list[tuple[FloatArray, float]] = []

    def look(part: Any) -> None:
        match part:
            case {"kind": "threshold", "column": column, "value": value}:
                found.append((np.eye(width)[column], value))
            case {"kind": "tree", "column": columns, "value": values}:
                cuts = zip(columns, values, strict=True)
                found.extend((np.eye(width)[at], cut) for at, cut in cuts if at >= 0)
            case {"kind": "linear", "weights": weights, "threshold": threshold}:
                found.append((np.array(weights, dtype=np.float64), threshold))
            case dict():
                for inner in part.values():
                    look(inner)
            case list():
                for inner in part:
                    look(inner)

    look(document)
    right = np.array([c for _, c in found], dtype=np.float64)
    return np.array([w for w, _ in found], dtype=np.float64).reshape(-1, width), right
