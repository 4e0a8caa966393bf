"""How the files of tests/fixtures/rules2 were made: learners saved under rules 2, by the code of
commit 63cdb27.

From a checkout of that commit: PYTHONPATH=src python make_rules2_fixtures.py TARGET
"""

import json
import lzma
import sys
from pathlib import Path

import numpy as np

import evenhand as eh
from evenhand.environments import random_population
from evenhand.fairness.certificate import RULES
from evenhand.randomness import stream

WORLD = random_population(7, contexts=20, hypotheses=12)
FPR = eh.FalsePositiveRate()


def played(learner, rounds):
    """The learner after so many people."""
    people = stream(1, "people")
    while learner.round < rounds:
        came = WORLD.sample(min(100, max(learner.rounds_left, 1)), people)
        decisions = learner.decide(came.features, came.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, came.label[accepted])
    return learner


def main(target: Path) -> None:
    """Write the learners and what the code says about them."""
    if RULES != 2:
        raise SystemExit(f"this evenhand has rules {RULES}; check out commit 63cdb27.")
    target.mkdir(parents=True)
    learners = {
        "certified": (eh.CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.05, seed=3), 1500),
        "frozen": (
            eh.CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.05, seed=3, audit_budget=60),
            3000,
        ),
        "two-phase": (
            eh.TwoPhaseLearner(
                WORLD.hypotheses, FPR, 0.3, 0.05, 2000, exploration_rounds=400, seed=3
            ),
            900,
        ),
    }
    record = {}
    for name, (learner, rounds) in learners.items():
        played(learner, rounds).save(target / name)
        (target / f"{name}.xz").write_bytes(lzma.compress((target / name).read_bytes()))
        (target / name).unlink()
        bookings = [[entry.process, entry.share] for entry in getattr(learner, "bookings", ())]
        record[name] = {"round": learner.round, "phase": learner.epoch.phase, "bookings": bookings}
    (target / "record.json").write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
