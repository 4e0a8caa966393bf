"""Policies change under load, four trainers race for every epoch, and nothing that was changed is
loaded or goes unnoticed.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing.util import Finalize
from pathlib import Path

from service.tests.bank import DAY, KEYRING, LOAN
from service.tests.bank import application as asked
from service.tests.ledger import conftest as postgres
from service.tests.ledger.damage import DAMAGES, keep, missed
from service.tests.ledger.helpers import recomputed
from service.tests.simulated_run import closings, played_by_the_library, run_epochs
from service.tests.torture.identity import bank
from service.tests.torture.serving import ROOT, folder
from tests.tools import need
from tests.without_clocks import PATIENCE, until

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture
from evenhand_service import Trainer
from evenhand_service.decider import verified_mixture
from evenhand_service.ledger import LeaseHeld, Ledger, PolicyRecord, WindowPlan, verify

# swaps


def _mixture(number):
    """No two of them alike, and none a constant:
    acceptance depends on the score and on the number.
    """
    weight = 0.1 + 0.8 * (number % 97) / 97
    rule = Threshold(0, 0.01 * (number % 89), 1)
    return Mixture((rule, ACCEPT_ALL, REJECT_ALL), (weight, (1 - weight) / 3, 2 * (1 - weight) / 3))


def swaps_under_load(quick):
    """The next swap comes when the policy of the last one has decided about somebody, and its share
    of the requests has been answered.
    """
    made, swaps, requests = bank(), 10 if quick else 100, 500 if quick else 10_000
    done, news, used, total = threading.Event(), threading.Condition(), set(), 0

    def swap():
        newest = closings(made)[-1]
        for number in range(swaps):
            document = _mixture(number).to_json()
            newest = made.ledger.publish(
                "loan", document, epoch=newest.epoch + 1, parent=newest.id, checkpoint={},
                info={"guarantee": LOAN.guarantee},
            )  # fmt: skip
            made.service.decider.refresh(LOAN)
            if number % 10 == 9:
                for action in ("shadow", "kill", "revive", "live"):
                    made.post(f"/v1/{action}", {"product": "loan", "by": "op"})
            share = (number + 1) * requests // swaps
            with news:
                if not news.wait_for(
                    lambda id=newest.id, share=share: id in used and total >= share, PATIENCE
                ):
                    break
        done.set()

    def ask(client):
        nonlocal total
        answered = 0
        while not done.is_set():
            body = {
                "decisions": [
                    asked(f"{client}-{answered + i}", features=[i / 25]) for i in range(25)
                ]
            }
            answers = made.post("/v1/decisions/batch", body).json()["decisions"]
            answers.append(
                made.post("/v1/decisions", asked(f"{client}-{answered}-s", features=[0.3])).json()
            )
            answered += len(answers)
            with news:
                used.update(answer["policy"] for answer in answers)
                total += len(answers)
                news.notify()

    thread = threading.Thread(target=swap)
    thread.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    thread.join()
    checked = recomputed(made.ledger, "loan")
    made.close()
    figure = (
        f"{swaps} swaps under {total:,} requests, {len(used)} policies decided; "
        f"{checked:,} propensities recomputed"
    )
    return (
        "every propensity recomputes from its row's policy",
        figure,
        checked == total >= requests and len(used) >= swaps,
    )


# four trainers


@cache
def _server():
    """One server for all rows of this process, which ends with it."""
    stack = contextlib.ExitStack()
    Finalize(None, stack.close, exitpriority=10)
    made = contextlib.contextmanager(postgres.postgres_server.__wrapped__)()
    return stack.enter_context(made)


NUMBERS = itertools.count()


@contextlib.contextmanager
def database():
    """The URL of a fresh PostgreSQL database."""
    need("postgresql")
    import psycopg

    server, name = _server(), f"torture_{next(NUMBERS)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


LEASE = 60.0


class SharedClock:
    """One clock for several processes, in a file.

    It is turned by hand, so that a lease expires when the test says so.
    """

    def __init__(self, path):
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)

    def __call__(self):
        return 1_800_000_000.0 + int.from_bytes(os.pread(self._file, 8, 0), "little")

    def turn(self):
        """To where every lease has expired that is held now."""
        turned = int.from_bytes(os.pread(self._file, 8, 0), "little") + 2 * int(LEASE)
        os.pwrite(self._file, turned.to_bytes(8, "little"), 0)


def opened(url, place):
    return Ledger.open(
        url, keyring=KEYRING, clock=SharedClock(place / "clock"), windows=WindowPlan(30 * DAY)
    )


def train(url, place, holder, epochs):
    """One of the four: close epochs as fast as the others allow; {what happened: how often}. In the
    middle of every third closing it stops itself with the lease in its hand, unless somebody else
    has stopped, or enough have."""
    met, number = {}, 0
    with opened(url, Path(place)) as ledger:
        publish = ledger.publish

        def pause_and_publish(*words, **options):
            nonlocal number
            number += 1
            if number % 3 == 0:
                with contextlib.suppress(FileExistsError):
                    (Path(place) / "pause").touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGSTOP)
            return publish(*words, **options)

        ledger.publish = pause_and_publish
        trainer = Trainer(ledger, LOAN, holder, lease_seconds=LEASE)
        while closings_of(ledger)[-1].epoch < int(epochs):
            now, what = ledger.clock(), "published"
            try:
                trainer.close()
            except LeaseHeld:
                what = "LeaseHeld"
                until(lambda now=now: ledger.clock() > now, "the end of a lease")
            except Exception as refusal:  # noqa: BLE001 - the loser of a race
                what = type(refusal).__name__
            met[what] = met.get(what, 0) + 1
    print(json.dumps(met))


def closings_of(ledger):
    return [p for p in ledger.policies("loan") if p.in_lineage]


def four_trainers(quick):
    target, epochs, place = "one publication per epoch", 30 if quick else 100, folder()
    with database() as url, opened(url, place) as ledger:
        Trainer(ledger, LOAN, "first", lease_seconds=LEASE).begin()
        return target, *_race(ledger, url, place, epochs, pauses=2 if quick else 10)


def _race(ledger, url, place, epochs, pauses):
    """The clock is turned once for each epoch, so that a lease expires in the middle of whatever
    its holder does, and yet everybody gets on; and once when somebody has stopped, who is woken
    when another one has published."""
    words = [sys.executable, "-m", "service.tests.torture.policies", url, str(place)]
    running = [
        subprocess.Popen(
            [*words, f"trainer-{i}", str(epochs)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for i in range(4)
    ]
    turned, slept, stopped = 0, 0, []

    def newest():
        return closings_of(ledger)[-1].epoch

    def news():
        stopped.extend(_stopped(running))
        return stopped or newest() > turned or not _alive(running)

    def overtaken():
        return newest() > turned or not _alive(
            [process for process in running if process.pid not in stopped]
        )

    while until(news, "an epoch, a pause or the end") and _alive(running):
        turned = newest()
        ledger.clock.turn()
        if stopped:
            until(overtaken, "a publication by another trainer")
            slept += 1
            if slept < pauses:
                (place / "pause").unlink()
            os.kill(stopped.pop(), signal.SIGCONT)
    met = {}
    for process in running:
        for what, number in json.loads(process.communicate()[0]).items():
            met[what] = met.get(what, 0) + number
    found = closings_of(ledger)
    linked = all(b.parent == a.id and b.epoch == a.epoch + 1 for a, b in pairwise(found))
    told = ", ".join(f"{number} {what}" for what, number in sorted(met.items()))
    figure = (
        f"{len(found)} epochs, {len({p.epoch for p in found})} distinct, "
        f"{slept} pauses of a holder ({told})"
    )
    fenced = met.get("StalePolicy", 0) >= slept > 0
    return figure, linked and verify(ledger).ok and len(found) >= epochs and fenced


def _alive(running):
    return any(process.poll() is None for process in running)


def _stopped(running):
    """The numbers of those who have stopped themselves since it was last asked."""
    found = []
    for process in running:
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG) is not None:
                found.append(process.pid)
    return found


# what was changed


def flipped_bytes(quick):
    made = bank()
    run_epochs(made, 2 if quick else 4)
    policy, key = closings(made)[-1], made.ledger.keyring.public_key
    text = json.dumps(policy.signed | {"signature": policy.signature}).encode()
    loads, tried = 0, 0
    for place in range(len(text)):
        for bit in (place % 8,) if quick else range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            tried += 1
            try:
                read = PolicyRecord.from_body(policy.seq, json.loads(changed))
                verified_mixture(read, key)
                loads += read != policy
            except Exception:  # noqa: BLE001 - whatever refuses it is fine
                continue
    verified_mixture(PolicyRecord.from_body(policy.seq, json.loads(text)), key)
    made.close()
    return "0 loads", f"{tried:,} flips in {len(text):,} bytes: {loads} loads", loads == 0


def damaged_logs(quick):
    place, each = folder(), 3 if quick else 200
    kept = keep(place / "kept.sqlite")
    unseen = {
        damage.__name__: missed(kept, place / "damaged.sqlite", damage, range(1000, 1000 + each))
        for damage in DAMAGES
    }
    number = sum(map(len, unseen.values()))
    figure = f"{each * len(DAMAGES):,} damages ({', '.join(unseen)}): {number} not detected"
    return "100% detected", figure, number == 0


# the library


def service_and_library(quick):
    made = bank()
    run_epochs(made, 5 if quick else 10)
    published = {p.epoch: p.document for p in closings(made)}
    certificates = {row.epoch: row.document for row in made.ledger.certificates("loan")}
    played, different = played_by_the_library(made.ledger)
    same = sum((published[e], certificates[e]) == found for e, found in played.items())
    rebuilt = Trainer(made.ledger, LOAN, "auditor")
    rebuilt.catch_up()
    last = max(published)
    again = (rebuilt.learner.policy.to_json(), rebuilt.learner.certificate.to_json()) == (
        published[last],
        certificates[last],
    )
    people = made.ledger.counts("loan").usable
    made.close()
    figure = (
        f"{people:,} people: {same} of {len(played)} policies and certificates equal, "
        f"{different} decisions differ; "
        f"rebuilt from the ledger: {'equal' if again else 'DIFFERENT'}"
    )
    return (
        "the same policies and certificates, bit for bit",
        figure,
        same == len(played) and different == 0 and again,
    )


if __name__ == "__main__":
    train(*sys.argv[1:])
