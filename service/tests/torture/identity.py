"""One key, one answer, for ever; and one final state, however the reports about a decision are
interleaved.
"""

import asyncio
import random

from service.tests.bank import DAY, Bank
from service.tests.bank import application as asked
from service.tests.torture.serving import Process, application, folder

from evenhand.rounds import Rounds
from evenhand_service.ledger import Facts, Label, Override, Settlement, verify
from evenhand_service.trainer import append_rows


def bank(**options):
    """A bank in this process, with a clock that is turned by hand."""
    return Bank(folder() / "ledger.sqlite", **options)


def decided(made, bodies):
    """The entries of the answers to one batch after another."""
    found = []
    for start in range(0, len(bodies), 500):
        found += made.post(
            "/v1/decisions/batch", {"decisions": bodies[start : start + 500]}
        ).json()["decisions"]
    return found


async def _at_once(process, times, number):
    clients, different = [process.client() for _ in range(number)], 0
    for i in range(times):
        answers = await asyncio.gather(
            *(c.post("/v1/decisions", application(f"same-{i}")) for c in clients)
        )
        different += len(set(answers)) != 1 or answers[0] is None or answers[0][0] != 200
    for client in clients:
        client.close()
    return different


def identical_requests(quick):
    from service.tests.torture.kills import reopened

    times, place = 5 if quick else 100, folder()
    with Process(place).running() as process:
        different = asyncio.run(_at_once(process, times, 100))
    with reopened(place) as ledger:
        draws, sound = ledger.counts("loan").decisions, verify(ledger).ok
    figure = f"{times} x 100 at once over HTTP: {draws} draws, {different} times the bodies differ"
    return "one draw each, equal bodies", figure, different == 0 and draws == times and sound


def _others(key, chosen):
    """The same key with another body, in every way in which it can be another one."""
    score = chosen.random()
    return [
        asked(key, group="b"),
        asked(key),
        asked(key, features=[score], group="a"),
        asked(key, person=f"q{score}", group="a"),
        {**asked(key, features=[0.5, score], group="a"), "product": "card"},
    ]


def other_body(quick):
    made, number, chosen = bank(), 50 if quick else 2000, random.Random(1)
    first = decided(made, [asked(f"k{i}", group="a") for i in range(number)])
    tries = [body for i in range(number) for body in _others(f"k{i}", chosen)]
    chosen.shuffle(tries)
    passed = sum(entry.get("status") != 409 for entry in decided(made, tries))
    singles = tries[:: 10 if not quick else 50]
    passed += sum(made.post("/v1/decisions", body).status_code != 409 for body in singles)
    unchanged = decided(made, [asked(f"k{i}", group="a") for i in range(number)]) == first
    stored = made.ledger.counts("loan").decisions
    made.close()
    figure = (
        f"{len(tries) + len(singles):,} tries on {number:,} keys: {passed} passed; "
        f"first answers {'kept' if unchanged else 'CHANGED'}"
    )
    return "always a conflict", figure, passed == 0 and unchanged and stored == number


def late_retries(quick):
    made, number, changed = bank(), 50 if quick else 400, 0
    bodies = [asked(f"k{i}", group="a", features=[i / number]) for i in range(number)]
    first = [made.post("/v1/decisions", body).content for body in bodies]
    for days in (1, 399, 1600):
        made.clock.now += days * DAY
        changed += sum(
            made.post("/v1/decisions", body).content != kept
            for body, kept in zip(bodies, first, strict=True)
        )
    stored = made.ledger.counts("loan").decisions
    made.close()
    figure = (
        f"after 1, 400 and 2,000 days: {changed} of {3 * number:,} answers changed, "
        f"{stored - number} new draws"
    )
    return "identical answers", figure, changed == 0 and stored == number


REPORTS = [
    *(Label(label) for label in (-1, 1)),
    *(Settlement(label, "judge") for label in (-1, 1)),
    *(Override(accept, "clerk") for accept in (False, True)),
]
WEIGHTS = [6, 6, 2, 2, 1, 1]


def interleavings(quick):
    """Two people with the same decision hear the same set of reports, each in an order of its own
    and some of them twice.
    """
    made, pairs, chosen = bank(), 100 if quick else 3500, random.Random(6)
    _throw_coins(made)
    answers = decided(made, [asked(f"k{i}", group="a") for i in range(3 * pairs)])
    by_decision = {
        accept: [a["key"] for a in answers if a["accept"] == accept] for accept in (True, False)
    }
    told, expected = [], {}
    for keys in by_decision.values():
        for one, other in zip(keys[::2], keys[1::2], strict=False):
            reports = chosen.choices(REPORTS, WEIGHTS, k=chosen.randrange(1, 7))
            for key in (one, other):
                # a settlement comes after what it settles; without a dispute it is refused
                told += [
                    ((key, report), chosen.random() + isinstance(report, Settlement))
                    for report in reports + chosen.choices(reports, k=2)
                ]
            expected[one] = expected[other] = _folded(keys is by_decision[True], reports)
    told.sort(key=lambda pair: pair[1])
    for start in range(0, len(told), 997):
        made.ledger.report_many([report for report, _ in told[start : start + 997]])
    row_of = {answer["key"]: answer["row"] for answer in answers}
    rows = {row.seq: row for row in made.ledger.history("loan", usable_only=False)}
    wrong = sum(
        (rows[row_of[k]].status, rows[row_of[k]].label) != (s.status, s.label)
        for k, s in expected.items()
    )
    lineage = {p.epoch: p.id for p in made.ledger.policies("loan") if p.in_lineage}
    rounds = Rounds()
    rows = list(made.ledger.history("loan"))
    append_rows(rounds, rows, lineage, columns=1, maturity=None)
    leaked = int((rounds["label"][~rounds["accept"]] != 0).sum())
    trained = int((rounds["label"] != 0).sum())
    quarantined = made.ledger.counts("loan").quarantined
    made.close()
    figure = (
        f"{len(expected):,} interleavings of {len(told):,} reports: {wrong} in another state; "
        f"{trained:,} labels in training, {leaked} of rejected people ({quarantined:,} quarantined)"
    )
    return (
        "one final state; 0 labels of rejected people in training",
        figure,
        wrong == 0 and leaked == 0 and trained > 0,
    )


def _throw_coins(made):
    """A policy that accepts every second person, so that there are rejected ones."""
    from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
    from evenhand.policies import Mixture

    first = next(p for p in made.ledger.policies("loan") if p.in_lineage)
    coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
    info = {"guarantee": first.info["guarantee"]}
    made.ledger.publish("loan", coin, epoch=2, parent=first.id, checkpoint={}, info=info)
    made.service.decider.refresh(made.service.decider.product("loan"))


def _folded(accept, reports):
    facts = Facts(accept)
    for report in reports:
        facts = facts.with_report(report)
    return facts.standing
