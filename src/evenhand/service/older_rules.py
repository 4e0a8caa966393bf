"""Certificates that were issued under older rules: shown as they were issued, marked so, with the
doors that may concern each of them.

Nothing is computed again under the rules of now. A door is a way by which data entered the
certificate that rules 2 have closed; whether it was used before a certificate was issued is on
record in the ledger, and that is all that is said here.
"""

from collections.abc import Iterator

from evenhand.contracts import Json
from evenhand.ledger import RULES, Ledger, Policy
from evenhand.service.config import Product


def marked(ledger: Ledger, product: Product, policy: Policy) -> Json:
    """{} for a policy of the rules of now; else the version of its rules, a sentence, and what may
    concern its certificate.
    """
    if policy.rules >= RULES:
        return {}
    return {
        "rules": policy.rules,
        "issued_under": f"issued under rules {policy.rules}; the rules of now are {RULES}",
        "may_concern": list(concerns(ledger, product, policy)),
    }


def concerns(ledger: Ledger, product: Product, policy: Policy) -> Iterator[str]:
    """The doors of rules 1 that had been used when the policy was published, in words; rules 2 have
    none.
    """
    if policy.rules > 1:
        yield "nothing: rules 3 brought a sharper bound, which cannot continue the sums of the one before"
        return
    names = (product.tenant, product.name)
    if policy.info.get("phase") == "frozen":
        yield (
            "the audit budget was spent: a policy that was called frozen could still change, and people whom a policy could not accept "
            "were left out"
        )
    overrides = ledger.count_overrides(*names, upto=policy.seq)
    if overrides:
        yield f"{overrides:,} overrides had been reported: the decisions concerned were left out of the certificate"
    if ledger.newest_erasure(*names, upto=policy.seq):
        yield (
            "people had been erased: they were left out, and everything was certified anew from those who were left, with the full "
            "failure probability again"
        )
    if product.groups is None:
        yield (
            "no groups were listed: a group that was not among the first people is outside, although the claim says any two groups"
        )
    if product.maturity is not None:
        yield (
            "labels have a maturity window: a label that came after it, but before the epoch closed, counted as come in the drift test, "
            "whose false alarms were therefore not bounded as stated"
        )
