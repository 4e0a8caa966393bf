"""A quota and an audit budget under 64 clients at once: on SQLite a process that is killed and
started again, on PostgreSQL three replicas. Counted over all rows of the chain afterwards.
"""

import asyncio
import json
import random
from collections import Counter

from service.tests.torture.kills import reopened
from service.tests.torture.policies import database
from service.tests.torture.replicas import ledger_of, three
from service.tests.torture.serving import Process, application, folder
from sqlalchemy import select

from evenhand_service.ledger import verify
from evenhand_service.ledger.database import DECISIONS, OUTCOMES

CLIENTS = 64
QUOTA, BUDGET = 90, 40
PRODUCT = f"quota = {QUOTA}\naudit_budget = {BUDGET}"
TARGET = f"at most {QUOTA} accepted a day, {BUDGET} audits that may be bad; nothing lost"


async def _apply(processes, each, batch):
    """What was acknowledged, by key. Every client reports two of three outcomes, most of them
    good, some time after the decision.
    """
    acknowledged = {}

    async def ask(number):
        chosen = random.Random(f"{batch}/{number}")
        client = processes[number % len(processes)].client()
        waiting = []
        for i in range(each):
            key = f"{batch}-{number}-{i}"
            found = None
            while found is None or found[0] == 503:
                found = await client.post("/v1/decisions", application(key))
            assert found[0] == 200, found
            acknowledged[key] = found[1]
            if json.loads(found[1])["accept"] and chosen.random() < 2 / 3:
                waiting.append(key)
            if waiting and chosen.random() < 0.5:
                label = -1 if chosen.random() < 0.1 else 1
                told = await client.post("/v1/outcomes", {"key": waiting.pop(0), "label": label})
                assert told[0] == 200, told
        client.close()

    await asyncio.gather(*(ask(number) for number in range(CLIENTS)))
    return acknowledged


def _judged(ledger, acknowledged):
    """(most accepted in a day, most audits that could be bad at any row, lost, sound)."""
    rows = []
    with ledger.store.reader.connect() as connection:
        d, o = DECISIONS.c, OUTCOMES.c
        for seq, at, body in connection.execute(select(d.seq, d.at, d.body)):
            rows.append((seq, at, json.loads(body), None))
        for seq, decision, value in connection.execute(select(o.seq, o.decision, o.value)):
            rows.append((seq, None, value, decision))
    days, open_audits, most = Counter(), set(), 0
    for seq, at, told, decision in sorted(rows, key=lambda row: row[0]):
        if decision is None:
            days[at // 86400.0] += told["accept"]
            if told["audit"]:
                open_audits.add(seq)
                most = max(most, len(open_audits))
        elif told == "+1":
            open_audits.discard(decision)
    lost = sum(ledger.find(key).body != body for key, body in acknowledged.items())
    return max(days.values()), most, lost, verify(ledger).ok


def _sqlite(kind, each):
    place = folder()
    acknowledged = {}
    for batch in range(2):  # killed in between, and started again
        with Process(place, kind, product=PRODUCT).running() as process:
            acknowledged |= asyncio.run(_apply([process], each, batch))
    with reopened(place) as ledger:
        return *_judged(ledger, acknowledged), len(acknowledged)


def _postgres(kind, each, url):
    with three(url, kind, product=PRODUCT) as replicas:
        acknowledged = asyncio.run(_apply(replicas, each, 0))
        with ledger_of(replicas, url) as ledger:
            return *_judged(ledger, acknowledged), len(acknowledged)


def hard_counts(quick):
    each = 4 if quick else 40
    told, held = [], True
    for name in ("SQLite", "PostgreSQL"):
        for kind in ("real", "uncounted"):
            if name == "SQLite":
                found = _sqlite(kind, each)
            else:
                with database() as url:
                    found = _postgres(kind, each, url)
            accepted, audits, lost, sound, people = found
            within = accepted <= QUOTA and audits <= BUDGET
            used = accepted == QUOTA or audits == BUDGET
            held &= lost == 0 and sound and ((within and used) if kind == "real" else not within)
            which = name if kind == "real" else f"a mutant ({kind})"
            told.append(
                f"{which}: {people} people, {accepted} accepted, at most {audits} audits that may "
                f"be bad, {lost} lost"
            )
    return TARGET, "; ".join(told), held
