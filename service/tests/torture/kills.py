"""kill -9 under load, at the ledger and over HTTP; and the system calls of an answer in their
order.
"""

import asyncio
import json
import random
import re
import subprocess
import sys

from service.tests.torture.serving import ROOT, Process, application, folder
from tests.tools import need_trace
from tests.without_clocks import PATIENCE

from evenhand_service.ledger import verify
from evenhand_service.ledger.decision_draw import key_digest
from evenhand_service.opening import open_keyring, open_ledger
from evenhand_service.settings import load_settings

CLIENTS = 16
MOST = 200
"""Keys that are answered in a run before the kill, at most."""


def reopened(place):
    """The ledger of a service that is not running."""
    import time

    return open_ledger(load_settings(place / "service.toml"), time.time)


# over HTTP


async def _run_until_killed(process, run, chosen, acknowledged):
    """(answers of this run, wrong ones): first what the run before was answered, then new and old
    keys at once, until the kill. It comes when so many keys have been answered, and a few turns of
    the event loop later, so that the requests on the way are in any state."""
    fresh, wrong, awaited, enough = {}, 0, chosen.randint(1, MOST), asyncio.Event()
    old = list(acknowledged)
    checked = [key for key in old if key.startswith(f"{run - 1}-")] + chosen.sample(
        old, min(len(old), 20)
    )

    async def ask(client, key):
        nonlocal wrong
        answer = await client.post("/v1/decisions", application(key))
        if answer is None or answer[0] != 200:
            return answer is not None
        known = acknowledged.get(key, fresh.get(key))
        wrong += known is not None and known != answer[1]
        fresh.setdefault(key, answer[1])
        if len(fresh) >= awaited:
            enough.set()
        return True

    async def check(keys):
        nonlocal wrong
        client = process.client()
        for key in keys:
            answer = await client.post("/v1/decisions", application(key))
            wrong += answer is None or answer[1] != acknowledged[key]
        client.close()

    async def load(number):
        client, i = process.client(), 0
        while await ask(
            client, chosen.choice(old) if old and i % 10 == 9 else f"{run}-{number}-{i}"
        ):
            i += 1
        enough.set()  # the service has gone by itself

    await asyncio.gather(*(check(checked[start::CLIENTS]) for start in range(CLIENTS)))
    tasks = [asyncio.create_task(load(number)) for number in range(CLIENTS)]
    await asyncio.wait_for(enough.wait(), PATIENCE)
    for _ in range(chosen.randrange(20)):
        await asyncio.sleep(0)
    process.kill()
    await asyncio.gather(*tasks)
    return fresh, wrong


def killed_runs(kind, number, seed=1):
    """Acknowledged, wrong, stored and doubled over `number` kills."""
    chosen, process = random.Random(seed), Process(folder(), kind)
    acknowledged, wrong = {}, 0
    for run in range(number):
        process.start()
        fresh, bad = asyncio.run(_run_until_killed(process, run, chosen, acknowledged))
        acknowledged, wrong = acknowledged | fresh, wrong + bad
    with reopened(process.folder) as ledger:
        wrong += sum(_stored(ledger, key) != body for key, body in acknowledged.items())
        return {
            "acknowledged": len(acknowledged),
            "wrong": wrong,
            "stored": ledger.counts("loan").decisions,
            "doubled": doubled(ledger),
            "sound": verify(ledger, deep=True).ok,
        }


def _stored(ledger, key):
    try:
        return ledger.find(key).body
    except Exception:  # noqa: BLE001 - whatever it is, the answer is not there
        return None


def doubled(ledger):
    """Keys with two rows, and people with two coins in one window."""
    with ledger.store.reader.connect() as connection:
        rows = connection.exec_driver_sql("SELECT key, slot, body FROM decisions").all()
    coins = {}
    for _, slot, body in rows:
        coins.setdefault(slot, set()).add(json.loads(body)["u"])
    return len(rows) - len({row[0] for row in rows}) + sum(len(us) - 1 for us in coins.values())


def at_the_ledger(kills, *options):
    words = [
        sys.executable,
        "-m",
        "service.tests.ledger.crash",
        str(kills),
        str(folder()),
        *options,
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def kill_nine(quick):
    over_http, at_ledger = (
        killed_runs("real", 4 if quick else 100),
        at_the_ledger(5 if quick else 1000),
    )
    mutants = [killed_runs("mutant", 2, seed)["wrong"] for seed in range(1 if quick else 3)]
    hasty = at_the_ledger(3 if quick else 30, "--mutant")["lost"]
    lost = at_ledger["lost"] + at_ledger["changed"] + at_ledger["double"]
    figure = (
        f"over HTTP {4 if quick else 100} kills, {over_http['acknowledged']:,} acknowledged: "
        f"{over_http['wrong']} lost or changed, {over_http['doubled']} drawn twice, "
        f"chain {'sound' if over_http['sound'] else 'BROKEN'}; "
        f"at the ledger {at_ledger['kills']:,} kills, {at_ledger['acknowledged']:,} acknowledged: "
        f"{lost} lost, changed or doubled; "
        f"mutants: {sum(mutants)} losses over HTTP, {hasty} at the ledger"
    )
    held = not (over_http["wrong"] or over_http["doubled"] or lost) and over_http["sound"]
    seen = (
        all(mutants)
        and hasty > 0
        and over_http["acknowledged"] > 0
        and at_ledger["acknowledged"] > 0
    )
    return (
        "0 lost, 0 changed, 0 drawn twice; a mutant that answers before the commit is caught",
        figure,
        held and seen,
    )


# the order of the system calls

WATCH = "pwrite64,fdatasync,fsync,sendto,write,sendmsg"


async def _ask_all(process, clients, each):
    async def one(number):
        client = process.client()
        for i in range(each):
            answer = await client.post("/v1/decisions", application(f"s-{number}-{i}"))
            assert answer is not None
            assert answer[0] == 200, answer
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return [f"s-{number}-{i}" for number in range(clients) for i in range(each)]


def traced(kind, clients, each):
    """(answers, answers whose row had not been synced): each key's row is looked for in the pages
    that were written to the WAL.
    """
    strace = need_trace()
    place = folder()
    under = [
        strace,
        "-f",
        "-y",
        "-s",
        "70000",
        "-o",
        str(place / "trace"),
        "-e",
        f"trace={WATCH}",
    ]
    with Process(place, kind, under).running() as process:
        keys = asyncio.run(_ask_all(process, clients, each))
    keyring = open_keyring(load_settings(place / "service.toml"))
    return judge(
        (place / "trace").read_text(errors="replace"),
        {key: key_digest(keyring, key) for key in keys},
    )


def judge(trace, digests):
    """Walk through the trace: a row is written when a page with the digest of its key goes to the
    WAL, durable when a sync of the WAL that began later has returned 0, answered when a send
    carries its key."""
    by_digest = {digest: key for key, digest in digests.items()}
    written, syncing, durable, answered, early = set(), {}, set(), set(), 0
    for line in trace.splitlines():
        thread = line.split(maxsplit=1)[0]
        if "pwrite64(" in line and "-wal>" in line:
            written |= {
                by_digest[found]
                for found in re.findall(r"[0-9a-f]{64}", line)
                if found in by_digest
            }
        elif "sync(" in line and "-wal>" in line:
            syncing[thread] = set(written)
        if "sync" in line and thread in syncing and re.search(r"\)\s+= 0$", line):
            durable |= syncing.pop(thread)
        if "<socket:" in line:
            for key in re.findall(r'\\"key\\":\\"(s-\d+-\d+)\\"', line):
                if (
                    line.split(maxsplit=1)[1].startswith(("sendto", "sendmsg", "write"))
                    and key not in answered
                ):
                    answered.add(key)
                    early += key not in durable
    return len(answered), early


def fsync_first(quick):
    target = "an fsync between row and answer for 100%"
    clients, each = (4, 5) if quick else (16, 25)
    answered, early = traced("real", clients, each)
    _, hasty = traced("mutant", 4, 3)
    figure = (
        f"{answered - early} of {clients * each} answers; "
        f"of a hasty mutant's 12 answers {hasty} are seen to be early"
    )
    return target, figure, answered == clients * each and early == 0 and hasty > 0
