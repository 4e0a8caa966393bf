"""Holes of operating, over real sockets: an older head put back, keys that should end, a replica
that is starved in the midst of a transaction.
"""

import asyncio
import json
import os
import signal
from contextlib import closing

import click.testing
import psycopg
from service.tests.torture.integrity import Intruder, places
from service.tests.torture.replicas import ledger_of, three
from service.tests.torture.serving import Client, Process, application, folder
from tests.without_clocks import until

from evenhand.cli import main as command_line
from evenhand_service.ledger import verify
from evenhand_service.ledger.database import IDLE_SECONDS, KINDS

DAY = 86400.0


async def _call(process, method, path, body=None, token=None):
    """(status, JSON)."""
    client = Client(process.port, token or process.token)
    content = b"" if body is None else json.dumps(body).encode()
    status, found = await client.call(method, path, content)
    client.close()
    return status, json.loads(found) if found.startswith(b"{") else found.decode()


def asked(process, method, path, body=None, token=None):
    return asyncio.run(_call(process, method, path, body, token))


# an older head, put back


def put_back(place, head):
    """Remove every row after a head that was copied before, and put that head in its place: what
    whoever owns the database can do without the keyring.
    """
    intruder = Intruder(place)
    intruder.unguard()
    for table in KINDS.values():
        intruder.run(f"DELETE FROM {table.name} WHERE seq > ?", head[1])
    intruder.run("DELETE FROM personal WHERE seq > ?", head[1])
    intruder.run("DELETE FROM people WHERE id > ?", head[1])
    intruder.run(
        'UPDATE head SET seq = ?, hash = ?, at = ?, seal = ?, switched = ?, "keys" = ?, '
        "basis_seal = ?",
        *head[1:],
    )
    intruder.connection.commit()
    intruder.connection.close()


def rolled_back_head(quick, kind="real"):
    """A kill and a revocation are taken back, without a witness, on both databases."""
    target = "a kill and a revocation that are taken back: nothing is drawn, `verify` says so"
    told, held = [], True
    with places() as found:
        for name, url, more in found:
            place = folder()
            where = url or place / "ledger.sqlite"
            process = Process(place, kind, more=more)
            with process.running():
                _, made = asked(process, "POST", "/v1/keys", {"name": "shop", "scopes": ["decide"]})
                shop = made["token"]
                assert asked(process, "POST", "/v1/decisions", application("a"))[0] == 200
                _, metrics = asked(process, "GET", "/metrics")
                without = "evenhand_witnesses 0.0" in metrics
            with closing(Intruder(where).connection) as connection:
                head = connection.execute("SELECT * FROM head").fetchone()
            with process.running():
                _, listed = asked(process, "GET", "/v1/keys")
                (number,) = [key["id"] for key in listed["keys"] if key["name"] == "shop"]
                kill = {"product": "loan", "note": "torture"}
                assert asked(process, "POST", "/v1/kill", kill)[0] == 200
                assert asked(process, "DELETE", f"/v1/keys/{number}")[0] == 200
            put_back(where, head)
            with process.running():
                status, _ = asked(process, "POST", "/v1/decisions", application("b"), token=shop)
            config = str(place / "service.toml")
            runner = click.testing.CliRunner()
            result = runner.invoke(command_line, ["audit", "verify", "--config", config])
            told.append(f"{name}: the revoked key gets {status}, verify exits {result.exit_code}")
            held &= status == 503 and result.exit_code == 1 and without
    return target, "; ".join(told), held


# keys that end


def ending_keys(quick, kind="calendar"):
    """The calendar of this service is a file, so that days pass without waiting."""
    target = "90 days, a warning 14 days before, both keys for the overlap, then the new one alone"
    place = folder()
    calendar = place / "calendar"
    calendar.write_text("0")
    process = Process(place, kind)
    opened = []
    with process.running():
        first = process.token
        _, made = asked(process, "POST", "/v1/keys", {"name": "shop", "scopes": ["audit", "admin"]})
        old = made["token"]
        calendar.write_text("80")
        soon = "evenhand_keys_ending 2.0" in asked(process, "GET", "/metrics", token=old)[1]
        _, listed = asked(process, "GET", "/v1/keys", token=old)
        (number,) = [key["id"] for key in listed["keys"] if key["name"] == "shop"]
        overlap = {"days": 90, "overlap_days": 7}
        _, made = asked(process, "POST", f"/v1/keys/{number}/rotate", overlap, token=old)
        new = made["token"]
        for days in (81, 88, 91, 171):
            calendar.write_text(str(days))
            statuses = [
                asked(process, "GET", "/v1/keys", token=one)[0] for one in (first, old, new)
            ]
            opened.append(tuple(status == 200 for status in statuses))
    warned = "evenhand keys rotate" in process.log.read_text()
    wanted = [(True, True, True), (True, False, True), (False, False, True), (False, False, False)]
    figure = "; ".join(
        f"day {day}: {sum(one)} of 3 open"
        for day, one in zip((81, 88, 91, 171), opened, strict=True)
    )
    return target, f"{figure}; warned: {soon and warned}", opened == wanted and soon and warned


# a starved replica


def starved(quick, url, kind):
    """A replica stands still for two seconds in the midst of a transaction. The mutant lets the
    server end it after one.
    """
    target = "a replica that was starved for 2 s still has its transaction; its batch is answered"
    seconds = IDLE_SECONDS if kind == "real" else 1
    settings = f"idle_transaction_seconds = {seconds}"
    with three(url, "pausing", settings) as replicas:
        slow = replicas[-1]
        (slow.folder / "pause").touch()

        async def decide():
            client = slow.client()
            people = [application(f"k{i}") for i in range(100)]
            answer = asyncio.create_task(client.post("/v1/decisions/batch", {"decisions": people}))
            kept = await asyncio.to_thread(stand_still, slow, url, 2.0)
            found = await answer
            client.close()
            return kept, None if found is None else found[0]

        kept, status = asyncio.run(decide())
        with ledger_of(replicas, url) as ledger:
            written, sound = ledger.counts("loan").decisions, verify(ledger).ok
    what = "kept" if kept else "ended"
    figure = f"with {seconds} s: the transaction is {what}, {status}, {written} of 100 written"
    return target, figure, kept and (status, written) == (200, 100) and sound


def stand_still(process, url, seconds):
    """Until the server has waited for it for so long, or has ended its transaction; whether it
    waited.
    """
    with open(f"/proc/{process.pid}/stat") as file:
        until(lambda: _state(file) == "T", "the replica to stop")
    silent = (
        "SELECT max(EXTRACT(epoch FROM clock_timestamp() - state_change)) FROM pg_stat_activity"
    )
    silent += " WHERE state = 'idle in transaction'"
    with psycopg.connect(url, autocommit=True) as connection:

        def over():
            (waited,) = connection.execute(silent).fetchone()
            return waited is None or waited >= seconds

        until(over, "the server to wait")
        (waited,) = connection.execute(silent).fetchone()
    os.kill(process.pid, signal.SIGCONT)
    return waited is not None


def _state(file):
    file.seek(0)
    return file.read().rsplit(")", 1)[1].split()[0]
