"""Who could alter what, tried over real sockets on both databases: seals, windows, clocks."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

from service.tests.torture.kills import reopened
from service.tests.torture.policies import database
from service.tests.torture.serving import Client, Process, application, folder
from tests.tools import need
from tests.without_clocks import until

from evenhand.canonical import canonical
from evenhand_service.ledger import Invalid, SystemClock, backup, postgres, restore, verify
from evenhand_service.ledger.chain import link
from evenhand_service.ledger.database import KINDS
from evenhand_service.ledger.decision_draw import person_digest
from evenhand_service.ledger.witness import read_entries
from evenhand_service.opening import open_keyring, open_ledger
from evenhand_service.settings import load_settings

DAY = 86400.0


# somebody with the database's role, and without the keyring


class Intruder:
    """Writes the database behind the ledger's back, as its owner can."""

    def __init__(self, where):
        self.postgres = "://" in str(where)
        if self.postgres:
            import psycopg

            self.connection, self.mark = psycopg.connect(where), "%s"
        else:
            self.connection, self.mark = sqlite3.connect(where), "?"

    def run(self, text, *values):
        return self.connection.execute(text.replace("?", self.mark), values)

    def rows(self):
        """(seq, kind, at, body) of the whole chain."""
        found = []
        for kind, table in KINDS.items():
            rows = self.run(f"SELECT seq, at, body FROM {table.name}").fetchall()
            found += [(seq, kind, at, body) for seq, at, body in rows]
        return sorted(found)

    def unguard(self):
        for table in KINDS.values():
            if self.postgres:
                self.run(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL")
            else:
                for verb in ("UPDATE", "DELETE"):
                    self.run(f"DROP TRIGGER IF EXISTS {table.name}_keeps_{verb}")

    def flip(self, *, plausible=False):
        """The oldest acceptance becomes a rejection, and every hash from there on is computed
        again; the seal is left, because it needs the keyring. `plausible`: the probability is
        changed too, so that the row agrees with itself.
        """
        self.unguard()
        previous, changed = bytes(32), None
        for seq, kind, at, text in self.rows():
            body = json.loads(text)
            if changed is None and kind == "decision" and body["accept"]:
                body |= {"accept": False, "propensity": 1.0 - body["acceptance"]}
                if plausible:
                    lower = body["u"] / 2
                    body |= {"acceptance": lower, "propensity": 1.0 - lower}
                    body |= {"audit_weight": 0.0, "audit": False}
                text, changed = canonical(body), seq
                self.run(
                    "UPDATE decisions SET accept = ?, body = ? WHERE seq = ?", False, text, seq
                )
            previous = link(previous, seq, kind, at, text)
            self.run(f"UPDATE {KINDS[kind].name} SET hash = ? WHERE seq = ?", previous, seq)
        self.run("UPDATE head SET hash = ?", previous)
        self.connection.commit()
        self.connection.close()
        return changed


@contextlib.contextmanager
def places():
    """(name of the database, where it is, lines of the settings) of both kinds."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(database())
        yield [
            ("SQLite", None, ""),
            ("PostgreSQL", url, f'ledger = "{url}"'),
        ]


async def _posted(process, *bodies):
    client, found = process.client(), []
    for body in bodies:
        answer = await client.post("/v1/decisions", body)
        found.append(answer[0] if answer else None)
    client.close()
    return found


async def _health(process):
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status


def _laundered(kind, where, more, people, *, plausible=False):
    """(status of one normal request after the attack, of /health, whether the log says why, the
    problems that verify and verify --deep find afterwards)."""
    process = Process(folder(), kind, more=more)
    with process.running():
        asked = [application(f"k{i}") for i in range(people)]
        assert set(asyncio.run(_posted(process, *asked))) == {200}
        row = Intruder(where or process.folder / "ledger.sqlite").flip(plausible=plausible)
        (status,) = asyncio.run(_posted(process, application("afterwards")))
        health = asyncio.run(_health(process))
    said = "is not the keyring's" in Path(process.log).read_text()
    with reopened(process.folder) as ledger:
        plain, deep = verify(ledger).problems, verify(ledger, deep=True).problems
    return status, health, said, plain, [p for p in deep if p.seq == row]


def laundering(quick):
    """An old acceptance is flipped and the hashes recomputed; then one normal request comes. The
    mutant extends the chain, and with it seals the forgery: only the deep verification sees it.
    """
    people, told, held = 20 if quick else 200, [], True
    for plausible in (False, True):
        with places() as found:
            for name, where, more in found:
                status, health, said, plain, deep = _laundered(
                    "real", where, more, people, plausible=plausible
                )
                held &= status == 503 and health == 503 and said and bool(plain) and bool(deep)
                told.append(f"{name}: answer {status}, health {health}, {len(plain)} found")
        status, _, _, plain, deep = _laundered("trusting", None, "", people, plausible=plausible)
        held &= status == 200 and not plain and bool(deep)
        told.append(f"without the check: answer {status}, {len(plain)} found, {len(deep)} deep")
    return "refused, and found afterwards", "; ".join(told), held and len(told) == 6


# windows


def one_plan(quick):
    """The length of windows is changed at each start; without the plan in the chain the same person
    gets another coin each time.
    """
    place, refused = folder(), 0
    for days in (30, 15, 1, 7):
        process = Process(place, more=f"window_days = {days}")
        try:
            with process.running():
                asyncio.run(_posted(process, application(f"k{days}", person="the same")))
        except RuntimeError:  # it did not start; the same in this process says why
            try:
                reopened(place).close()
            except Invalid as refusal:
                refused += "this ledger draws in windows of 30 days" in str(refusal)
    settings = (place / "service.toml").read_text().replace("window_days = 7", "window_days = 30")
    (place / "service.toml").write_text(settings)
    with reopened(place) as ledger:
        rows = list(ledger.history("loan", usable_only=False))
        coins, sound = {row.u for row in rows}, verify(ledger, deep=True).ok
        begun = ledger.plan_windows(15 * DAY, "operator")
        with contextlib.suppress(Invalid):
            ledger.plan_windows(1 * DAY, "operator")
            sound = False
        sound &= begun.origin == ledger.windows()[-1].ends
    # the control: a ledger that forgets its plan draws anew
    forgotten = _coins_without_a_plan()
    figure = (
        f"windows of 30, 15, 1, 7 days: {refused} refused, {len(coins)} coin; "
        f"without the plan {forgotten} coins"
    )
    return "one coin", figure, refused == 3 and len(coins) == 1 and sound and forgotten > 1


def _coins_without_a_plan():
    from service.tests.ledger.helpers import Clock, opened, person, published

    from evenhand_service.ledger import Terms, WindowPlan, decision_draw

    place, coins = folder() / "ledger.sqlite", set()
    given = {}
    require, read = decision_draw.require_plan, decision_draw.read_plans
    decision_draw.require_plan = lambda transaction, plan: None
    decision_draw.read_plans = lambda transaction: [decision_draw.PlanInForce(0, given["p"], None)]
    try:
        for number, days in enumerate((30, 15, 1, 7)):
            given["p"] = WindowPlan(days * DAY)
            with opened(place, Clock()) as ledger:
                policy = published(ledger) if number == 0 else ledger.policies("loan")[0].id
                asked = person("same", key=f"k{number}")
                coins.add(ledger.decide(asked, Terms(policy, 0.5)).drawn.u)
    finally:
        decision_draw.require_plan, decision_draw.read_plans = require, read
    return len(coins)


# clocks


def clocks(quick):
    """A service whose clock is 400 days ahead: on SQLite, after it had run by the right clock, it
    writes nothing; on PostgreSQL the database's clock dates its rows, and ends its keys, so that a
    key of 90 days still opens. No window is ever revealed. The control believes any clock; it is
    asked with a key of 1,000 days, for that of 90 has ended there.
    """
    target = (
        "0 rows dated ahead, 0 secrets of open windows, no key ended by that clock; ready if it "
        "decides"
    )
    faketime = need("faketime")
    told, held = [], True
    with places() as found:
        for name, where, more in found:
            for kind in ("real", "trusting"):
                if kind == "trusting" and where is not None:
                    continue  # one control is enough, and it spoils the ledger
                place = folder()
                with Process(place, kind, more=more).running() as process:
                    assert asyncio.run(_posted(process, application("before"))) == [200]
                    short = process.token
                    lasting = asyncio.run(_new_key(process, days=1000))
                (place / "token").write_text(lasting)
                ahead = Process(place, kind, more=more, under=[faketime, "-f", "+400d"])
                status, ended, revealed, ready = 503, False, 0, 503
                try:
                    with ahead.running():
                        (status,) = asyncio.run(_posted(ahead, application("ahead")))
                        ready = asyncio.run(_looks(ahead, short, "/health/ready"))
                        ended = asyncio.run(_looks(ahead, short)) == 401
                        revealed = asyncio.run(_reveal_all(ahead))
                except RuntimeError:  # it did not even start, and its log says why
                    assert not ahead.alive()
                alarm = "clock of this machine" in Path(ahead.log).read_text()
                with Process(place, kind, more=more).running() as process:
                    (after,) = asyncio.run(_posted(process, application("after")))
                with reopened(place) as ledger:
                    late = sum(
                        row.at > ledger.clock() + DAY
                        for row in ledger.history("loan", usable_only=False)
                    )
                said = (
                    f"{status} and ready {ready} ahead, {after} afterwards, {late} rows ahead, "
                    f"{revealed} revealed, key of 90 days {'ended' if ended else 'not ended'}"
                )
                told.append(f"{name if kind == 'real' else 'without the check'}: {said}")
                if kind == "trusting":
                    held &= late > 0 and revealed > 0 and ended
                else:
                    expected = (200, 200, True) if where else (503, 503, True)
                    held &= (status, ready, alarm) == expected and after == 200
                    held &= late == 0 and revealed == 0 and not ended
    return target, "; ".join(told), held


async def _new_key(process, days):
    """A key with every scope."""
    client = process.client()
    scopes = ["decide", "observe", "override", "audit", "admin"]
    asked = {"name": "lasting", "scopes": scopes, "days": days}
    _, made = await client.post("/v1/keys", asked)
    client.close()
    return json.loads(made)["token"]


async def _looks(process, token, path="/v1/windows"):
    """The status that a key gets."""
    client = Client(process.port, token)
    status, _ = await client.get(path)
    client.close()
    return status


async def _reveal_all(process):
    """How many secrets the service gives away."""
    client, given = process.client(), 0
    listed = json.loads((await client.get("/v1/windows"))[1])["windows"]
    numbers = {int(window["name"][1:]) + beside for window in listed for beside in (-1, 0, 1)}
    for number in sorted(numbers):
        answer = await client.post(f"/v1/windows/w{number}/reveal", {})
        given += answer is not None and answer[0] == 200
    client.close()
    return given


# witnesses


def witnessed(quick):
    """An operator with database and keyring rewrites an old row and signs everything anew, or puts
    an older state back; the head had gone to a file and to an endpoint by itself. Without what the
    witness kept (the control) both verify.
    """
    from service.tests.ledger.loopback_witnesses import Keeper, served

    keeper, told, held = Keeper(), [], True
    with served(keeper) as url, places() as found:
        for name, where, more in found:
            keeper.lines, place = b"", folder()
            table = f'[[witness]]\nkind = "https"\nurl = "{url}"\n[[witness]]\nkind = "file"\n'
            table += 'path = "heads.jsonl"\n'
            lines = f"{more}\nwitness_seconds = 0.05\n{table}"
            process = Process(place, more=lines)
            with process.running():
                people = [application(f"k{i}") for i in range(20 if quick else 300)]
                asyncio.run(_posted(process, *people))
                before, heads = _kept(keeper), place / "heads.jsonl"
                until(heads.exists, "a head in the file")
                filed = heads.stat().st_size
                asyncio.run(_posted(process, application("the last")))
                until(lambda before=before: _kept(keeper) > before, "a head at the witness")
                until(
                    lambda heads=heads, filed=filed: heads.stat().st_size > filed,
                    "a head in the file",
                )
            row = Intruder(where or place / "ledger.sqlite").flip(plausible=True)
            with contextlib.suppress(FileNotFoundError):
                (place / "ledger.sqlite.mark").unlink()
            _sealed_anew(
                where or place / "ledger.sqlite",
                open_keyring(load_settings(place / "service.toml")),
            )
            with reopened(place) as ledger:
                without = verify(ledger).problems
                seen = [
                    [p.seq for p in verify(ledger, witnessed=read_entries(at)).problems]
                    for at in (url, str(place / "heads.jsonl"))
                ]
            held &= not without and seen == [[row], [row]]
            told.append(f"{name}: row {row} changed, without {len(without)}, witnesses name {seen}")
    return "the first row that differs is named", "; ".join(told), held and len(told) == 2


def _kept(keeper):
    return keeper.lines.count(b"\n")


def _sealed_anew(where, keyring):
    intruder = Intruder(where)
    seq, digest = intruder.run("SELECT seq, hash FROM head").fetchone()
    intruder.run("UPDATE head SET seal = ?", keyring.head_seal(seq, bytes(digest)))
    intruder.connection.commit()
    intruder.connection.close()


# restores, roles, erasures


def restored(quick):
    """A dump that is loaded by hand, and one by `evenhand audit restore`: nothing is drawn before
    the gap is confirmed. The mutant takes any database for its own, and draws.
    """
    target = "0 draws before the gap is confirmed"
    with places() as found:
        where, told, held = found[1][1], [], True
        server = where.rpartition("/")[0]
        for kind in ("real", "forgetful"):
            names = [f"{kind}_{place}" for place in ("first", "second", "third")]
            _administer(where, *(f"CREATE DATABASE {name}" for name in names))
            first, second, third = (f"{server}/{name}" for name in names)
            place = folder()
            with Process(place, kind, more=f'ledger = "{first}"').running() as process:
                asyncio.run(_posted(process, *(application(f"k{i}") for i in range(5))))
            dump = place / "dump"
            postgres.dump(first, dump)
            postgres.load(second, dump)
            answers = _restarted(place, kind, second)
            with reopened(place) as ledger:
                ledger.confirm_gap("operator", "looked")
            confirmed = _restarted(place, kind, second)
            if kind == "real":
                with open_ledger(_with_ledger(place, first), SystemClock()) as ledger:
                    backup(ledger, place / "backup")
                keyring = open_keyring(_with_ledger(place, first))
                restore(place / "backup", third, keyring=keyring, clock=SystemClock(), by="op")
                by_command = _restarted(place, kind, third)
                held &= answers == [200, 503] and by_command == [200, 503] and confirmed[1] == 200
                told.append(f"by hand {answers}, by command {by_command}, confirmed {confirmed}")
            else:
                held &= answers == [200, 200]
                told.append(f"the mutant {answers}")
    return target, "; ".join(told) + " (stored key, new key)", held


def _administer(url, *statements):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def _with_ledger(place, url):
    from dataclasses import replace

    return replace(load_settings(place / "service.toml"), ledger=url)


def _restarted(place, kind, url):
    """(status of a stored key, of a new one) from a service that is started on that database."""
    with Process(place, kind, more=f'ledger = "{url}"').running() as process:
        return asyncio.run(_posted(process, application("k1"), application(f"new-{url}")))


def appending_role(quick):
    """The service runs under a role that can append, and that role is used to change the chain; the
    control is the owner, who can.
    """
    target, refused, tried = "every change refused, the service answers", 0, 0
    with places() as found:
        owner, place = found[1][1], folder()
        with Process(place, more=f'ledger = "{owner}"').running() as process:
            asyncio.run(_posted(process, *(application(f"k{i}") for i in range(5))))
        _administer(owner, "CREATE ROLE appender LOGIN")
        postgres.grant(owner, "appender")
        url = owner.replace("evenhand@", "appender@")
        with Process(place, more=f'ledger = "{url}"').running() as process:
            statuses = asyncio.run(_posted(process, *(application(f"m{i}") for i in range(20))))
            changes = ("UPDATE {} SET at = at", "DELETE FROM {}", "TRUNCATE {}")
            changes += ("ALTER TABLE {} DISABLE TRIGGER ALL", "DROP TABLE {}")
            for change in changes:
                for table in KINDS.values():
                    tried += 1
                    refused += _refuses(url, change.format(table.name))
        control = not _refuses(owner, "ALTER TABLE decisions DISABLE TRIGGER ALL")
    held = set(statuses) == {200} and refused == tried and control
    said = f"{refused} of {tried} changes refused; {statuses.count(200)} of 20 answered"
    return target, f"{said}; the owner {'can' if control else 'CANNOT'}", held


def _refuses(url, statement):
    import psycopg

    try:
        _administer(url, statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def erased_keys(quick, kind="real"):
    """After an erasure over HTTP, the bytes of the person's wrapped key are in no page of the
    table; before it (the control) they are.
    """
    target = "0 keys in the pages"
    with places() as found:
        url, place, number = found[1][1], folder(), 5 if quick else 100
        with Process(place, kind, more=f'ledger = "{url}"').running() as process:
            people = [application(f"k{i}") for i in range(2 * number)]
            asyncio.run(_posted(process, *people))
            keyring, before, after = open_keyring(load_settings(place / "service.toml")), 0, 0
            for i in range(number):
                key = _wrapped(url, person_digest(keyring, f"k{i}"))
                before += key in _pages(url)
                assert asyncio.run(_erased(process, f"k{i}")) == 200
                after += key in _pages(url)
    figure = f"{number} erasures: {before} keys in the pages before, {after} afterwards"
    return target, figure, before == number and after == 0


def _wrapped(url, lookup):
    import psycopg

    with psycopg.connect(url) as connection:
        asked = "SELECT key FROM people WHERE lookup = %s"
        return bytes(connection.execute(asked, [lookup]).fetchone()[0])[12:]


def _pages(url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        (data,) = connection.execute("SHOW data_directory").fetchone()
        (file,) = connection.execute("SELECT pg_relation_filepath('people')").fetchone()
    return (Path(data) / file).read_bytes()


async def _erased(process, person):
    client = process.client()
    answer = await client.post("/v1/erasures", {"person": person, "by": "officer"})
    client.close()
    return answer[0] if answer else None
