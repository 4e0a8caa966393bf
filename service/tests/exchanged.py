"""Somebody with the least-privileged role of the database, and without the keyring, exchanges
people: their wrapped keys together with all that is sealed under them. Both columns may be updated
by that role, because an erasure empties them.
"""

from service.tests.bank import application
from service.tests.doctorings import Intruder


def exchange(where, *, keys=True, sealed=True, most=10**9):
    """Everybody gets the key and the sealed decision of the next person; how many they are."""
    intruder = Intruder(where)
    asked = (
        "SELECT people.id, people.key, personal.seq, personal.sealed FROM people "
        "JOIN personal ON personal.person = people.id "
        "JOIN decisions ON decisions.seq = personal.seq "
        "WHERE people.key IS NOT NULL ORDER BY people.id"
    )
    people = intruder.all(asked)[:most]
    for (number, _, row, _), (_, key, _, data) in zip(people, people[1:] + people[:1], strict=True):
        if keys:
            intruder.run("UPDATE people SET key = ? WHERE id = ?", key, number)
        if sealed:
            intruder.run("UPDATE personal SET sealed = ? WHERE seq = ?", data, row)
    intruder.done()
    return len(people)


def got_through(bank, numbers):
    """What the service did for people who were exchanged, by what was asked; nothing should be."""
    found = {"served": 0, "replayed": 0, "drawn": 0, "explained": 0, "reported": 0, "erased": 0}
    for i in numbers:
        again = application(f"k{i}", features=[0.5], group="north")
        anew = application(f"new{i}", person=f"p-k{i}")
        told = {"key": f"k{i}", "label": 1}
        found["served"] += bank.get(f"/v1/decisions/k{i}").status_code == 200
        found["replayed"] += bank.post("/v1/decisions", again).status_code in (200, 409)
        found["drawn"] += bank.post("/v1/decisions", anew).status_code == 200
        explained = bank.get(f"/v1/decisions/k{i}/explanation")
        found["explained"] += explained.status_code == 200
        found["reported"] += bank.post("/v1/outcomes", told).status_code == 200
        erased = bank.post("/v1/erasures", {"person": f"p-k{i}", "by": "officer"})
        found["erased"] += erased.status_code == 200
    return found


def learned(bank):
    """Whether a closing went through: (status, epochs published by it)."""
    before = len(bank.ledger.policies("loan"))
    bank.clock.now += 40 * 86400.0
    status = bank.post("/v1/train", {"product": "loan", "by": "op"}).status_code
    return status, len(bank.ledger.policies("loan")) - before
