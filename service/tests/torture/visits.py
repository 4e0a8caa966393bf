"""Who looks at the service from outside: an auditor, who takes a pack away; a load balancer, which
asks whether it is ready; and whoever else has an account on its machine.
"""

import asyncio
import itertools
import json
import stat
import subprocess
import sys
from collections import Counter
from math import inf
from urllib.parse import quote

from service.tests.torture.chaos import Server
from service.tests.torture.integrity import Intruder, _posted, places
from service.tests.torture.kills import reopened
from service.tests.torture.run import READY_WORDS
from service.tests.torture.serving import Client, Process, application, folder
from tests.tools import need
from tests.without_clocks import until

from evenhand_service.ledger import verify
from evenhand_service.ledger.decision_draw import person_digest
from evenhand_service.opening import open_keyring
from evenhand_service.settings import load_settings

# packs

WIDE = """
from evenhand_service import audit_pack
from evenhand_service.ledger import audit
audit_pack.for_owner = audit.for_owner = lambda path, flags: os.open(path, flags, 0o644)
"""
"""The mutant: a pack in files that everybody may read."""


def _evenhand(change, *words):
    """`evenhand` as a command of its own, perhaps changed, for a careless user."""
    before = f"import os, sys\nos.umask(0o022)\nfrom evenhand.cli import main\n{change}"
    return subprocess.run(
        [sys.executable, "-c", f"{before}\nmain(sys.argv[1:])", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


async def _customers(process, number):
    """Customers, one of whom is erased."""
    client = process.client()
    for i in range(number):
        assert (await client.post("/v1/decisions", application(f"k{i}", f"p{i}")))[0] == 200
        await client.post("/v1/outcomes", {"key": f"k{i}", "label": 1})
    await client.post("/v1/erasures", {"person": "p1"})
    client.close()


def _verified(target):
    """Whether the pack's own verifier, alone with the standard library, finds it sound."""
    words = [sys.executable, "-I", "-S", "verifier.py", "ledger.jsonl", "--secrets", "secrets.json"]
    words += ["--head", "head.json", "--pack", "pack.json"]
    done = subprocess.run(words, cwd=target, capture_output=True, text=True, check=False)
    return done.returncode == 0


def _packed(config, change):
    """(names of the person who was erased, files that are not for the owner alone, whether the pack
    verifies and holds the others) of a pack that is made while the service runs.
    """
    target = folder() / "pack"
    done = _evenhand(change, "audit", "pack", "--config", config, "--out", target)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    texts = [file.read_text() for file in target.iterdir()]
    erased = sum(text.count('"p1"') for text in texts)
    modes = [stat.S_IMODE(file.stat().st_mode) for file in (target, *target.iterdir())]
    held = any('"p0"' in text for text in texts)
    return erased, sum(bool(mode & 0o077) for mode in modes), _verified(target) and held


def packs(quick, kind="real"):
    """A pack that is made while the service runs, on both databases."""
    number, change, told, held = 4 if quick else 300, "" if kind == "real" else WIDE, [], True
    with places() as found:
        for name, _, more in found[: 1 if quick else 2]:
            process = Process(folder(), more=more)
            with process.running():
                asyncio.run(_customers(process, number))
                erased, wide, sound = _packed(process.folder / "service.toml", change)
            held &= (erased, wide, sound) == (0, 0, True)
            told.append(
                f"{name}, {number} customers: {erased} names of the erased, {wide} files that "
                f"others may read, the pack {'verifies' if sound else 'does NOT verify'}"
            )
    target = "0 names of the erased, mode 0600, the pack verifies"
    return target, "; ".join(told), held and (quick or len(told) == 2)


# live and ready


async def _asked(port, path):
    """(status, document) of a request without a key."""
    client = Client(port, "nobody")
    found = await client.get(path)
    client.close()
    return (None, {}) if found is None else (found[0], json.loads(found[1]))


async def _decision(process, key):
    client = process.client()
    found = await client.post("/v1/decisions", application(key))
    client.close()
    return None if found is None else found[0]


def _becomes(process, path, wanted, most=inf):
    """Whether a path is answered by this status, after so many questions at most."""
    tries = itertools.count()

    def there():
        return asyncio.run(_asked(process.port, path))[0] == wanted

    until(lambda: there() or next(tries) >= most, f"{wanted} of {path}")
    return there()


def readiness(quick, kind="real"):
    """PostgreSQL is stopped and started again under a service that is asked how it is."""
    target = "live says 200 throughout; ready and health 503 while nothing can be written"
    need("postgresql")
    server, times, told = Server(), 1 if quick else 5, Counter()
    try:
        server.create()
        server.ask("postgres", "CREATE DATABASE watched")
        process = Process(folder(), kind, more=f'ledger = "{server.url("watched")}"')
        with process.running():
            for number in range(times):
                _, words = asyncio.run(_asked(process.port, "/health/ready"))
                told["words"] += set(READY_WORDS) <= set(words)
                server.stop()
                until(
                    lambda n=number: asyncio.run(_decision(process, f"away {n}")) == 503,
                    "a refused decision",
                )
                most = inf if kind == "real" else 1000
                told["ready 503"] += _becomes(process, "/health/ready", 503, most)
                told["health 503"] += _becomes(process, "/health", 503, most)
                _, words = asyncio.run(_asked(process.port, "/health/ready"))
                told["unreachable"] += words.get("database") == "unreachable"
                told["live 200"] += asyncio.run(_asked(process.port, "/health/live"))[0] == 200
                server.start()
                told["ready again"] += _becomes(process, "/health/ready", 200, most)
                told["decides again"] += asyncio.run(_decision(process, f"back {number}")) == 200
    finally:
        server.remove()
    figure = f"{times} times away: " + ", ".join(f"{what} {n}" for what, n in told.items())
    return target, figure, len(told) == 7 and set(told.values()) == {times}


# an erasure that finds nobody


def hidden_people(quick, kind="real"):
    """Somebody with the database's role changes by what people are found: an erasure says that it
    erased nothing and what to do, and verify finds the rows.
    """
    number, told, held = 3 if quick else 20, [], True

    async def erase(process, person):
        client = process.client()
        status, body = await client.post("/v1/erasures", {"person": person})
        client.close()
        return status == 404 and b"nothing was erased" in body and b"verify --deep" in body

    with places() as found:
        for name, where, more in found[: 1 if quick else 2]:
            process = Process(folder(), kind, more=more)
            with process.running():
                people = [application(f"k{i}") for i in range(2 * number)]
                asyncio.run(_posted(process, *people))
                keyring = open_keyring(load_settings(process.folder / "service.toml"))
                intruder = Intruder(where or process.folder / "ledger.sqlite")
                for i in range(number):
                    lookup = person_digest(keyring, f"k{i}")
                    changed = "UPDATE people SET lookup = ? WHERE lookup = ?"
                    intruder.run(changed, bytes([i]) * 32, lookup)
                intruder.connection.commit()
                intruder.connection.close()
                said = sum(asyncio.run(erase(process, f"k{i}")) for i in range(number))
            with reopened(process.folder) as ledger:
                seen = len({problem.seq for problem in verify(ledger, deep=True).problems})
            held &= said == number and seen >= number
            told.append(f"{name}: {said} of {number} erasures say so, verify names {seen} rows")
    return "an erasure that deletes nothing says so, and verify finds why", "; ".join(told), held


# names and files

ODD_KEYS = ("a/b", "a//b", "../b", "a%2Fb", "a b", "\u00fc/\u00df", "a?b#c", "a/", "/a", "%")


async def _found_again(process):
    """How many keys are answered by the bytes with which they were decided."""
    client, same = process.client(), 0
    for key in ODD_KEYS:
        decided = await client.post("/v1/decisions", application(key))
        found = await client.get(f"/v1/decisions/{quote(key, safe='')}")
        same += found is not None and found[0] == 200 and json.loads(found[1])["key"] == key
        same -= decided is None or decided[0] != 200
    client.close()
    return same


def names_and_files(quick, kind="real"):
    """Keys with any character are fetched, and nobody else on the machine reads the ledger."""
    with Process(folder(), kind).running() as process:
        found = asyncio.run(_found_again(process))
        files = [*process.folder.glob("ledger.sqlite*"), process.folder / "keyring.json"]
        wide = [file.name for file in files if stat.S_IMODE(file.stat().st_mode) & 0o077]
    figure = (
        f"{found} of {len(ODD_KEYS)} odd keys fetched; {len(wide)} of {len(files)} files are open "
        f"to others {wide or ''}"
    )
    return (
        "every key is fetched; every file is its owner's alone",
        figure.strip(),
        (found == len(ODD_KEYS) and not wide and len(files) >= 3),
    )
