"""One small record of each kind that a page is written from."""

from functools import cache

import numpy as np

import evenhand as eh
from evenhand.evaluation import Candidate, DecisionLog, evaluate
from evenhand.evaluation.measurement import measure_policy
from evenhand.policies import Mixture


@cache
def people() -> eh.LabelledSample:
    rng = np.random.default_rng(5)
    score = rng.random((600, 1))
    label = np.where(rng.random(600) < score[:, 0], 1, -1)
    return eh.LabelledSample(score, rng.choice(["a", "b<i>"], 600), label)


@cache
def policy() -> Mixture:
    certified = eh.certify(eh.Stumps(), people(), limit=0.2)
    return certified.policy


@cache
def record(kind: str) -> object:
    """The record by the name of the command that makes it."""
    sample = people()
    rng = np.random.default_rng(6)
    accepted = sample.features[:, 0] > 0.5
    groupings = {"sex": list(sample.group), "race": rng.choice(list("uvw"), 600).tolist()}
    if kind == "measure":
        return eh.measure(accepted, sample.group, sample.label.astype(float), compare="both")
    if kind == "measure, crossed":
        label = np.where(accepted, sample.label, np.nan)
        return eh.measure(accepted, groupings, label, fewest=30)
    if kind == "watch":
        return eh.measure(accepted, sample.group, rates="selection", watch=True)
    if kind == "test":
        return measure_policy(policy(), sample)
    if kind == "certify":
        return eh.certify(policy(), sample, limit=0.05, ceilings={"selection": 0.6})
    if kind == "certify, fitted":
        return eh.certify(eh.Stumps(), sample, limit=0.2)
    if kind == "impact":
        few = ["rare" if j < 5 else str(one) for j, one in enumerate(sample.group)]
        few[-3:] = ["", "", ""]
        return eh.impact(accepted, {"sex": few, "race": groupings["race"]})
    if kind == "plan":
        return eh.plan(
            limit=0.1,
            group_shares={"a": 0.6, "b": 0.4},
            bad_rates=0.4,
            auc=0.85,
            per_day=50,
            days=40,
            runs=1,
        )
    if kind == "alternatives":
        return eh.alternatives(eh.Stumps(), sample, accepted)
    chance = 0.2 + 0.6 * sample.features[:, 0]
    taken = rng.random(600) < chance
    label = np.where(taken, sample.label, 0)
    if kind == "evaluate":
        log = DecisionLog.of(sample.features, taken, chance, label, group=sample.group)
        return evaluate(log, Candidate.read("accept-all"), limit=0.1)
    raise KeyError(kind)


TOLD = (
    "measure",
    "measure, crossed",
    "watch",
    "test",
    "certify",
    "certify, fitted",
    "impact",
    "alternatives",
    "plan",
    "evaluate",
)
