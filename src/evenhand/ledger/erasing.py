"""Erasing a person inside a transaction: the key is destroyed, the sealed fields are emptied, and
the chain says which rows they were.

The chain's commitments stay as they are, so it stays valid; without salt and key they say nothing.
The erasure itself names no person.
"""

from sqlalchemy import select, update

from evenhand.ledger.chain import Transaction
from evenhand.ledger.database import KINDS, PEOPLE, PERSONAL
from evenhand.ledger.decision_draw import person_digest
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.refusals import NotFound


def erase(transaction: Transaction, keyring: Keyring, tenant: str, person: str, by: str) -> int:
    """How many decisions were erased; NotFound if there is nothing to erase."""
    lookup = person_digest(keyring, tenant, person)
    people = transaction.rows(
        select(PEOPLE.c.id).where(PEOPLE.c.lookup == lookup, PEOPLE.c.key.is_not(None))
    )
    if not people:
        raise NotFound(
            "nothing is stored about this person.",
            hint="check the tenant and the person's identifier.",
        )
    number = people[0].id
    mine = select(PERSONAL.c.seq).where(PERSONAL.c.person == number, PERSONAL.c.sealed.is_not(None))
    rows = [row.seq for row in transaction.rows(mine.order_by(PERSONAL.c.seq))]
    decisions = KINDS["decision"]
    decided = len(transaction.rows(select(decisions.c.seq).where(decisions.c.seq.in_(rows))))
    transaction.append("erasure", {"rows": rows, "by": by})
    transaction.connection.execute(
        update(PERSONAL).where(PERSONAL.c.person == number).values(sealed=None)
    )
    transaction.connection.execute(update(PEOPLE).where(PEOPLE.c.id == number).values(key=None))
    return decided
