"""What somebody with the database and without the keyring can make of a ledger, by name: rows of
the chain rewritten with every later hash computed anew, columns and sealed fields beside it
exchanged. Nobody without the keyring can make the seal of the head.
"""

import json
import sqlite3

from service.tests.bank import Bank, application

from evenhand.canonical import canonical
from evenhand_service.ledger.chain import link, lookup_values
from evenhand_service.ledger.database import KINDS


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

    def all(self, text, *values):
        return self.run(text, *values).fetchall()

    def rows(self):
        """(seq, kind, at, body) of the whole chain."""
        found = []
        for kind, table in KINDS.items():
            rows = self.all(f"SELECT seq, at, body FROM {table.name}")
            found += [(seq, kind, at, body) for seq, at, body in rows]
        return sorted(found)

    def unguard(self):
        for table in KINDS.values():
            if self.postgres:
                self.run(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL")
            else:
                for verb in ("UPDATE", "DELETE"):
                    self.run(f"DROP TRIGGER IF EXISTS {table.name}_keeps_{verb}")

    def rewrite(self, change):
        """Every row as `change` makes it: (at, body), or None to drop it. Later rows move up, what
        refers to them follows, and every hash is computed again, that of the head too.
        """
        self.unguard()
        number, previous, at = {}, bytes(32), 0.0
        for seq, kind, old, text in self.rows():
            table = KINDS[kind]
            changed = change(seq, kind, old, json.loads(text))
            about = None if changed is None else changed[1].get("decision")
            if changed is None or (about is not None and about not in number):
                self.run(f"DELETE FROM {table.name} WHERE seq = ?", seq)
                self.run("DELETE FROM personal WHERE seq = ?", seq)
                continue
            at, body = changed
            number[seq] = new = len(number) + 1
            if about is not None:
                body["decision"] = number[about]
            if kind == "erasure":
                body["rows"] = [number[row] for row in body["rows"] if row in number]
            text = canonical(body)
            previous = link(previous, new, kind, at, text)
            names = [column.name for column in table.columns]
            values = (new, at, *lookup_values(kind, body), text, previous)
            settings = ", ".join(f'"{name}" = ?' for name in names)
            self.run(f"UPDATE {table.name} SET {settings} WHERE seq = ?", *values, seq)
            self.run("UPDATE personal SET seq = ? WHERE seq = ?", new, seq)
        self.run("UPDATE head SET seq = ?, hash = ?, at = ?", len(number), previous, at)

    def first(self, kind, holds=lambda body: True):
        """The number of the first row of a kind whose body holds something."""
        return next(s for s, k, _, text in self.rows() if k == kind and holds(json.loads(text)))

    def done(self):
        self.connection.commit()
        self.connection.close()


def _edit(kind, holds, **members):
    """Change the first such row."""

    def doctor(intruder):
        victim = intruder.first(kind, holds)
        intruder.rewrite(lambda seq, _, at, b: (at, b | members if seq == victim else b))

    return doctor


def _drop(kind, holds=lambda body: True):
    def doctor(intruder):
        victim = intruder.first(kind, holds)
        intruder.rewrite(lambda seq, _, at, body: None if seq == victim else (at, body))

    return doctor


def _exchange(table, columns, *, by="seq", where="1 = 1"):
    """Two rows exchange some columns."""

    def doctor(intruder):
        intruder.unguard()
        names = columns.split(", ")
        asked = f"SELECT {by}, {columns} FROM {table} WHERE {where} ORDER BY {by} LIMIT 2"
        (one, *mine), (other, *theirs) = intruder.all(asked)
        settings = ", ".join(f"{name} = ?" for name in names)
        blank = ["-" if isinstance(value, str) else b"-" for value in mine]
        for values, row in ((blank, one), (mine, other), (theirs, one)):
            intruder.run(f"UPDATE {table} SET {settings} WHERE {by} = ?", *values, row)

    return doctor


def _column(table, setting, where="1 = 1"):
    """A column says something else in the first such row."""

    def doctor(intruder):
        intruder.unguard()
        asked = f"SELECT seq FROM {table} WHERE {where} ORDER BY seq LIMIT 1"
        ((row,),) = intruder.all(asked)
        intruder.run(f"UPDATE {table} SET {setting} WHERE seq = ?", row)

    return doctor


def _turned(intruder):
    """The coin of an accepted person, so that the rejection agrees with itself."""
    victim = intruder.first("decision", lambda body: body["accept"] and body["product"] == "loan")

    def change(seq, _, at, body):
        if seq == victim:
            u = (1.0 + body["acceptance"]) / 2
            body |= {"u": u, "accept": False, "propensity": 1.0 - body["acceptance"]}
            body |= {"audit": False}
        return at, body

    intruder.rewrite(change)


def _other_chance(intruder):
    """Everybody who was accepted had another chance than the policy gave."""

    def change(_, kind, at, body):
        if kind == "decision" and body["accept"]:
            chance = (body["u"] + body["acceptance"]) / 2
            body |= {"acceptance": chance, "propensity": chance}
        return at, body

    intruder.rewrite(change)


def _later(intruder):
    intruder.rewrite(lambda _, __, at, body: (at + 86400.0, body))


def _cut_off(intruder):
    last = intruder.rows()[-1][0]
    intruder.rewrite(lambda seq, _, at, body: None if seq > last - 3 else (at, body))


def _added_label(intruder):
    """A good outcome that nobody reported, at the end of the chain."""
    told = {row[0] for row in intruder.all("SELECT decision FROM outcomes")}
    decisions = [(seq, text) for seq, kind, _, text in intruder.rows() if kind == "decision"]
    accepted = [seq for seq, text in decisions if '"accept":true' in text]
    victim = next(seq for seq in accepted if seq not in told)
    intruder.unguard()
    seq, digest, at = intruder.all("SELECT seq, hash, at FROM head")[0]
    body = {"decision": victim, "report": "label", "value": "-1", "details": {}}
    text = canonical(body)
    digest = link(bytes(digest), seq + 1, "outcome", at, text)
    values = (seq + 1, at, *lookup_values("outcome", body), text, digest)
    intruder.run(f"INSERT INTO outcomes VALUES ({', '.join('?' * len(values))})", *values)
    intruder.run("UPDATE head SET seq = ?, hash = ?", seq + 1, digest)


def _reordered(intruder):
    intruder.unguard()
    (one,), (other,) = intruder.all("SELECT seq FROM decisions ORDER BY seq LIMIT 2")
    for old, new in ((one, -1), (other, one), (-1, other)):
        intruder.run("UPDATE decisions SET seq = ? WHERE seq = ?", new, old)


def _exchanged_people(intruder):
    """Two people exchange their keys and all that is sealed under them."""
    _exchange("people", "key", by="id", where="key IS NOT NULL")(intruder)
    asked = "SELECT id FROM people WHERE key IS NOT NULL ORDER BY id LIMIT 2"
    (one,), (other,) = intruder.all(asked)
    rows = [
        intruder.all("SELECT seq, sealed FROM personal WHERE person = ? ORDER BY seq", who)[0]
        for who in (one, other)
    ]
    for (seq, _), (_, sealed) in (rows, rows[::-1]):
        intruder.run("UPDATE personal SET sealed = ? WHERE seq = ?", sealed, seq)


def _edited_in_place(intruder):
    intruder.unguard()
    victim = intruder.first("certificate")
    intruder.run("UPDATE certificates SET body = replace(body, '0.2', '0.1') WHERE seq = ?", victim)


def _event(action):
    return lambda body: body["action"] == action


def _certificate(intruder):
    """The certificate is about a limit that was never kept."""

    def change(_, kind, at, body):
        if kind == "certificate":
            body["certificate"] |= {"status": "certified", "limit": 0.001}
        return at, body

    intruder.rewrite(change)


def _policy(intruder):
    """Another policy stands under the id of the published one."""

    def change(_, kind, at, body):
        if kind == "policy":
            body["policy"] |= {"group_use": "decide"}
        return at, body

    intruder.rewrite(change)


DOCTORINGS = {
    "a flipped label": _edit("outcome", lambda b: b["report"] == "label", value="-1"),
    "an added label": _added_label,
    "another acceptance": _other_chance,
    "a turned coin": _turned,
    "a dropped decision": _drop("decision"),
    "a dropped outcome": _drop("outcome", lambda b: b["report"] == "label"),
    "a dropped override": _drop("outcome", lambda b: b["report"] == "override"),
    "a dropped label in quarantine": _drop("quarantine"),
    "a dropped kill": _drop("event", _event("kill")),
    "a dropped revocation": _drop("event", _event("key_revoked")),
    "a dropped erasure": _drop("erasure"),
    "a changed certificate": _certificate,
    "a certificate edited in place": _edited_in_place,
    "a changed policy": _policy,
    "a changed note": _edit("event", _event("kill"), note="as agreed"),
    "another operator": _edit("event", _event("kill"), by="nobody"),
    "the end cut off": _cut_off,
    "later dates": _later,
    "two decisions reordered": _reordered,
    "exchanged lookups of keys": _exchange("decisions", '"key"'),
    "exchanged lookups of people": _exchange("people", "lookup", by="id"),
    "exchanged keys of people": _exchange("people", "key", by="id", where="key IS NOT NULL"),
    "exchanged sealed fields": _exchange("personal", "sealed", where="sealed IS NOT NULL"),
    "exchanged people": _exchanged_people,
    "an emptied sealed field": _column("personal", "sealed = NULL", "sealed IS NOT NULL"),
    "the accept column": _column("decisions", "accept = NOT accept"),
    "the usable column": _column("decisions", "usable = NOT usable"),
    "the value column of an outcome": _column("outcomes", "value = '-1'", "value = '+1'"),
    "the action column of an event": _column("events", "action = 'note'", "action = 'kill'"),
}
"""By name; each is done to a ledger that `begun` made."""


def begun(path):
    """A bank on a ledger with rows of every kind, closed again."""
    bank = Bank(path)
    for number in range(16):
        told = application(f"k{number}", person=f"p{number}", group="gh"[number % 2])
        bank.post("/v1/decisions", told)
    # so that some are rejected: killed, and back again
    bank.post("/v1/kill", {"product": "loan", "by": "op", "note": "drill", "constant": "reject"})
    for number in range(16, 24):
        bank.post("/v1/decisions", application(f"k{number}", person=f"p{number}"))
    bank.post("/v1/revive", {"product": "loan", "by": "op"})
    for number in range(24):
        bank.post("/v1/outcomes", {"key": f"k{number}", "label": 1})
    for key, accept in (("k2", False), ("k17", True)):
        bank.post("/v1/overrides", {"key": key, "accept": accept, "by": "clerk"})
    bank.post("/v1/groups", {"key": "k18", "group": "g"})
    bank.keys.revoke(bank.keys.all()[0].id, by="op")
    bank.post("/v1/erasures", {"person": "p3", "by": "clerk"})
    bank.post("/v1/decisions", application("k24", person="p24"))
    bank.close()
    return path


def doctored(path, name):
    """Do it."""
    intruder = Intruder(path)
    DOCTORINGS[name](intruder)
    intruder.done()
