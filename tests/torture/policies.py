"""Policies change under load, four trainers race for every epoch, and nothing that was changed is loaded or goes unnoticed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from sqlalchemy import select
from tests.ledger import conftest as postgres
from tests.ledger.damage import DAMAGES, keep, missed
from tests.service.bank import DAY, KEYRING, LOAN
from tests.service.bank import application as asked
from tests.service.lives import closings, live, played_by_the_library
from tests.torture.identity import bank
from tests.torture.serving import ROOT, folder

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.ledger import Ledger, Policy, WindowPlan, recompute, verify
from evenhand.ledger.schema import LEASES
from evenhand.policies import Mixture
from evenhand.service import Trainer
from evenhand.service.in_force import load

# swaps


def _mixture(number):
    """No two of them alike, and none a constant: acceptance depends on the score and on the number."""
    weight = 0.1 + 0.8 * (number % 97) / 97
    rule = Threshold(0, 0.01 * (number % 89), 1)
    return Mixture((rule, ACCEPT_ALL, REJECT_ALL), (weight, (1 - weight) / 3, 2 * (1 - weight) / 3))


def swaps_under_load(quick):
    made, swaps, requests = bank(), 10 if quick else 100, 500 if quick else 10_000
    done, used = threading.Event(), set()

    def swap():
        newest = closings(made)[-1]
        for number in range(swaps):
            document = _mixture(number).to_json()
            newest = made.ledger.publish(
                "bank", "loan", document, epoch=newest.epoch + 1, parent=newest.id, checkpoint={}
            )
            made.service.desk.refresh(LOAN)
            if number % 10 == 9:
                for action in ("shadow", "kill", "revive", "live"):
                    made.post(f"/v1/{action}", {"product": "loan", "by": "op"})
            time.sleep(0.0 if quick else 0.15)
        done.set()

    def ask(client):
        answered = 0
        while not done.is_set() or answered < requests // 4:
            body = {"decisions": [asked(f"{client}-{answered + i}", features=[i / 25]) for i in range(25)]}
            answers = made.post("/v1/decisions/batch", body).json()["decisions"]
            answers.append(made.post("/v1/decisions", asked(f"{client}-{answered}-s", features=[0.3])).json())
            used.update(answer["policy"] for answer in answers)
            answered += len(answers)
        return answered

    thread = threading.Thread(target=swap)
    thread.start()
    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(ask, range(4)))
    thread.join()
    checked = recompute(made.ledger, "bank", "loan")
    made.close()
    figure = (
        f"{swaps} swaps under {total:,} requests, {len(used)} policies decided; {checked:,} propensities recomputed"
    )
    return (
        "every propensity recomputes from its row's policy",
        figure,
        checked == total >= requests and len(used) > swaps // 2,
    )


# four trainers


@contextlib.contextmanager
def database():
    """The URL of a fresh PostgreSQL database, or None where there is no PostgreSQL."""
    if postgres._postgres_tools() is None:
        yield None
        return
    import psycopg

    with contextlib.contextmanager(postgres.postgres_server.__wrapped__)() as server:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE torture")
        yield f"{server}/torture"


LEASE = 1.0


def opened(url):
    return Ledger.open(url, keyring=KEYRING, clock=time.time, windows=WindowPlan(30 * DAY))


def train(url, holder, epochs):
    """One of the four: close epochs as fast as the others allow; {what happened: how often}."""
    met = {}
    with opened(url) as ledger:
        trainer = Trainer(ledger, LOAN, holder, lease_seconds=LEASE)
        while closings_of(ledger)[-1].epoch < int(epochs):
            try:
                trainer.close()
                what = "published"
            except Exception as refusal:  # noqa: BLE001 - the loser of a race
                what = type(refusal).__name__
                time.sleep(0.01)
            met[what] = met.get(what, 0) + 1
    print(json.dumps(met))


def closings_of(ledger):
    return [p for p in ledger.policies("bank", "loan") if p.in_lineage]


def _holder(ledger):
    with ledger.store.reader.connect() as connection:
        return connection.execute(select(LEASES.c.holder)).scalar_one_or_none()


def four_trainers(quick):
    target, epochs = "one publication per epoch", 30 if quick else 100
    with database() as url:
        if url is None:
            return target, "PostgreSQL is absent: apt-get install postgresql", False
        with opened(url) as ledger:
            Trainer(ledger, LOAN, "first", lease_seconds=LEASE).begin()
            return target, *_race(ledger, url, epochs, pauses=2 if quick else 10)


def _race(ledger, url, epochs, pauses):
    words = [sys.executable, "-m", "tests.torture.policies", url]
    names = [f"trainer-{i}" for i in range(4)]
    running = {
        name: subprocess.Popen([*words, name, str(epochs)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for name in names
    }
    slept = 0
    while slept < pauses and any(process.poll() is None for process in running.values()):
        time.sleep(0.03)
        process = running.get(_holder(ledger) or "")
        if process is None or process.poll() is not None:
            continue
        os.kill(process.pid, signal.SIGSTOP)  # with the lease in hand, and with luck in the middle of a closing
        time.sleep(2 * LEASE)
        os.kill(process.pid, signal.SIGCONT)
        slept += 1
    met = {}
    for process in running.values():
        for what, number in json.loads(process.communicate()[0]).items():
            met[what] = met.get(what, 0) + number
    found = closings_of(ledger)
    linked = all(b.parent == a.id and b.epoch == a.epoch + 1 for a, b in pairwise(found))
    told = ", ".join(f"{number} {what}" for what, number in sorted(met.items()))
    figure = f"{len(found)} epochs, {len({p.epoch for p in found})} distinct, {slept} pauses of a holder ({told})"
    return figure, linked and verify(ledger).ok and len(found) >= epochs and slept > 0


# what was changed


def flipped_bytes(quick):
    made = bank()
    live(made, 2 if quick else 4)
    policy, key = closings(made)[-1], made.ledger.keyring.public_key
    text = json.dumps(policy.signed | {"signature": policy.signature}).encode()
    loads, tried = 0, 0
    for place in range(len(text)):
        for bit in (place % 8,) if quick else range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            tried += 1
            try:
                read = Policy.from_body(policy.seq, json.loads(changed))
                load(read, key)
                loads += read != policy
            except Exception:  # noqa: BLE001 - whatever refuses it is fine
                continue
    load(Policy.from_body(policy.seq, json.loads(text)), key)
    made.close()
    return "0 loads", f"{tried:,} flips in {len(text):,} bytes: {loads} loads", loads == 0


def damaged_logs(quick):
    place, each = folder(), 3 if quick else 200
    kept = keep(place / "kept.sqlite")
    unseen = {
        damage.__name__: missed(kept, place / "damaged.sqlite", damage, range(1000, 1000 + each)) for damage in DAMAGES
    }
    number = sum(map(len, unseen.values()))
    figure = f"{each * len(DAMAGES):,} damages ({', '.join(unseen)}): {number} not detected"
    return "100% detected", figure, number == 0


# the library


def service_and_library(quick):
    made = bank()
    live(made, 5 if quick else 10)
    published = {p.epoch: p.document for p in closings(made)}
    certificates = {row.epoch: row.document for row in made.ledger.certificates("bank", "loan")}
    played, different = played_by_the_library(made.ledger)
    same = sum((published[e], certificates[e]) == found for e, found in played.items())
    rebuilt = Trainer(made.ledger, LOAN, "auditor")
    rebuilt.catch_up()
    last = max(published)
    again = (rebuilt.learner.policy.to_json(), rebuilt.learner.certificate.to_json()) == (
        published[last],
        certificates[last],
    )
    people = made.ledger.counts("bank", "loan").usable
    made.close()
    figure = (
        f"{people:,} people: {same} of {len(played)} policies and certificates equal, {different} decisions differ; "
        f"rebuilt from the ledger: {'equal' if again else 'DIFFERENT'}"
    )
    return "the same policies and certificates, bit for bit", figure, same == len(played) and different == 0 and again


if __name__ == "__main__":
    train(*sys.argv[1:])
