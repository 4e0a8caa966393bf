"""Deciding: which policy is active for each product, and how an application becomes an answer.

    active policy -> terms (probability, audit weight) -> the ledger draws and writes -> answer

A policy is loaded only if its signature verifies. Requests that come in together share a commit.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from evenhand.canonical import canonical, text_literal
from evenhand.errors import EvenhandError
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import (
    RULES,
    Answer,
    Application,
    Damaged,
    Drawn,
    Invalid,
    Ledger,
    Mode,
    NotFound,
    Policy,
    Refusal,
    Terms,
)
from evenhand.policies import Mixture
from evenhand.service.schemas import Asked
from evenhand.service.settings import Product

Action = Literal["kill", "revive", "rollback", "shadow", "live"]
Question = tuple[Application, Terms]
Answers = list[Answer | Refusal]
Waiting = tuple[Sequence[Question], "asyncio.Future[Answers]"]
"""The questions of one request, and where its answers are awaited."""

LONGEST_WAIT = 0.05
"""Seconds that a request waits at most for others to share its commit."""
QUIET_TURNS = 4
"""Turns of the event loop without a new request after which a group is complete. From the last
byte of a request to the decider it takes at most so many turns.
"""


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
    >>> drawn = Drawn(7, 1.5, "bank", "k1", "p1", "loan", "w0", 0.25, 0.5, True, "ab", 2, 0.1,
    ...               False, True, "live")
    >>> print(render(drawn).decode())
    {"accept":true,"act":true,"at":1.5,...,"propensity":0.5,"row":7,"window":"w0"}
    """
    d, flag = drawn, ("false", "true")
    return (
        f'{{"accept":{flag[d.accept]},"act":{flag[d.mode != "shadow"]},"at":{canonical(d.at)},'
        f'"audit":{flag[d.audit]},"epoch":{d.epoch},"key":{text_literal(d.key)},"mode":"{d.mode}",'
        f'"policy":{text_literal(d.policy)},"propensity":{canonical(d.propensity)},"row":{d.seq},'
        f'"window":{text_literal(d.window)}}}'
    ).encode()


def audit_and_learned_weight(mixture: Mixture) -> tuple[float, float]:
    """How much of a mixture accepts everybody (the audit), and how much of it is no constant."""
    parts = list(zip(mixture.hypotheses, mixture.weights, strict=True))
    accept, reject = (sum(w for h, w in parts if h == c) for c in (ACCEPT_ALL, REJECT_ALL))
    return accept, max(1.0 - accept - reject, 0.0)


@dataclass(frozen=True)
class ActivePolicy:
    """The policy that decides about a product, loaded, with its mode and the reason for it."""

    policy: Policy
    mixture: Mixture
    mode: Mode
    reason: str

    @cached_property
    def audit_weight(self) -> float:
        """The weight of accepting everybody, whoever it is."""
        return audit_and_learned_weight(self.mixture)[0]

    @property
    def learned_weight(self) -> float:
        """The weight of the rules that are no constants."""
        return audit_and_learned_weight(self.mixture)[1]


def verified_mixture(policy: Policy, public_key: str) -> Mixture:
    """The mixture of a policy whose record is signed by the ledger's key; else Damaged."""
    if policy.signature != policy.signature.lower():
        raise Damaged("the signature is not written as it was made.")  # capitals: another record
    policy.verify(public_key)
    return policy_from_json(policy.document)


def certified_policies(ledger: Ledger, product: Product) -> list[str]:
    """The ids of the policies that were certified under the present rules, oldest first."""
    names = (product.tenant, product.name)
    status = {row.epoch: row.document.get("status") for row in ledger.certificates(*names)}
    certified = (
        policy.id
        for policy in ledger.policies(*names)
        if policy.in_lineage and policy.rules == RULES and status.get(policy.epoch) == "certified"
    )
    return list(dict.fromkeys(certified))


@dataclass
class GroupCommit:
    """One job of the ledger for many requests, on one event loop.

    A commit costs the same for one decision as for sixty. So a job is submitted when the ledger is
    idle and the event loop has brought no new request for QUIET_TURNS turns; somebody who comes
    alone waits for a fraction of a millisecond, and nobody longer than LONGEST_WAIT.
    """

    ledger: Ledger
    _ready: list[Waiting] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _busy: int = 0
    _jobs: "set[asyncio.Task[None]]" = field(default_factory=set)
    _watching: bool = False

    async def decide(self, questions: Sequence[Question]) -> Answers:
        """The answers, which are durable when this returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        self._ready.append((questions, future))
        if self._timer is None:
            self._timer = loop.call_later(LONGEST_WAIT, self._submit)
        self._watch()
        return await future

    def _watch(self) -> None:
        if self._ready and not self._watching:
            self._watching = True
            asyncio.get_running_loop().call_soon(self._turn, len(self._ready), 0)

    def _turn(self, ready_before: int, quiet: int) -> None:
        ready = len(self._ready)
        quiet = quiet + 1 if ready == ready_before else 0
        if quiet < QUIET_TURNS:
            asyncio.get_running_loop().call_soon(self._turn, ready, quiet)
            return
        self._watching = False
        if not self._busy:  # otherwise they are submitted when the ledger is done
            self._submit()

    def _submit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._ready = self._ready, []
        if group:
            self._busy += 1
            job = asyncio.get_running_loop().create_task(self._answer(group))
            self._jobs.add(job)  # the event loop itself holds no strong reference
            job.add_done_callback(self._jobs.discard)

    async def _answer(self, group: list[Waiting]) -> None:
        groups = [group]
        try:
            while groups:
                group = groups.pop()
                questions = [question for asked, _ in group for question in asked]
                try:
                    answers = iter(await self.ledger.decide_async(questions))
                except EvenhandError as refusal:
                    if len(group) > 1:  # one by one, so that nobody suffers for another
                        groups += [[one] for one in reversed(group)]
                    elif not group[0][1].done():
                        group[0][1].set_exception(refusal)
                    continue
                for asked, future in group:
                    part = [next(answers) for _ in asked]
                    if not future.done():  # the client may have gone
                        future.set_result(part)
        finally:
            self._busy -= 1
            self._watch()


class Decider:
    """Decides about the applications of every product, and switches what is active.

    A decision is drawn by the policy that was active when the request came.
    """

    def __init__(self, ledger: Ledger, products: Sequence[Product]) -> None:
        self.ledger = ledger
        self.products = {(product.tenant, product.name): product for product in products}
        self._active: dict[tuple[str, str], ActivePolicy] = {}
        self._commits = GroupCommit(ledger)

    def product(self, tenant: str, name: str) -> Product:
        """The product; NotFound names those that the tenant has."""
        if (tenant, name) not in self.products:
            mine = ", ".join(sorted(p for t, p in self.products if t == tenant)) or "none"
            raise NotFound("this tenant has no such product.", hint=f"the products are: {mine}.")
        return self.products[tenant, name]

    # which policy is active

    def active(self, product: Product) -> ActivePolicy:
        """The policy that decides now."""
        known = self._active.get((product.tenant, product.name))
        return self.refresh(product) if known is None else known

    def refresh(self, product: Product) -> ActivePolicy:
        """Look up what the ledger says is active, and decide by it from now on.

        If that policy does not verify, the last certified one that does takes its place; else the
        constant of the settings.
        """
        names = (product.tenant, product.name)
        on_record = self.ledger.active(*names)

        def candidates() -> Iterator[tuple[Policy, str]]:
            if on_record is not None:
                yield on_record.policy, on_record.reason
            certified = certified_policies(self.ledger, product)
            for policy in reversed(self.ledger.policies(*names)):
                if policy.in_lineage and policy.id in certified:
                    yield policy, "fall-back: the newest policy does not verify"

        public_key = self.ledger.keyring.public_key
        for policy, reason in candidates():
            try:
                mixture = verified_mixture(policy, public_key)
            except EvenhandError:
                continue
            mode: Mode = "live" if on_record is None else on_record.mode
            self._active[names] = ActivePolicy(policy, mixture, mode, reason)
            return self._active[names]
        policy = self.constants(product)[product.fallback]
        mixture = verified_mixture(policy, public_key)
        self._active[names] = ActivePolicy(
            policy, mixture, "killed", "fall-back: no policy verifies"
        )
        return self._active[names]

    def constants(self, product: Product) -> dict[str, Policy]:
        """The policies that accept and reject everybody, registered if they are not yet."""
        names = (product.tenant, product.name)
        known = {str(p.info.get("constant")): p for p in self.ledger.policies(*names)
                 if not p.in_lineage}  # fmt: skip
        for constant, rule in (("accept", ACCEPT_ALL), ("reject", REJECT_ALL)):
            if constant not in known:
                document = Mixture((rule,), (1.0,), product.group_use).to_json()
                known[constant] = self.ledger.register(*names, document, {"constant": constant})
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
        if action == "kill":
            policy = self.constants(product)[constant or product.fallback].id
        elif action == "rollback":
            certified = certified_policies(self.ledger, product)
            present = self.active(product).policy.id
            policy = policy or next((id for id in reversed(certified) if id != present), None)
            if policy not in certified:
                raise Invalid(
                    "the policy named for the rollback is none of this product's policies "
                    f"that were certified under rules {RULES}.",
                    hint="GET /v1/policies lists them, with the rules of each.",
                )
        else:
            policy = None
        self.ledger.operate(product.tenant, product.name, action, by, note, policy)
        return self.refresh(product)

    # deciding

    async def decide(self, tenant: str, asked: Sequence[Asked]) -> list[Answer | EvenhandError]:
        """An answer or a refusal for each application, in their order."""
        prepared = self.prepare(tenant, asked)
        sound = [one for one in prepared if not isinstance(one, EvenhandError)]
        answers = iter(await self._commits.decide(sound) if sound else [])
        return [one if isinstance(one, EvenhandError) else next(answers) for one in prepared]

    def prepare(self, tenant: str, asked: Sequence[Asked]) -> list[Question | EvenhandError]:
        """Each application with its terms, or why it is refused.

        The policy of a product is asked once about all people of the batch; the probability of
        one does not depend on the others by a single bit.
        """
        prepared: list[Any] = []
        places: dict[str, list[int]] = {}
        for place, one in enumerate(asked):
            try:
                prepared.append(_application(self.product(tenant, one.product), one))
                places.setdefault(one.product, []).append(place)
            except EvenhandError as refusal:
                prepared.append(refusal)
        for name, rows in places.items():
            product = self.products[tenant, name]
            active, people = self.active(product), [prepared[row] for row in rows]
            features = np.array([person.features for person in people], dtype=np.float64)
            by_group = product.group_use == "decide"
            group = np.array([one.group for one in people], dtype=object) if by_group else None
            chances = active.mixture.acceptance_of_checked(features, group).tolist()
            policy, audit = active.policy, active.audit_weight
            for row, chance in zip(rows, chances, strict=True):
                terms = Terms(policy.id, chance, min(audit, chance), policy.epoch, active.mode)
                prepared[row] = (prepared[row], terms)
        return prepared


def _application(product: Product, asked: Asked) -> Application:
    if product.group_use == "decide" and asked.group not in (product.groups or ()):
        raise Invalid(
            "group is missing or none of the product's groups, but this product decides by group.",
            hint="send one of the groups of the settings.",
        )
    features, names, prices = asked.features, product.features, asked.prices
    if isinstance(features, dict):
        if set(features) != set(names):
            raise Invalid(
                "features does not name the product's features.",
                hint=f"they are {', '.join(names)}.",
            )
        features = [features[name] for name in names]
    if len(features) != len(names):
        raise Invalid(
            f"features has {len(features)} numbers; this product has {len(names)} features.",
            hint=f"send {', '.join(names)}, in this order or by name.",
        )
    if product.prices_per_person != (prices is not None):
        raise Invalid(
            f"prices must {'' if product.prices_per_person else 'not '}be given for this product.",
            hint="prices per person are given for everybody or for nobody.",
        )
    most = product.price_false_accept + product.price_false_reject
    if prices is not None and prices.false_accept + prices.false_reject > most:
        raise Invalid(
            f"the two prices sum to more than the preset bound {most:g}.",
            hint="raise it in the settings.",
        )
    priced = None if prices is None else (prices.false_accept, prices.false_reject)
    return Application(
        product.tenant, asked.key, asked.person, asked.product, features, asked.group, priced
    )
