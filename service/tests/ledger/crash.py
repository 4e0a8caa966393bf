"""Kill a writer with SIGKILL, again and again, and compare what it had acknowledged with what the
ledger holds afterwards.

    python -m service.tests.ledger.crash KILLS DIRECTORY [--mutant]

One process without threads forks the writers, so that a run costs milliseconds. A writer has eight
clients; each of them reports an answer through a pipe as soon as it has it, in one write of less
than PIPE_BUF bytes. The kill comes when so many answers have been reported, however long that
takes; what the clients are doing then is left to chance. The mutant delivers its results before the
commit.
"""

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

from service.tests.ledger.helpers import Clock, opened, person, published

from evenhand_service.ledger import Ledger, Terms, verify
from evenhand_service.ledger.chain import Job, Transaction, Writer, deliver, perform

CLIENTS = 8
MOST = 100
"""Answers that are awaited before a kill, at most."""
LATE = 1000
"""Answers that the mutant gives without a commit: more than any run that is killed after MOST of
them.
"""


class Hasty(Writer):
    """The mutant: it answers who asked, and commits when it has given LATE answers. A kill before
    that loses them all, on any machine.
    """

    def _transact(self, connection, jobs: list[Job]) -> None:
        given, closing = 0, False
        with connection.begin():
            while True:
                transaction = Transaction(connection, self._guard)
                perform(transaction, jobs, self._drawer)
                transaction.flush()
                self.basis = transaction.basis
                deliver([job for job in jobs if job.asked])
                given += sum(len(job.asked) for job in jobs)
                if closing or given >= LATE or any(job.work is not None for job in jobs):
                    break
                jobs, closing = self._take()
        deliver(jobs)
        if closing:
            self._jobs.put(None)


class HastyLedger(Ledger):
    writer_class = Hasty


def answer_until_killed(path, policy, run, pipe, mutant):
    """A run of a writer: answer until killed. Every tenth request repeats an older key; every
    fourth one of the real writer is a batch, in which the first key comes again at the end.
    """
    ledger = opened(path, Clock(1_800_000_000.0 + run), kind=HastyLedger if mutant else Ledger)

    def ask(client):
        generator = random.Random(f"{run}/{client}")
        for number in range(10**9):
            old = run > 0 and generator.random() < 0.1
            name = (
                f"{generator.randrange(run)}-{client}-{generator.randrange(3)}"
                if old
                else f"{run}-{client}-{number}"
            )
            names = [name]
            if not mutant and generator.random() < 0.25:
                names += [f"{name}-{place}" for place in range(generator.randint(1, 40))] + [name]
            asked = [(person(name), Terms(policy, 0.5)) for name in names]
            for answer in ledger.decide_many(asked):
                line = json.dumps([answer.drawn.key, answer.body.decode()])
                os.write(pipe, line.encode() + b"\n")

    for client in range(CLIENTS):
        threading.Thread(target=ask, args=(client,), daemon=True).start()
    signal.pause()


def one_run(path, policy, run, generator, mutant):
    """Fork a writer, wait for some answers, kill it; all that it had acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer_until_killed(path, policy, run, writing, mutant)
        finally:
            os._exit(1)
    os.close(writing)
    acknowledged, enough = b"", generator.randint(1, MOST)
    while acknowledged.count(b"\n") < enough and (part := os.read(reading, 65536)):
        acknowledged += part
    os.kill(child, signal.SIGKILL)
    while part := os.read(reading, 1 << 20):
        acknowledged += part
    os.close(reading)
    os.waitpid(child, 0)
    return [json.loads(line) for line in acknowledged.split(b"\n") if line.endswith(b"]")]


def check(path, acknowledged, stored):
    """(lost, changed) among what was acknowledged; `stored` remembers every answer ever seen."""
    lost = changed = 0
    with opened(path, Clock(1_900_000_000.0)) as ledger:
        for key, body in acknowledged:
            changed += stored.setdefault(key, body) != body
            try:
                changed += ledger.find(key).body.decode() != body
            except Exception:  # noqa: BLE001 - whatever it is, the answer is not there
                lost += 1
    return lost, changed


def double_draws(path):
    """Keys with two rows, and people with two coins in one window."""
    with (
        opened(path, Clock(1_900_000_000.0)) as ledger,
        ledger.store.reader.connect() as connection,
    ):
        assert verify(ledger, deep=True).ok
        rows = connection.exec_driver_sql("SELECT key, slot, body FROM decisions").all()
    draws = {}
    for _, slot, body in rows:
        draws.setdefault(slot, set()).add(json.loads(body)["u"])
    return len(rows) - len({row[0] for row in rows}) + sum(len(us) - 1 for us in draws.values())


def main(kills, directory, mutant):
    path, generator, stored = Path(directory) / "ledger.sqlite", random.Random(1), {}
    with opened(path) as ledger:
        policy = published(ledger)
    found = {"kills": kills, "acknowledged": 0, "lost": 0, "changed": 0}
    for run in range(kills):
        acknowledged = one_run(path, policy, run, generator, mutant)
        lost, changed = check(path, acknowledged, stored)
        found["acknowledged"] += len(acknowledged)
        found["lost"] += lost
        found["changed"] += changed
    print(json.dumps(found | {"double": double_draws(path)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], "--mutant" in sys.argv)
