"""Somebody with the database and without the keyring: what becomes of doctored ledgers in packs,
and of people who were exchanged.
"""

import asyncio
import contextlib
import shutil

from service.tests.bank import KEYRING, LOAN, Clock
from service.tests.doctorings import DOCTORINGS, begun, doctored
from service.tests.exchanged import exchange
from service.tests.torture.integrity import places
from service.tests.torture.kills import reopened
from service.tests.torture.serving import Process, application, folder

from evenhand_service import audit_pack
from evenhand_service.audit_pack import Period, pack
from evenhand_service.ledger import Damaged, Ledger, standalone_verifier
from evenhand_service.ledger.audit import Verification

# packs of doctored ledgers


def doctored_packs(quick, kind="real"):
    """Each doctoring by name: a pack is refused, and one with problems has them in its signed list,
    which the stand-alone verifier repeats. The mutant signs whatever it finds.
    """
    place = folder()
    source = begun(place / "sound.sqlite")
    verify = audit_pack.verify
    if kind == "signs anything":
        audit_pack.verify = lambda ledger, deep: Verification(0, ledger.head(), ())
        Ledger.signed_head = lambda self: self.sign_head(self.head())
    signed, unseen = [], []
    try:
        for number, name in enumerate(DOCTORINGS):
            path = place / f"{number}.sqlite"
            shutil.copyfile(source, path)
            doctored(path, name)
            with Ledger.open(path, keyring=KEYRING, clock=Clock()) as ledger:
                for problems in (False, True):
                    target = place / f"{number}-{problems}"
                    try:
                        pack(ledger, LOAN, Period(0.0, 1e12), target, with_problems=problems)
                    except Damaged:
                        continue
                    signed += [] if problems else [name]
                    words = [str(target / "ledger.jsonl"), "--pack", str(target / "pack.json")]
                    unseen += [] if standalone_verifier.main(words) else [name]
    finally:
        audit_pack.verify = verify
    figure = f"{len(DOCTORINGS)} doctorings: {len(signed)} signed as sound, {len(set(unseen))} "
    return (
        "0 signed as sound, 0 unseen by the auditor",
        figure + "unseen by the stand-alone verifier",
        not signed and not unseen and len(DOCTORINGS) >= 20,
    )


# people who were exchanged


async def _asked(process, people):
    """How many of them were served, explained or erased."""
    client, got = process.client(), {"served": 0, "explained": 0, "erased": 0}
    for i in range(people):
        found = await client.get(f"/v1/decisions/k{i}")
        got["served"] += found is not None and found[0] == 200
    for i in range(min(people, 500)):
        found = await client.get(f"/v1/decisions/k{i}/explanation")
        got["explained"] += found is not None and found[0] == 200
    for i in range(min(people, 500)):
        found = await client.post("/v1/erasures", {"person": f"p{i}", "by": "officer"})
        got["erased"] += found is not None and found[0] == 200
    client.close()
    return got


def _given(place):
    """How many decisions a trainer is given by the ledger."""
    number = 0
    with reopened(place) as ledger, contextlib.suppress(Damaged):
        for _ in ledger.history("loan"):
            number += 1
    return number


async def _applied(process, people):
    client = process.client()
    for start in range(0, people, 500):
        numbers = range(start, min(start + 500, people))
        batch = [application(f"k{i}", f"p{i}") for i in numbers]
        found = await client.post("/v1/decisions/batch", {"decisions": batch})
        assert found[0] == 200
    client.close()


def exchanged_people(quick, kind="real"):
    """(people.key, personal.sealed) of everybody are those of the next person, on both databases:
    nobody is served, explained, erased or learned from. The mutant looks at neither the fingerprint
    in the chain nor the person of a key.
    """
    people, told, held = 40 if quick else 4000, [], True
    with places() as found:
        for name, where, more in found:
            process = Process(folder(), kind, more=more, train_every=3600)
            with process.running():
                asyncio.run(_applied(process, people))
                moved = exchange(where or process.folder / "ledger.sqlite")
                got = asyncio.run(_asked(process, people))
            got["given to a trainer"] = _given(process.folder)
            held &= moved == people and not any(got.values())
            words = ", ".join(f"{number} {what}" for what, number in got.items())
            told.append(f"{name}: of {moved} exchanged {words}")
    target = "0 served, explained, erased or learned from"
    return target, "; ".join(told), held and len(told) == 2
