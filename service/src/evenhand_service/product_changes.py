"""Whether a product of the settings is still the one that the ledger's policies were published for.

    guarantee stored with every published policy = guarantee of the settings

What is stored holds numbers by their place: the features of people, the columns of rules, the sums
by which a certificate is computed. The settings say what they mean: which feature stands where,
whose gap is limited, by how much. So all of that is stored with every policy, by name, and whoever
starts, decides, trains, or writes words about a policy compares it first (`require_unchanged`).
"""

from collections.abc import Iterable, Mapping

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand_service.ledger import PolicyRecord
from evenhand_service.settings import Product

SHOWN_AS = {"hypotheses": "class"}
"""Settings whose name in the file is another one."""
WAY_OUT = (
    "put the settings back; or give the changed product a name of its own (clients then send that "
    "name): it begins anew in the same ledger, with new coins and without evidence, and what the "
    "old one decided stays. model, trusted and the settings of [service] may change."
)


class GuaranteeChanged(EvenhandError):
    """The settings guarantee something else than the ledger was begun with."""


def require_unchanged(policies: Iterable[PolicyRecord], product: Product, public_key: str) -> None:
    """Compare a product with what its published policies say of it.

    Parameters
    ----------
    policies : iterable of PolicyRecord
        All of the product's. Those outside of the lineage (constants, variants) are passed over,
        and so are those that the ledger's key did not sign: nobody decides by them.
    product : Product
        As the settings have it.
    public_key : str
        The public key of the ledger, in hexadecimal.

    Raises
    ------
    GuaranteeChanged
        If a policy was published under another guarantee; every difference is named.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from evenhand_service.ledger import Keyring
    >>> keyring = Keyring.generate()
    >>> loan = Product("loan", ("score", "income"))
    >>> info = {"protocol_version": 1, "guarantee": loan.guarantee}
    >>> record = PolicyRecord("id", "loan", 3, None, {}, info, None, True, "")
    >>> published = replace(record, signature=keyring.sign(record.signed))
    >>> require_unchanged([published], loan, keyring.public_key)
    >>> require_unchanged([published], Product("loan", ("income", "score")), keyring.public_key)
    Traceback (most recent call last):
        ...
    evenhand_service.product_changes.GuaranteeChanged: product 'loan' is not the one ...
    """
    for policy in policies:
        if not policy.in_lineage or not _signed(policy, public_key):
            continue
        changes = differences(policy.info.get("guarantee", {}), product.guarantee)
        if changes:
            raise GuaranteeChanged(
                f"product {product.name!r} is not the one for which epoch {policy.epoch} was "
                f"published: {'; '.join(changes)}.",
                hint=WAY_OUT,
            )


def _signed(policy: PolicyRecord, public_key: str) -> bool:
    try:
        policy.verify(public_key)
    except EvenhandError:
        return False
    return True


def differences(stored: Mapping[str, object], settled: Mapping[str, object]) -> list[str]:
    """What was settled otherwise: "limit was 0.2 and is 0.3", in the order of the settings.

    Parameters
    ----------
    stored, settled : dict
        The guarantee of a policy, and that of the settings.

    Returns
    -------
    list of str
        Empty if they are the same; 5 and 5.0 are.

    Examples
    --------
    >>> before = Product("loan", ("score",), limit=0.2).guarantee
    >>> differences(before, Product("loan", ("score",), limit=0.3).guarantee)
    ['limit was 0.2 and is 0.3']
    """
    names = [*settled, *(name for name in stored if name not in settled)]
    return [
        f"{SHOWN_AS.get(name, name)} was {_shown(stored, name)} and is {_shown(settled, name)}"
        for name in names
        if canonical(stored.get(name)) != canonical(settled.get(name))
    ]


def _shown(settled: Mapping[str, Json | object], name: str) -> str:
    value = settled.get(name)
    return "not set" if value is None else canonical(value)
