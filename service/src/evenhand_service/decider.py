"""Deciding: which policy is active for each product, and how an application becomes an answer.

    active policy -> terms (probability, audit weight) -> the ledger draws and writes -> answer

A policy is loaded only if its signature verifies. Requests that come in together share a commit
(`ledger.chain.Writer`). Terms rest on a basis: the newest rows that changed what decides and who
may ask. If another replica has changed it by the time of the transaction, nothing is drawn, and new
terms are made.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from evenhand.canonical import canonical, text_literal
from evenhand.contracts import Json
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, policy_from_json
from evenhand.policies import Mixture
from evenhand_service.keys import LedgerKeys
from evenhand_service.ledger import (
    Answer,
    Application,
    Basis,
    Damaged,
    Drawn,
    DrawRequest,
    Gate,
    Invalid,
    Ledger,
    LedgerUnavailable,
    Mode,
    NotFound,
    PolicyRecord,
    Switched,
    Terms,
)
from evenhand_service.problems import InvalidFeature
from evenhand_service.product_changes import GuaranteeChanged, require_unchanged
from evenhand_service.schemas import DecisionRequest
from evenhand_service.settings import Product

LOG = logging.getLogger("evenhand_service")
Action = Literal["kill", "revive", "rollback", "shadow", "live"]
Given = Sequence[float | bool | str | None] | Mapping[str, float | bool | str | None]
TRIES = 20
"""How often terms are made anew for one request, while others switch what decides."""
REFRESH_LIMIT = 30.0
"""Seconds after which a replica that could not look at the ledger refuses to decide."""


def render(drawn: Drawn) -> bytes:
    """Return the answer to an application, as it is sent and stored.

    Parameters
    ----------
    drawn : Drawn
        The decision.

    Returns
    -------
    bytes
        Canonical JSON. `act` is false in shadow mode: the decision is recorded, and the caller's
        own one stands.

    Examples
    --------
    >>> drawn = Drawn(7, 1.5, "k1", "p1", "loan", "w0", 0.25, 0.5, True, "ab", 2, 0.1,
    ...               False, True, "live")
    >>> print(render(drawn).decode())
    {"accept":true,"act":true,"at":1.5,...,"propensity":0.5,"row":7,"window":"w0"}
    """
    start, middle, end = _shared_text(
        drawn.accept,
        drawn.mode,
        drawn.at,
        drawn.audit,
        drawn.epoch,
        drawn.policy,
        drawn.propensity,
        drawn.window,
    )
    return f"{start}{text_literal(drawn.key)}{middle}{drawn.seq}{end}".encode()


@lru_cache(maxsize=64)
def _shared_text(
    accept: bool,
    mode: Mode,
    at: float,
    audit: bool,
    epoch: int,
    policy: str,
    propensity: float,
    window: str,
) -> tuple[str, str, str]:
    """What the answers of a transaction on the same terms share: the text before the key, between
    the key and the number of the row, and after it.

    An answer takes 1.0 us so, and 7.6 by `canonical` of the whole; a test compares the two.
    """
    flag = ("false", "true")
    return (
        f'{{"accept":{flag[accept]},"act":{flag[mode != "shadow"]},"at":{canonical(at)},'
        f'"audit":{flag[audit]},"epoch":{epoch},"key":',
        f',"mode":"{mode}","policy":{text_literal(policy)},'
        f'"propensity":{canonical(propensity)},"row":',
        f',"window":{text_literal(window)}}}',
    )


@dataclass(frozen=True)
class ActivePolicy:
    """The policy that decides about a product, loaded, with its mode and the reason for it."""

    policy: PolicyRecord
    mixture: Mixture
    mode: Mode
    reason: str
    paused: tuple[PolicyRecord, int, Mixture] | None = None
    """The policy without its audit coin, for when the audit budget is used up, and its epoch."""
    spent: tuple[PolicyRecord, int] | None = None
    """The policy that accepts nobody, for when the quota is used up, and its epoch."""
    quota: tuple[int, float] | None = None
    audit_budget: float | None = None

    @property
    def gated(self) -> bool:
        """Whether a count must hold. Nobody acts on a decision in shadow mode."""
        counted = self.quota is not None or self.audit_budget is not None
        return counted and self.mode != "shadow"

    @cached_property
    def audit_weight(self) -> float:
        """The weight of accepting all applicants."""
        return self.mixture.weight_of(ACCEPT_ALL)

    @property
    def learned_weight(self) -> float:
        """The weight of the rules that are no constants."""
        return max(1.0 - self.audit_weight - self.mixture.weight_of(REJECT_ALL), 0.0)


def verified_mixture(
    policy: PolicyRecord, public_key: str, ledger: Ledger | None = None, trusted: Sequence[str] = ()
) -> Mixture:
    """The mixture of a policy whose record is signed by the ledger's key; else Damaged.

    `ledger`: where its fitted models are, if it has some.
    """
    if policy.signature != policy.signature.lower():
        raise Damaged("the signature is not written as it was made.")  # capitals: another record
    policy.verify(public_key)
    if ledger is None:
        return policy_from_json(policy.document)
    return stored_mixture(ledger, policy, trusted)


def stored_mixture(ledger: Ledger, policy: PolicyRecord, trusted: Sequence[str] = ()) -> Mixture:
    """The mixture of a policy, its fitted models read from the ledger by their hashes."""
    known = _MIXTURES.get(policy.id)  # the id is the hash of the document
    if known is None:
        models = ledger.models(policy.document)
        known = policy_from_json(policy.document, models=models, trusted=trusted)
        if models:
            _MIXTURES[policy.id] = known
            while len(_MIXTURES) > MOST_LOADED:
                _MIXTURES.pop(next(iter(_MIXTURES)), None)
    return known


MOST_LOADED = 32
_MIXTURES: dict[str, Mixture] = {}
"""Policies whose models have been loaded, the oldest first."""


def variants_of(policy: PolicyRecord) -> list[Json]:
    """What takes the place of a published policy while a count is used up: `used_up` ("quota" or
    "audit_budget"), `epoch` and `policy`.
    """
    return list(policy.info.get("counts", {}).get("variants", []))


def certified_policies(ledger: Ledger, product: Product) -> list[str]:
    """The ids of the policies that were certified, oldest first."""
    rows = ledger.certificates(product.name)
    status = {row.epoch: row.document.get("status") for row in rows}
    certified = (
        policy.id
        for policy in ledger.policies(product.name)
        if policy.in_lineage and status.get(policy.epoch) == "certified"
    )
    return list(dict.fromkeys(certified))


class Decider:
    """Decides about the applications of every product, and switches what is active.

    A decision is drawn by the policy, and in the mode, that is active inside its transaction.

    Parameters
    ----------
    ledger : Ledger
        Where decisions are written.
    products : sequence of Product
        What is decided about.
    keys : LedgerKeys, optional
        The API keys, which change with the basis too.
    refresh_limit : float
        Seconds after which a decider that could not look at the ledger refuses.
    """

    def __init__(
        self,
        ledger: Ledger,
        products: Sequence[Product],
        keys: LedgerKeys | None = None,
        refresh_limit: float = REFRESH_LIMIT,
    ) -> None:
        self.ledger = ledger
        self.keys = keys
        self.refresh_limit = refresh_limit
        self.products = {product.name: product for product in products}
        self._active: dict[str, ActivePolicy] = {}
        self._changed: dict[str, tuple[str, str]] = {}
        """(sentence, hint) of the products that are not those of the ledger."""
        self._basis = Basis(-1, -1)
        self._looked = -math.inf
        self._looking = threading.Lock()
        self._turn = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None

    def product(self, name: str) -> Product:
        """The product; NotFound names those that there are."""
        if name not in self.products:
            mine = ", ".join(sorted(self.products))
            raise NotFound("there is no such product.", hint=f"the products are: {mine}.")
        return self.products[name]

    # which policy is active

    @property
    def refresh_age(self) -> float:
        """Seconds since the ledger was last asked what decides, and who may ask."""
        return time.monotonic() - self._looked

    @property
    def basis(self) -> Basis:
        """The newest rows that are known here to have changed what decides, and who may ask."""
        return self._basis

    def keep_up(self) -> None:
        """Ask the ledger whether anything has changed, and take it up; blocks."""
        with self._looking:
            began = time.monotonic()
            # read before what it stands for: at worst terms rest on too old a basis, and are made
            # anew
            basis = self.ledger.basis()
            if self.keys is not None and basis.keys != self._basis.keys:
                self.keys.refresh()
            if basis.switched != self._basis.switched:
                for product in self.products.values():
                    with contextlib.suppress(GuaranteeChanged):  # `active` says so to who asks
                        self.refresh(product)
            self._basis = basis
            self._looked = began

    async def current(self) -> None:
        """As `keep_up`; those who wait share a look at the ledger that begins after they came."""
        if self.ledger.store.path is not None and self.ledger.basis() == self._basis:
            self._looked = time.monotonic()
            return  # this process alone writes, and knows
        if self._next_look is None:
            # it is nobody's own: what it writes is not asked for by the key of whoever came first
            self._next_look = asyncio.create_task(self._look(), context=Context())
        await asyncio.shield(self._next_look)

    async def _look(self) -> None:
        async with self._turn:  # the look that is on its way may have begun too early
            self._next_look = None
            await asyncio.to_thread(self.keep_up)

    @property
    def changed(self) -> frozenset[str]:
        """The products about which nothing is decided, since their policies were published for
        others.
        """
        return frozenset(self._changed)

    def active(self, product: Product) -> ActivePolicy:
        """The policy that decides now; GuaranteeChanged if it was published for another product
        than that of the settings.
        """
        changed = self._changed.get(product.name)
        if changed is not None:
            sentence, hint = changed
            raise GuaranteeChanged(sentence, hint=hint)
        known = self._active.get(product.name)
        return self.refresh(product) if known is None else known

    def refresh(self, product: Product) -> ActivePolicy:
        """Look up what the ledger says is active, and decide by it from now on.

        Nothing is decided about a product whose policies were published for another one
        (GuaranteeChanged): its rules would be applied to other columns, or under another limit.
        If the policy does not verify, the last certified one that does takes its place; else the
        constant of the settings.
        """

        policies = self.ledger.policies(product.name)
        try:
            require_unchanged(policies, product, self.ledger.keyring.public_key)
        except GuaranteeChanged as changed:
            if product.name not in self._changed:
                LOG.error("%s", changed)
            self._changed[product.name] = (changed.sentence, changed.hint or "")
            raise
        self._changed.pop(product.name, None)
        on_record = self.ledger.active(product.name)
        mode: Mode = "live" if on_record is None else on_record.mode

        def candidates() -> Iterator[tuple[PolicyRecord, Mode, str]]:
            if on_record is not None:
                yield on_record.policy, mode, on_record.reason
            certified = certified_policies(self.ledger, product)
            for policy in reversed(self.ledger.policies(product.name)):
                if policy.in_lineage and policy.id in certified:
                    yield policy, mode, "fall-back: the newest policy does not verify"
            constant = self.constants(product)[product.fallback]
            yield constant, "killed", "fall-back: no policy verifies"

        for policy, its_mode, reason in candidates():
            with contextlib.suppress(EvenhandError):
                mixture = verified_mixture(
                    policy, self.ledger.keyring.public_key, self.ledger, product.trusted
                )
                active = self._with_counts(product, ActivePolicy(policy, mixture, its_mode, reason))
                self._active[product.name] = active
                return active
        raise Damaged(
            "not even the constant of the settings verifies.",
            hint="verify the ledger, and its key.",
        )

    def _with_counts(self, product: Product, active: ActivePolicy) -> ActivePolicy:
        """The counts that must hold while this policy decides: those that were published with it;
        where a constant decides, the quota of the settings.
        """
        policy = active.policy
        if not policy.in_lineage:
            quota = product.hard_quota
            if quota is None:
                return active
            reject = self.constants(product)["reject"]
            return replace(active, quota=(quota.count, quota.period), spent=(reject, reject.epoch))
        counts = policy.info.get("counts")
        if counts is None:
            return active
        found: dict[str, Any] = {}
        for one in variants_of(policy):
            record = self.ledger.policy(one["policy"])
            mixture = verified_mixture(
                record, self.ledger.keyring.public_key, self.ledger, product.trusted
            )
            if one["used_up"] == "quota":
                found["spent"] = (record, int(one["epoch"]))
            else:
                found["paused"] = (record, int(one["epoch"]), mixture)
        if counts["quota"] is not None:
            found["quota"] = (int(counts["quota"][0]), float(counts["quota"][1]))
        return replace(active, audit_budget=counts["audit_budget"], **found)

    def constants(self, product: Product) -> dict[str, PolicyRecord]:
        """The policies that accept and reject all applicants, registered if they are not yet."""
        registered = [p for p in self.ledger.policies(product.name) if not p.in_lineage]
        known = {str(policy.info.get("constant")): policy for policy in registered}
        for constant, rule in (("accept", ACCEPT_ALL), ("reject", REJECT_ALL)):
            if constant not in known:
                document = Mixture((rule,), (1.0,), product.group_use).to_json()
                known[constant] = self.ledger.register(
                    product.name, document, {"constant": constant}
                )
        return known

    def operate(
        self,
        product: Product,
        action: Action,
        *,
        by: str,
        note: str = "",
        policy: str | None = None,
        constant: str | None = None,
    ) -> ActivePolicy:
        """Switch what decides, on record before it takes effect.

        kill: a constant (`constant`, or the product's fallback) decides until "revive". rollback:
        the certified `policy` decides, or the last one before the present. shadow: decisions are
        recorded and not acted upon until "live".
        """
        self.active(product)  # refused, if the ledger means another product
        if action == "kill":
            policy = self.constants(product)[constant or product.fallback].id
        elif action == "rollback":
            certified = certified_policies(self.ledger, product)
            present = self.active(product).policy.id
            policy = policy or next((id for id in reversed(certified) if id != present), None)
            if policy not in certified:
                raise Invalid(
                    "the policy named for the rollback is none of this product's policies "
                    "that were certified.",
                    hint="GET /v1/policies lists them.",
                )
        else:
            policy = None
        self.ledger.operate(product.name, action, by, note, policy)
        self.keep_up()
        return self.active(product)

    # deciding

    async def decide(
        self,
        asked: Sequence[DecisionRequest],
        still_allowed: Callable[[], None] = lambda: None,
    ) -> list[Answer | EvenhandError]:
        """An answer or a refusal for each application, in their order.

        `still_allowed` raises if the caller may not ask any more; it is asked whenever terms are
        made.
        """
        if self.refresh_age > self.refresh_limit:
            try:
                await self.current()
            except Exception as error:
                raise LedgerUnavailable(
                    f"for {self.refresh_age:.0f} s this replica could not see what decides; "
                    f"after {self.refresh_limit:g} s it refuses.",
                    hint="ask another replica, and look at the database and the log.",
                ) from error
        answers: dict[int, Answer | EvenhandError] = {}
        waiting: Sequence[int] = range(len(asked))
        for _ in range(TRIES):
            part = [asked[place] for place in waiting] if answers else asked
            chosen = [self.products.get(name) for name in {one.product for one in part}]
            if any(product is not None and product.schema is not None for product in chosen):
                prepared = await asyncio.to_thread(self.prepare, part)  # models take time
            else:
                prepared = self.prepare(part)
            if all(isinstance(one, EvenhandError) for one in prepared):
                await self.current()  # no transaction will ask
            still_allowed()
            found = await self._answers(prepared)
            switched = any(isinstance(one, Switched) for one in found)
            if not (answers or switched):  # as it mostly is
                return found
            answers |= dict(zip(waiting, found, strict=True))
            waiting = [p for p in waiting if isinstance(answers[p], Switched)]
            if not waiting:
                break
            await self.current()
        return [answers[place] for place in range(len(asked))]

    async def _answers(
        self, prepared: list[DrawRequest | EvenhandError]
    ) -> list[Answer | EvenhandError]:
        sound = [one for one in prepared if not isinstance(one, EvenhandError)]
        found = await self.ledger.decide_async(sound) if sound else []
        if len(sound) == len(prepared):
            return list(found)
        answers = iter(found)
        return [one if isinstance(one, EvenhandError) else next(answers) for one in prepared]

    def prepare(self, asked: Sequence[DecisionRequest]) -> list[DrawRequest | EvenhandError]:
        """Each application with its terms, or why it is refused.

        The policy of a product is asked once about all people of the batch; the probability of
        one does not depend on the others by a single bit.
        """
        prepared: list[Any] = []
        basis = self._basis
        places: dict[str, list[int]] = {}
        for place, one in enumerate(asked):
            try:
                prepared.append(_application(self.product(one.product), one))
                places.setdefault(one.product, []).append(place)
            except EvenhandError as refusal:
                prepared.append(refusal)
        for name, rows in places.items():
            product = self.products[name]
            try:
                active = self.active(product)
            except GuaranteeChanged as changed:
                for row in rows:
                    prepared[row] = changed
                continue
            people = [prepared[row] for row in rows]
            features = np.array([person.features for person in people], dtype=np.float64)
            by_group = product.group_use == "decide"
            group = np.array([one.group for one in people], dtype=object) if by_group else None
            try:
                chances = active.mixture.acceptance_of_checked(features, group).tolist()
            except EvenhandError as refusal:  # a model that cannot deal with somebody
                if len(rows) > 1:  # one by one, so that nobody suffers for another
                    for row in rows:
                        (prepared[row],) = self.prepare([asked[row]])
                else:
                    prepared[rows[0]] = refusal
                continue
            paused = [0.0] * len(rows)
            if active.paused is not None:
                paused = active.paused[2].acceptance_of_checked(features, group).tolist()
            # people with the same probability share their terms, and what the ledger makes of them
            shared: dict[tuple[float, float], Terms] = {}
            for row, chance, other in zip(rows, chances, paused, strict=True):
                terms = shared.get((chance, other))
                if terms is None:
                    terms = shared[chance, other] = _terms(active, chance, other, basis)
                prepared[row] = (prepared[row], terms)
        return prepared


def _terms(active: ActivePolicy, chance: float, paused: float, basis: Basis) -> Terms:
    """The terms of somebody whom the policy accepts with this probability, and with the other one
    while its audits are paused.
    """
    mode = active.mode
    gate = None
    if active.gated:
        gate = Gate(
            active.quota,
            active.audit_budget,
            None
            if active.paused is None
            else Terms(active.paused[0].id, paused, 0.0, active.paused[1], mode, basis),
            None
            if active.spent is None
            else Terms(active.spent[0].id, 0.0, 0.0, active.spent[1], mode, basis),
        )
    policy = active.policy
    weight = min(active.audit_weight, chance)
    return Terms(policy.id, chance, weight, policy.epoch, mode, basis, gate)


def _application(product: Product, asked: DecisionRequest) -> Application:
    if product.group_use == "decide" and asked.group not in (product.groups or ()):
        raise Invalid(
            "group is missing or none of the product's groups, but this product decides by group.",
            hint="send one of the groups of the settings.",
        )
    features = encoded(product, asked.features)
    prices = asked.prices
    if product.prices_per_person != (prices is not None):
        raise Invalid(
            f"prices must {'' if product.prices_per_person else 'not '}be given for this product.",
            hint="prices per person are given for all people or for none.",
        )
    most = product.price_false_accept + product.price_false_reject
    if prices is not None and prices.false_accept + prices.false_reject > most:
        raise Invalid(
            f"the two prices sum to more than the preset bound {most:g}.",
            hint="raise it in the settings.",
        )
    priced = None if prices is None else (prices.false_accept, prices.false_reject)
    return Application.unchecked(  # `DecisionRequest` has checked names, groups and prices
        asked.key, asked.person, product.name, features, asked.group, priced
    )


_NUMBERS = frozenset({int, float})


def encoded(product: Product, given: Given) -> list[float]:
    """Put the features of a person in order, check them, and encode them as numbers.

    Parameters
    ----------
    product : Product
        The product; its schema says what each feature may hold.
    given : list or dict
        The values in the order of the features, or by name.

    Returns
    -------
    list of float
        Finite numbers.

    Raises
    ------
    Invalid
        If a feature is missing, unknown or not what it may be; the message names it.

    Examples
    --------
    >>> loan = Product("loan", ("score", "income"))
    >>> encoded(loan, {"income": 30.5, "score": 2})
    [2.0, 30.5]
    >>> encoded(loan, {"income": "high", "score": 2})
    Traceback (most recent call last):
        ...
    evenhand_service.problems.InvalidFeature: feature 'income' is a text; it must be a number. ...
    """
    names = product.features
    by_name = isinstance(given, Mapping)
    numbers = isinstance(given, list) and _NUMBERS.issuperset(map(type, given))
    if product.schema is None and numbers and len(given) == len(names):  # as it mostly comes
        return list(map(float, given))  # type: ignore[arg-type]
    if product.schema is None:
        for place, value in given.items() if isinstance(given, Mapping) else enumerate(given):
            if isinstance(value, bool) or not isinstance(value, int | float):
                kind = {str: "a text", bool: "true or false"}.get(type(value), "null")
                which = place if isinstance(place, str) else names[min(place, len(names) - 1)]
                raise InvalidFeature(
                    f"feature {which!r} is {kind}",
                    requirement="it must be a number",
                    hint="the settings describe features that hold anything else.",
                    field=f"features.{place}",
                )
    values = _in_order(names, given)
    if product.schema is None:
        return [float(value) for value in values]  # type: ignore[arg-type]
    row: list[float] = []
    for place, (column, value) in enumerate(zip(product.schema.columns, values, strict=True)):
        try:
            row += column.encode([value])[0].tolist()
        except InvalidInput as error:
            raise InvalidFeature(
                f"feature {column.name!r} is {error.value}",
                requirement=error.requirement or column.describe(),
                hint=f"the settings declare {column.describe()}.",
                field=f"features.{column.name if by_name else place}",
            ) from error
    return row


def _in_order(names: Sequence[str], given: Given) -> Sequence[float | bool | str | None]:
    """The values in the order of the features, each of them given once."""
    if isinstance(given, Mapping):
        lacking = [name for name in names if name not in given]
        strange = [name for name in given if name not in names]
        if lacking or strange:
            which = f"lacks {lacking[0]!r}" if lacking else f"has the unknown {strange[0][:60]!r}"
            raise Invalid(
                f"features does not name the product's features: it {which}.",
                hint=f"they are {', '.join(names)}.",
            )
        return [given[name] for name in names]
    if len(given) != len(names):
        raise Invalid(
            f"features has {len(given)} values; this product has {len(names)} features.",
            hint=f"send {', '.join(names)}, in this order or by name.",
        )
    return given
