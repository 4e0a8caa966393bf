"""What an operator can do in one call: stop everything, go back, decide without acting. Each is in
the chain before it takes effect.
"""

from dataclasses import dataclass

from evenhand.ledger import RULES, Invalid
from evenhand.service.config import Product
from evenhand.service.desk import Desk
from evenhand.service.in_force import Constant, InForce, certified_ids, register_constants


@dataclass(frozen=True)
class Operator:
    """Somebody with an admin key, who gives a name and a reason."""

    desk: Desk
    by: str
    note: str

    def kill(self, product: Product, constant: Constant | None = None) -> InForce:
        """A constant policy at once, until `revive`; people decided meanwhile are not learned from."""
        policy = register_constants(self.desk.ledger, product)[constant or product.fallback]
        return self._operate(product, "kill", policy)

    def revive(self, product: Product) -> InForce:
        """The kill switch off."""
        return self._operate(product, "revive")

    def rollback(self, product: Product, policy: str | None) -> InForce:
        """Back to an earlier policy whose certificate stood; None means the last one before the
        present.
        """
        certified = list(certified_ids(self.desk.ledger, product))
        earlier = [found for found in certified if found != self.desk.in_force(product).policy.id]
        if policy is None and earlier:
            policy = earlier[-1]
        if policy is None or policy not in certified:
            raise Invalid(
                f"the policy named for the rollback is none of this product's policies that were certified under rules {RULES}.",
                hint="GET /v1/policies lists them, with the rules of each.",
            )
        return self._operate(product, "rollback", policy)

    def shadow(self, product: Product) -> InForce:
        """Decide and log, do not act."""
        return self._operate(product, "shadow")

    def live(self, product: Product) -> InForce:
        """Shadow mode off."""
        return self._operate(product, "live")

    def _operate(self, product: Product, action: str, policy: str | None = None) -> InForce:
        self.desk.ledger.operate(product.tenant, product.name, action, self.by, self.note, policy)
        return self.desk.refresh(product)
