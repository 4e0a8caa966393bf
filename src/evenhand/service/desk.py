"""The desk: applications in, answers out. It turns a request into terms under the policy in force
and hands both to the ledger.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from evenhand.canonical import canonical, text_literal
from evenhand.contracts import Json
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.ledger import Answer, Application, Drawn, Invalid, Ledger, NotFound, Refusal, Terms
from evenhand.ledger import Asked as Request
from evenhand.service import in_force
from evenhand.service.bodies import Asked
from evenhand.service.config import Product, Settings
from evenhand.service.grouping import Grouping
from evenhand.service.in_force import InForce

Kind = TypeVar("Kind")


def render(drawn: Drawn) -> bytes:
    """The answer as canonical JSON, stored for ever.

    `act` is false in shadow mode: the decision is logged, and yours stands.
    """
    d, flag = drawn, ("false", "true")
    return (
        f'{{"accept":{flag[d.accept]},"act":{flag[d.mode != "shadow"]},"at":{canonical(d.at)},'
        f'"audit":{flag[d.audit]},"epoch":{d.epoch},"key":{text_literal(d.key)},"mode":"{d.mode}",'
        f'"policy":{text_literal(d.policy)},"propensity":{canonical(d.propensity)},"row":{d.seq},'
        f'"window":{text_literal(d.window)}}}'
    ).encode()


class Desk:
    """One per process: the ledger, the products, and the policy in force for each."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self.ledger, self.settings = ledger, settings
        self.products = {(product.tenant, product.name): product for product in settings.products}
        self._in_force: dict[tuple[str, str], InForce] = {}
        self._grouping = Grouping(ledger)

    def product(self, tenant: str, name: str) -> Product:
        """NotFound names what there is, to its own tenant only."""
        if (tenant, name) not in self.products:
            mine = ", ".join(sorted(p for t, p in self.products if t == tenant)) or "none"
            raise NotFound("this tenant has no such product.", hint=f"the products are: {mine}.")
        return self.products[tenant, name]

    def in_force(self, product: Product) -> InForce:
        """The policy that decides now."""
        found = self._in_force.get((product.tenant, product.name))
        return found if found is not None else self.refresh(product)

    def refresh(self, product: Product) -> InForce:
        """Look again what is active: after a publication or an operation, and every second where
        there are replicas.
        """
        found = in_force.find(self.ledger, product)
        self._in_force[product.tenant, product.name] = found
        return found

    # deciding

    async def decide(self, tenant: str, asked: Sequence[Asked]) -> list[Answer | EvenhandError]:
        """Answers in order. The policies in force are read once, before anything waits."""
        prepared = self.prepare(tenant, asked)
        sound = [one for one in prepared if not isinstance(one, EvenhandError)]
        answers = iter(await self._grouping.decide(sound) if sound else [])
        return [one if isinstance(one, EvenhandError) else next(answers) for one in prepared]

    def prepare(self, tenant: str, asked: Sequence[Asked]) -> list[Request | EvenhandError]:
        """(application, terms) for each, or why not; the policy of a product is asked once about
        all its people.
        """
        found: list[Request | EvenhandError | None] = [None] * len(asked)
        people: dict[str, dict[int, Application]] = {}
        for place, one in enumerate(asked):
            try:
                people.setdefault(one.product, {})[place] = self._application(tenant, one)
            except EvenhandError as refusal:
                found[place] = refusal
        for name, applications in people.items():
            terms = self._terms(self.product(tenant, name), list(applications.values()))
            for (place, application), answer in zip(applications.items(), terms, strict=True):
                found[place] = (application, answer)
        return [one for one in found if one is not None]

    def _application(self, tenant: str, asked: Asked) -> Application:
        product = self.product(tenant, asked.product)
        _require_group(product, asked)
        features, prices = _features(product, asked), _prices(product, asked)
        return Application(
            tenant, asked.key, asked.person, asked.product, features, asked.group, prices
        )

    def _terms(self, product: Product, applications: Sequence[Application]) -> list[Terms]:
        """A row's probability depends on its neighbours by not one bit, so a batch is decided as
        its people would be alone.
        """
        force = self.in_force(product)
        by_group = product.group_use == "decide"
        group = np.array([one.group for one in applications], dtype=object) if by_group else None
        chances = force.mixture.acceptance([one.features for one in applications], group).tolist()
        policy, audit = force.policy, force.audit_weight
        return [
            Terms(policy.id, chance, min(audit, chance), policy.epoch, force.mode)
            for chance in chances
        ]

    # everything else that touches the disk, off the event loop

    @staticmethod
    async def off_loop(work: Callable[[], Kind]) -> Kind:
        """Run blocking work in a thread."""
        return await asyncio.to_thread(work)


def _features(product: Product, asked: Asked) -> list[float]:
    given, names = asked.features, product.features
    if isinstance(given, dict):
        if set(given) != set(names):
            raise Invalid(
                "features does not name the product's features.",
                hint=f"they are {', '.join(names)}.",
            )
        return [given[name] for name in names]
    if len(given) != len(names):
        raise Invalid(
            f"features has {len(given)} numbers; this product has {len(names)} features.",
            hint=f"send {', '.join(names)}, in this order or by name.",
        )
    return list(given)


def _require_group(product: Product, asked: Asked) -> None:
    if product.group_use == "decide" and asked.group not in (product.groups or ()):
        raise Invalid(
            "group is missing or none of the product's groups, but this product decides by group.",
            hint="send one of the groups of the settings.",
        )


def _prices(product: Product, asked: Asked) -> tuple[float, float] | None:
    if product.prices_per_person != (asked.prices is not None):
        raise Invalid(
            f"prices must {'' if product.prices_per_person else 'not '}be given for this product.",
            hint="prices per person are given for everybody or for nobody.",
        )
    if asked.prices is None:
        return None
    most = product.price_false_accept + product.price_false_reject
    if asked.prices.false_accept + asked.prices.false_reject > most:
        raise Invalid(
            f"the two prices sum to more than the preset bound {most:g}.",
            hint="raise it in the settings.",
        )
    return asked.prices.false_accept, asked.prices.false_reject


def as_json(answer: Answer | EvenhandError, to_problem: Callable[[EvenhandError], Json]) -> bytes:
    """One entry of a batch: the stored bytes, or a problem."""
    if isinstance(answer, EvenhandError):
        return canonical(to_problem(answer)).encode()
    return answer.body


def first_refusal(answers: Sequence[Any]) -> Refusal | InvalidInput | None:
    """The refusal of a single request, if it was refused."""
    found = answers[0]
    return found if isinstance(found, Refusal | InvalidInput) else None
