"""Why somebody was decided so: the rules of the mixture with their weights and answers, the coin,
and what would have changed it.

    accept iff U < p(x),   p(x) = sum of the weights of the rules that accept x

A feature lowered p by as much as p could rise if that feature alone had another value; only values
at which some rule changes its answer have to be tried, so the search is exact for thresholds, trees
and linear rules.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.ledger import Explained
from evenhand.policies import Mixture
from evenhand.service.config import Product
from evenhand.service.desk import Desk
from evenhand.service.in_force import load

NUDGE = 1e-9


@dataclass(frozen=True)
class RulePart:
    """One rule of the mixture, and what it said."""

    weight: float
    words: str
    accepts: bool


@dataclass(frozen=True)
class Lever:
    """With this feature at `value` and all else equal the probability would have been `acceptance`."""

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


def explain(desk: Desk, tenant: str, key: str) -> Explanation:
    """NotFound, or Gone after an erasure."""
    found = desk.ledger.explain(tenant, key)
    product = desk.product(tenant, found.drawn.product)
    mixture = load(desk.ledger.policy(found.drawn.policy), desk.ledger.keyring.public_key)
    return explained(found, mixture, product)


def explained(found: Explained, mixture: Mixture, product: Product) -> Explanation:
    """The explanation of a decision under its policy."""
    drawn, group = found.drawn, _group(found, mixture)
    rows = np.array([found.features])
    parts = tuple(
        RulePart(
            weight, rule.describe(product.features), bool(np.asarray(rule.accepts(rows, group))[0])
        )
        for rule, weight in sorted(
            zip(mixture.hypotheses, mixture.weights, strict=True), key=lambda part: -part[1]
        )
    )
    levers = tuple(sorted(_levers(found, mixture, product), key=lambda lever: -lever.gain))
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
        status=found.standing.status,
        overruled=found.standing.overruled,
        usable=drawn.usable,
        parts=parts,
        levers=levers,
        sentence=_sentence(found, levers),
    )


def _group(found: Explained, mixture: Mixture) -> Any:
    return np.array([found.group], dtype=object) if mixture.group_use == "decide" else None


def _sentence(found: Explained, levers: tuple[Lever, ...]) -> str:
    drawn = found.drawn
    done, p, u = ("Accepted" if drawn.accept else "Rejected"), drawn.acceptance, drawn.u
    if p in (0.0, 1.0):
        return f"{done}: the policy was certain (probability of being accepted {p:g}); chance had no say."
    drew = f"{done}: the probability of being accepted was {p:.4g}, and the coin fell at {u:.4f}. Chance had a say."
    if drawn.audit:
        return f"{drew} The audit coin, which ignores the person, would have accepted anybody here."
    if drawn.accept:
        return f"{drew} A coin at or above {p:.4g} would have meant a rejection."
    more = f" Most was lost by {levers[0].feature}." if levers else ""
    return f"{drew} A coin below {p:.4g} would have meant acceptance.{more}"


def _levers(found: Explained, mixture: Mixture, product: Product) -> Iterator[Lever]:
    """For each feature the value, of those at which a rule changes, that raises the probability
    most; none if nothing raises it.
    """
    document, group = mixture.to_json(), _group(found, mixture)
    for column, name in enumerate(product.features):
        values = sorted(
            set(_borders(document, column, found.features)),
            key=lambda v: abs(v - found.features[column]),
        )
        if not values:
            continue
        rows = np.tile(np.array(found.features), (len(values), 1))
        rows[:, column] = values
        groups = None if group is None else np.repeat(group, len(values))
        acceptance = mixture.acceptance(rows, groups)
        best = int(np.argmax(acceptance))
        gain = float(acceptance[best]) - found.drawn.acceptance
        if gain > 0:
            yield Lever(name, found.features[column], values[best], float(acceptance[best]), gain)


def _borders(document: Any, column: int, features: tuple[float, ...]) -> Iterator[float]:
    """Values of one column on both sides of every border of a rule."""
    if isinstance(document, list):
        for item in document:
            yield from _borders(item, column, features)
        return
    if not isinstance(document, dict):
        return
    match document.get("kind"):
        case "threshold" if document["column"] == column:
            yield from _sides(document["value"])
        case "linear":
            yield from _crossing(document, column, features)
        case "tree":
            for at, value in zip(document["column"], document["value"], strict=True):
                if at == column:
                    yield from _sides(value)
        case _:
            for item in document.values():
                yield from _borders(item, column, features)


def _sides(value: float) -> Iterator[float]:
    step = NUDGE * max(1.0, abs(value))
    yield from (value, value - step, value + step)


def _crossing(document: Json, column: int, features: tuple[float, ...]) -> Iterator[float]:
    """w.x = threshold, solved for one column."""
    weight = document["weights"][column]
    if weight:
        rest = sum(
            w * x
            for i, (w, x) in enumerate(zip(document["weights"], features, strict=True))
            if i != column
        )
        yield from _sides((document["threshold"] - rest) / weight)
