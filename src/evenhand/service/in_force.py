"""Which policy decides: verified before it is loaded, and what takes its place if it does not
verify.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import RULES, Damaged, Ledger, Mode, Policy
from evenhand.policies import Mixture
from evenhand.service.config import Product

Constant = Literal["accept", "reject"]


@dataclass(frozen=True)
class InForce:
    """A loaded policy with the terms under which it decides.

    A request keeps the one that it started with.
    """

    policy: Policy
    mixture: Mixture
    mode: Mode
    reason: str

    @cached_property
    def audit_weight(self) -> float:
        """The weight of accept-all: the coin that ignores the person."""
        return weight_of(self.mixture, accept=True)

    @property
    def learned_weight(self) -> float:
        """What is no constant."""
        return max(1.0 - self.audit_weight - weight_of(self.mixture, accept=False), 0.0)


def weight_of(mixture: Mixture, *, accept: bool) -> float:
    """The weight of one constant."""
    wanted = ACCEPT_ALL if accept else REJECT_ALL
    return sum(w for h, w in zip(mixture.hypotheses, mixture.weights, strict=True) if h == wanted)


def constant_json(constant: Constant, product: Product) -> Json:
    """Accept or reject everybody, as a policy."""
    rule = ACCEPT_ALL if constant == "accept" else REJECT_ALL
    return Mixture((rule,), (1.0,), product.group_use).to_json()


def register_constants(ledger: Ledger, product: Product) -> dict[str, str]:
    """The ids of the two constants; they are registered if this product has none yet."""
    found = {
        p.info.get("constant"): p.id
        for p in ledger.policies(product.tenant, product.name)
        if not p.in_lineage
    }
    for constant in ("accept", "reject"):
        if constant not in found:
            document = constant_json("accept" if constant == "accept" else "reject", product)
            found[constant] = ledger.register(
                product.tenant, product.name, document, {"constant": constant}
            ).id
    return {"accept": str(found["accept"]), "reject": str(found["reject"])}


def load(policy: Policy, public_key: str) -> Mixture:
    """The mixture, if every byte of the record is signed by the ledger's key; Damaged or
    InvalidInput otherwise.
    """
    if policy.signature != policy.signature.lower():
        raise Damaged(
            "the signature is not written as it was made."
        )  # the same number in capitals is another record
    policy.verify(public_key)
    return policy_from_json(policy.document)


def certified_ids(ledger: Ledger, product: Product) -> dict[str, Json]:
    """policy id -> certificate, of the policies whose certificate stood when they were published,
    under the rules of now.
    """
    standing = {
        row.epoch: row.document for row in ledger.certificates(product.tenant, product.name)
    }
    return {
        policy.id: standing[policy.epoch]
        for policy in ledger.policies(product.tenant, product.name)
        if policy.in_lineage
        and policy.rules == RULES
        and standing.get(policy.epoch, {}).get("status") == "certified"
    }


def find(ledger: Ledger, product: Product) -> InForce:
    """What is active; if it does not verify, the last certified policy that does, else the
    configured constant.
    """
    active = ledger.active(product.tenant, product.name)
    policies = ledger.policies(product.tenant, product.name)
    mode: Mode = "live" if active is None else active.mode
    if active is not None:
        mixture = _loaded(active.policy, ledger)
        if mixture is not None:
            return InForce(active.policy, mixture, mode, active.reason)
    certified = certified_ids(ledger, product)
    for policy in reversed([p for p in policies if p.in_lineage and p.id in certified]):
        mixture = _loaded(policy, ledger)
        if mixture is not None:
            return InForce(policy, mixture, mode, "fall-back: the newest policy does not verify")
    wanted = register_constants(ledger, product)[product.fallback]
    registered = [p for p in ledger.policies(product.tenant, product.name) if not p.in_lineage]
    constant = next(p for p in registered if p.id == wanted)
    return InForce(
        constant,
        load(constant, ledger.keyring.public_key),
        "killed",
        "fall-back: no policy verifies",
    )


def _loaded(policy: Policy, ledger: Ledger) -> Mixture | None:
    try:
        return load(policy, ledger.keyring.public_key)
    except EvenhandError:
        return None
