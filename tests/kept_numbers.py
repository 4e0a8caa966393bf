"""The numbers that a change of words, formats or places must leave as they are, bit for bit.

`make numbers` plays one seeded learner per class and rate and the ten populations, solves,
certifies and measures one table, and compares every figure with the kept file;
`python -m tests.kept_numbers --write` writes it. A figure is kept as its bits (`float.hex`), long
rows of decisions as their SHA-256. The bits depend on the processor's arithmetic too: compare on
the machine, or on one of the kind, that wrote the file.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from tests.claims.ten_populations import POPULATIONS, learner_of, world_of
from tests.play import Nominated

import evenhand as eh
from evenhand.algorithms.certified.state import CertifiedState

KEPT = Path(__file__).with_name("kept_numbers.json")
RATES = ("fpr", "fnr", "selection", ("fpr", "fnr"))
PEOPLE, BLOCK = 3000, 150
POPULATION_PEOPLE = 8000


def bits(values: Iterable[float]) -> list[str]:
    return [float(value).hex() for value in values]


def digest(values: Any) -> str:
    array = np.ascontiguousarray(values, dtype=np.float64)
    return hashlib.sha256(array.tobytes()).hexdigest()


def people(seed: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two features, two groups, and labels of which the first feature tells most."""
    draw = np.random.default_rng(seed)
    group = np.where(draw.random(size) < 0.35, "b", "a")
    score = np.round(draw.normal(0.4 - 0.3 * (group == "b"), 1.0), 1)
    other = draw.integers(0, 5, size).astype(float)
    good = draw.random(size) < 1 / (1 + np.exp(-(1.2 * score + 0.2 * (other - 2))))
    return np.column_stack([score, other]), group, np.where(good, 1, -1)


def classes() -> dict[str, Any]:
    rules = tuple(
        eh.hypotheses.LinearRule((1.0, tilt), cut)
        for tilt in (0.0, 0.2)
        for cut in (-1.0, 0.0, 1.0)
    )
    return {
        "stumps": eh.Stumps(),
        "thresholds": eh.ScoreThresholds(),
        "linear": eh.Linear(),
        "finite": eh.FiniteClass(rules),
        "own model": eh.Estimator(LogisticRegression()),
        "a cut-off per group": eh.ScoreThresholds(),
    }


def features_of(name: str, rows: np.ndarray) -> np.ndarray:
    return rows[:, :1] if name in ("thresholds", "a cut-off per group") else rows


def mixture(policy: Any) -> dict[str, Any]:
    return {
        "weights": bits(policy.weights),
        "rules": [json.dumps(rule.to_json(), sort_keys=True) for rule in policy.hypotheses],
    }


def intervals(gaps: Iterable[Any]) -> list[list[str]]:
    return [bits([one.low, one.high]) for one in gaps]


def played(learner: Any, rows: np.ndarray, group: np.ndarray, label: np.ndarray) -> dict[str, Any]:
    """What it decides in blocks with every label reported, and where it stands in the end."""
    accepted = []
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        decisions = learner.decide(rows[block], group[block])
        accepted.append(decisions.accept)
        took = decisions.accept
        learner.observe(decisions.round[took], label[block][took])
    found = {
        "accepted": digest(np.concatenate(accepted)),
        "policy": mixture(learner.policy),
    }
    state = learner.state
    if isinstance(state, CertifiedState):
        found["gaps"] = intervals(learner.certificate.gaps)
        if state.process is not None:
            _, lower, upper = state.certified()
            found |= {"lower": digest(lower), "upper": digest(upper)}
    return found


def class_and_rate() -> dict[str, Callable[[], Any]]:
    """One seeded learner per class and rate."""
    rows, group, label = people(1, PEOPLE)
    asked: dict[str, Callable[[], Any]] = {}
    for name, rules in classes().items():
        use = "decide" if name == "a cut-off per group" else "certify_only"
        for rate in RATES:

            def certified(name=name, rules=rules, rate=rate, use=use, **settings):
                settings |= {"group_use": use, "seed": 3}
                learner = eh.CertifiedLearner(rules, rate, 0.2, 0.1, **settings)
                return played(learner, features_of(name, rows), group, label)

            def two_phase(name=name, rules=rules, rate=rate, use=use):
                settings = dict(horizon=PEOPLE, comparator_gap=0.05, group_use=use, seed=3)
                learner = eh.TwoPhaseLearner(rules, rate, 0.45, 0.1, **settings)
                return played(learner, features_of(name, rows), group, label)

            asked[f"certified, {name}, {rate}"] = certified
            if name == "thresholds":
                nominate = partial(certified, rules=Nominated(rules), horizon=PEOPLE)
                asked[f"certified, nominated {name}, {rate}"] = nominate
            if name not in ("own model", "linear"):  # it needs a class whose growth is known
                asked[f"two-phase, {name}, {rate}"] = two_phase
    return asked


def ten_populations() -> dict[str, Callable[[], Any]]:
    asked: dict[str, Callable[[], Any]] = {}
    for name in POPULATIONS:

        def run(name=name):
            drawn = world_of(name).draw(POPULATION_PEOPLE, np.random.default_rng(7))
            learner = learner_of(name, seed=5)
            return played(learner, drawn.features, drawn.group, drawn.label)

        asked[f"population, {name}"] = run
    return asked


def one_table() -> dict[str, Callable[[], Any]]:
    """What is solved, certified and measured on a table."""
    rows, group, label = people(2, 2000)
    prices = eh.Prices(2.0, 1.0)
    asked: dict[str, Callable[[], Any]] = {}
    for name, rules in classes().items():
        sample = eh.LabelledSample(features_of(name, rows), group, label)
        use = "decide" if name == "a cut-off per group" else "certify_only"
        for rate in RATES:

            def solved(sample=sample, rules=rules, rate=rate, use=use):
                problem = prices.problem(sample.features, sample.group, sample.label)
                found = eh.solve_fair(problem, rules, rate, sample, 0.05, group_use=use)
                return mixture(found.policy)

            def certified(sample=sample, rules=rules, rate=rate, use=use):
                found = eh.certify(
                    rules, sample, 0.12, rates=rate, prices=prices, group_use=use, seed=4
                )
                claim = found.certificate
                gaps = [] if claim is None else intervals(claim.gaps)
                return {"policy": mixture(found.policy), "gaps": gaps}

            asked[f"solved, {name}, {rate}"] = solved
            asked[f"certified on a table, {name}, {rate}"] = certified
    sample = eh.LabelledSample(rows, group, label)

    def alternatives():
        found = eh.alternatives(eh.Stumps(), sample, rows[:, 0] > 0.5, rates="selection")
        ends = [found.incumbent_cost, found.incumbent_gap, *found.incumbent_gap_interval]
        return bits(np.ravel(ends))

    def planned():
        asked = dict(limit=0.1, horizon=20_000, per_day=100, runs=3)
        shares, bad = {"a": 0.7, "b": 0.3}, {"a": 0.3, "b": 0.4}
        found = eh.plan(group_shares=shares, bad_rates=bad, auc=0.75, accept_at_most=0.6, **asked)
        spreads = (found.audited, found.bill, found.bill_beyond_constant, found.saving)
        costs = (found.constant_cost, found.best_cost, found.free_cost, found.full_weight)
        curves = {"weight": digest(found.weight.mean), "accepted": digest(found.accepted.mean)}
        return curves | {
            "costs": bits(costs),
            "saving": [bits([s.mean, s.low, s.high]) for s in spreads],
        }

    asked |= {"alternatives": alternatives, "a launch's plan": planned}
    for compare in ("difference", "ratio"):

        def measured(compare=compare):
            found = eh.measure(rows[:, 0] > 0, group, label, compare=compare)
            return {one.name: measured_rate(one) for one in found.rates}

        asked[f"measured, {compare}"] = measured
    return asked


def measured_rate(one: Any) -> dict[str, Any]:
    ends = ("difference", "ratio")
    pairs = [
        bits([getattr(pair, end), *getattr(pair, f"{end}_interval")])
        for pair in one.pairs
        for end in ends
        if getattr(pair, f"{end}_interval") is not None
    ]
    return {"groups": [bits([each.lower, each.upper]) for each in one.groups], "pairs": pairs}


def every() -> dict[str, Callable[[], Any]]:
    return {**one_table(), **class_and_rate(), **ten_populations()}


def figure(ask: Callable[[], Any]) -> Any:
    """What is found, or the kind of refusal."""
    try:
        return ask()
    except eh.EvenhandError as refusal:
        return {"refused": type(refusal).__name__}


def main() -> int:
    kept = {} if "--write" in sys.argv else json.loads(KEPT.read_text())
    changed = []
    found = {}
    for name, ask in every().items():
        found[name] = figure(ask)
        same = kept.get(name) == found[name]
        if kept and not same:
            changed.append(name)
            print(f"changed: {name}", flush=True)
    if not kept:
        KEPT.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
        print(f"written: {len(found)} sets of figures")
        return 0
    gone = sorted(kept.keys() - found.keys())
    print(f"{len(found) - len(changed)} of {len(found)} sets of figures are the same, bit for bit.")
    for name in gone:
        print(f"not asked any more: {name}")
    return int(bool(changed or gone))


if __name__ == "__main__":
    sys.exit(main())
