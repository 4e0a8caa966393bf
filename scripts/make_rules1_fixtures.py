"""How the files of tests/fixtures/rules1 were made: ledgers and saved learners written under rules
1.

Rules 1 are those of commit d7f24b2 and everything before it. The script runs with that code only
and refuses any other. From a checkout of that commit,

    PYTHONPATH=src python make_rules1_fixtures.py TARGET postgresql://user@host:port

TARGET is a new directory; on the server a database is made and dropped for each ledger (pg_dump
must be on the PATH).

    TARGET/full, TARGET/spent     one ledger each: ledger.sqlite.xz, ledger.sql.xz (the same
                                  entries on PostgreSQL: pg_dump --inserts), keyring.json,
                                  service.toml, record.json.xz (what the old code says about both)
    TARGET/learners/*.xz          saved learners, and record.json.xz: their round, phase, policy
                                  and certificate
"""

import asyncio
import json
import lzma
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

import evenhand as eh
from evenhand.environments import Discrete
from evenhand.hypotheses import ScoreThresholds
from evenhand.learners import (
    AcceptAll,
    Exp4,
    ExploreThenCommit,
    FairOnGathered,
    Unconstrained,
    Uniform,
)
from evenhand.ledger import (
    GroupTold,
    Keyring,
    Label,
    Ledger,
    Override,
    Settlement,
    WindowPlan,
    database,
    verify,
)
from evenhand.service import KeyStore, load_settings, render
from evenhand.service.schemas import Asked
from evenhand.service.state import Service

DAY = 86400.0
FULL = """[service]
ledger = "ledger.sqlite"
keyring = "keyring.json"
keys = "keys.json"
window_days = 30

[[product]]
tenant = "bank"
name = "loan"
features = ["score", "income"]
class = "thresholds"
score = "score"
rates = ["fpr"]
limit = 0.3
delta = 0.05
maturity_days = 5
price_false_accept = 3.0
seed = 3
"""
SPENT = """[service]
ledger = "ledger.sqlite"
keyring = "keyring.json"
keys = "keys.json"
window_days = 30

[[product]]
tenant = "bank"
name = "card"
features = ["score"]
class = "thresholds"
score = "score"
rates = ["selection"]
limit = 0.1
delta = 0.05
groups = ["north", "south"]
audit_budget = 2
seed = 4
"""


class Clock:
    """Seconds since the epoch, turned by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Life:
    """A service without HTTP: its decider, its trainer, its operators."""

    def __init__(self, where: str, home: Path) -> None:
        settings, self.clock = load_settings(home / "service.toml"), Clock()
        self.product = settings.products[0]
        self.names = (self.product.tenant, self.product.name)
        entropy = random.Random(10).randbytes
        keyring = Keyring.load(home / "keyring.json")
        plan = WindowPlan(settings.window_days * DAY)
        self.ledger = Ledger.open(
            where, keyring=keyring, clock=self.clock, windows=plan, render=render, entropy=entropy
        )
        self.service = Service(self.ledger, settings, KeyStore(None))
        self.service.begin()
        self.generator, self.number = np.random.default_rng(8), 0
        self.accepted: dict[str, int] = {}

    def arrive(
        self, people: int, *, without_group: bool = False, mode_only: bool = False
    ) -> list[str]:
        """People apply, a tenth of a day apart; the labels of the accepted are kept for later."""
        keys = []
        for _ in range(people):
            north = bool(self.generator.random() < 0.6)
            score = 50.0 * self.generator.integers(4, 16)
            good = bool(self.generator.random() < (score - 150) / 700 + (0.1 if north else 0.0))
            features = [score, 10.0 * self.generator.integers(1, 9)][: len(self.product.features)]
            key = f"k{self.number}"
            asked = Asked(
                key=key,
                person=f"p{self.number}",
                product=self.product.name,
                features=features,
                group=None if without_group else ("north" if north else "south"),
            )
            answer = asyncio.run(self.service.decider.decide(self.product.tenant, [asked]))[0]
            if answer.drawn.accept and not mode_only:
                self.accepted[key] = 1 if good else -1
            keys.append(key)
            self.number += 1
            self.clock.now += DAY / 10
        return keys

    def repay(self, spare: int = 0) -> None:
        """Labels of everybody who waits, except every `spare`-th."""
        told = [
            (key, label)
            for n, (key, label) in enumerate(self.accepted.items())
            if not spare or n % spare
        ]
        self.ledger.report_many([(self.names[0], key, Label(label)) for key, label in told])
        self.accepted = {}

    def told(self, key: str, report: object) -> None:
        self.ledger.report(self.names[0], key, report)

    def drawn(self, keys: list[str], *, accept: bool) -> Iterator[str]:
        return (key for key in keys if self.ledger.find(self.names[0], key).drawn.accept == accept)

    def close(self) -> None:
        self.service.trainer(self.product).close()
        self.service.decider.refresh(self.product)

    @property
    def record(self) -> dict[str, object]:
        """What the old code says about it."""
        assert verify(self.ledger, deep=True).ok
        return {
            "counts": asdict(self.ledger.counts(*self.names)),
            "head": self.ledger.signed_head().to_json(),
            "policies": [p.signed | {"row": p.seq} for p in self.ledger.policies(*self.names)],
            "certificates": [asdict(row) for row in self.ledger.certificates(*self.names)],
            "history": [
                [r.seq, r.accept, r.label, r.status, r.erased]
                for r in self.ledger.history(*self.names)
            ],
            "actions": [event.action for event in self.ledger.events(*self.names)],
        }


def full(life: Life) -> None:
    """Certificates, outcomes, overrides of every kind, erasures, late groups, a dispute,
    quarantine, a kill, a rollback, shadow mode.
    """
    first = life.arrive(80)
    life.repay(spare=9)
    life.clock.now += 5 * DAY
    life.close()
    second = life.arrive(30) + life.arrive(8, without_group=True)
    life.repay(spare=7)
    yes, no = life.drawn(second, accept=True), life.drawn(second, accept=False)
    life.told(next(yes), Override(False, "clerk", "the payslip was forged"))
    life.told(next(yes), Override(True, "clerk", "agreed"))
    life.told(next(no), Override(True, "clerk", "a regular customer"))
    life.told(next(no), Override(False, "clerk", "agreed"))
    for number, key in enumerate(second[30:36]):
        life.told(key, GroupTold("north" if number % 2 else "south"))
    disputed = next(yes)
    life.told(disputed, Label(1))
    life.told(disputed, Label(-1))
    life.told(disputed, Settlement(1, "judge", "looked at the account"))
    life.told(next(no), Label(1))  # quarantined
    life.ledger.erase("bank", "p3", "officer")
    life.clock.now += 6 * DAY
    life.close()
    operate = partial(life.service.decider.operate, life.product, by="operator", note="a test")
    operate("kill", constant="accept")
    life.arrive(4, mode_only=True)
    operate("revive")
    operate("shadow")
    life.arrive(3, mode_only=True)
    operate("live")
    third = life.arrive(40)
    life.repay(spare=5)
    life.told(next(life.drawn(third, accept=True)), Override(False, "clerk"))
    life.ledger.erase("bank", "p130", "officer")
    life.clock.now += 6 * DAY
    life.close()
    operate("rollback")
    last = life.arrive(12)
    life.repay(spare=4)
    life.told(next(life.drawn(last, accept=True)), Override(False, "clerk"))
    life.ledger.erase("bank", first[50].replace("k", "p"), "officer")
    life.ledger.reveal(life.ledger.windows()[0].name, "auditor")


def spent(life: Life) -> None:
    """An audit budget that is spent: the last policies have the phase "frozen"."""
    life.arrive(60)
    life.repay()
    life.close()
    for _ in range(4):
        life.arrive(15)
        life.repay()
        life.close()
    life.arrive(6)
    phases = [p.info["phase"] for p in life.ledger.policies(*life.names) if p.in_lineage]
    assert phases[-1] == phases[-2] == "frozen", phases


def ledgers(target: Path, server: str) -> None:
    """Both lives on both databases."""
    import psycopg

    for name, settings, live in (("full", FULL, full), ("spent", SPENT, spent)):
        home = target / name
        home.mkdir(parents=True)
        (home / "service.toml").write_text(settings)
        Keyring(bytes(range(32))).save(home / "keyring.json")
        records = {}
        with tempfile.TemporaryDirectory() as scratch:
            life = Life(f"{scratch}/ledger.sqlite", home)
            live(life)
            records["sqlite"] = life.record
            life.ledger.close()
            (home / "ledger.sqlite.xz").write_bytes(
                lzma.compress(Path(f"{scratch}/ledger.sqlite").read_bytes(), preset=9)
            )
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE rules1_{name}")
            life = Life(f"{server}/rules1_{name}", home)
            live(life)
            records["postgresql"] = life.record
            life.ledger.close()
            words = [
                "pg_dump",
                "--inserts",
                "--no-owner",
                "--no-privileges",
                f"{server}/rules1_{name}",
            ]
            dump = subprocess.run(words, check=True, capture_output=True).stdout
            (home / "ledger.sql.xz").write_bytes(lzma.compress(dump, preset=9))
            connection.execute(f"DROP DATABASE rules1_{name}")
        (home / "record.json.xz").write_bytes(
            lzma.compress(json.dumps(records, sort_keys=True).encode(), preset=9)
        )


# learners


def world() -> Discrete:
    """Six contexts, three in each of two groups; six hypotheses."""
    accepts = [
        [1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 0],
        [1, 1, 0, 1, 1, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 1, 1, 1, 1, 0],
    ]
    group = np.repeat(np.array(["a", "b"]), 3)
    return Discrete(
        [0.2, 0.2, 0.15, 0.15, 0.15, 0.15],
        [0.9, 0.55, 0.2, 0.8, 0.45, 0.1],
        group,
        np.array(accepts, bool),
    )


def play(
    learner: eh.TwoPhaseLearner,
    rounds: int,
    *,
    timed: bool = False,
    told: float = 1.0,
    flip: bool = False,
) -> None:
    """People of the small world in blocks of 50; `timed`: five days a block; `told`: the share of
    labels that come.
    """
    generator = np.random.default_rng(rounds)
    for start in range(0, rounds, 50):
        sample = world().draw(min(50, rounds - start), generator)
        when = {"at": learner.round / 10} if timed else {}
        found = learner.decide(sample.features, sample.group, **when)
        came = found.accept & (generator.random(len(sample.label)) < told)
        label = -sample.label if flip else sample.label
        learner.observe(found.first_round + np.flatnonzero(came), label[came])


def learners(target: Path) -> None:
    """Every kind, at the points of a life that differ."""
    table, fpr = world().hypotheses, eh.FalsePositiveRate()
    score = ScoreThresholds(0)

    def certified(hypotheses: object, **more: object) -> eh.CertifiedLearner:
        return eh.CertifiedLearner(
            hypotheses, more.pop("rate", fpr), more.pop("limit", 0.3), 0.1, seed=5, **more
        )

    def two_phase(kind: type, **more: object) -> eh.TwoPhaseLearner:
        return kind(table, fpr, 0.4, 0.1, 3000, comparator_gap=0.02, seed=5, **more)

    made = {
        "certified-table": (certified(table), {"rounds": 1500}),
        "certified-thresholds": (certified(score), {"rounds": 1500}),
        "certified-stumps": (certified(eh.Stumps()), {"rounds": 800}),
        "certified-decide": (
            certified(table, group_use="decide", groups=["a", "b"]),
            {"rounds": 800},
        ),
        "certified-nominate": (certified(eh.Linear(), horizon=20_000), {"rounds": 1500}),
        "certified-kl": (certified(table, bound="kl"), {"rounds": 1500}),
        "certified-maturity": (
            certified(table, maturity=20.0),
            {"rounds": 900, "timed": True, "told": 0.8},
        ),
        "certified-pending": (certified(table), {"rounds": 900, "told": 0.7}),
        "certified-suspended": (certified(table), {"rounds": 1500}),
        "certified-frozen": (
            certified(table, rate=eh.SelectionRate(), audit_budget=20),
            {"rounds": 600},
        ),
        "two-phase-exploring": (two_phase(eh.TwoPhaseLearner), {"rounds": 130, "told": 0.8}),
        "two-phase-bandit": (two_phase(eh.TwoPhaseLearner), {"rounds": 1500}),
        "explore-then-commit": (two_phase(ExploreThenCommit), {"rounds": 1500}),
        "explore-then-commit-waiting": (two_phase(ExploreThenCommit), {"rounds": 100, "told": 0.5}),
        "exp4": (two_phase(Exp4), {"rounds": 1500}),
        "unconstrained": (Unconstrained(table, fpr, seed=5), {"rounds": 700}),
        "fair-on-gathered": (FairOnGathered(table, fpr, 0.1, seed=5), {"rounds": 700}),
        "accept-all": (AcceptAll(seed=5), {"rounds": 70}),
        "uniform": (Uniform(seed=5), {"rounds": 70}),
    }
    target.mkdir(parents=True)
    record = {}
    for name, (learner, how) in made.items():
        play(learner, **how)
        if name == "certified-suspended":
            for _ in range(40):
                play(learner, 150, flip=True)
                if learner.state.run.number > 1:
                    break
            assert learner.state.run.number == 2
        with tempfile.TemporaryDirectory() as scratch:
            learner.save(f"{scratch}/learner")
            packed = lzma.compress(Path(f"{scratch}/learner").read_bytes(), preset=9)
        (target / f"{name}.xz").write_bytes(packed)
        record[name] = {
            "round": learner.round,
            "phase": learner.epoch.phase,
            "epoch": learner.epoch.number,
            "policy": learner.policy.to_json(),
            "missing_labels": learner.report.missing_labels,
            "notes": list(learner.report.notes),
            "certificate": learner.certificate.to_json()
            if isinstance(learner, eh.CertifiedLearner)
            else None,
        }
    assert record["certified-frozen"]["phase"] == "frozen"
    assert record["two-phase-exploring"]["phase"] == "explore"
    assert record["two-phase-bandit"]["phase"] == "bandit"
    (target / "record.json.xz").write_bytes(
        lzma.compress(json.dumps(record, sort_keys=True).encode(), preset=9)
    )


def main(target: Path, server: str) -> None:
    """Everything, unless the code is not that of rules 1."""
    if len(database.MIGRATIONS) != 2:
        raise SystemExit(
            "this evenhand writes newer rules; "
            "the fixtures of rules 1 are made by the code of rules 1 alone."
        )
    learners(target / "learners")
    ledgers(target, server)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
