"""A run epoch by epoch: what was certified, what was true, and what ordinary tools would have
measured.

in sample    |gap| of the epoch's policy on all labels gathered before it, each label counted once, as if the accepted were the population
true         |gap| of the policy on the population
certified    the largest |gap| that the learner's certificate allowed for that policy (certified learners only)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Environment, Policy, Rate
from evenhand.environments import Discrete
from evenhand.errors import CannotEstimateRate
from evenhand.fairness import GapConstraints
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner, EpochLearner
from evenhand.policies import Mixture
from evenhand.simulate.run import Run
from evenhand.words import FloatArray, IntArray, LabelledSample

_COLUMNS = ("gap", "in_sample", "certified", "weight", "audit")


@dataclass(frozen=True, eq=False)
class Trail:
    """One entry per epoch. rounds: where it ends; weight: share of the policy that is not a
    constant; audit: the weight of accept-all.

    in_sample is NaN where nothing was gathered yet, certified where the learner certifies nothing.
    """

    rounds: IntArray
    gap: FloatArray
    in_sample: FloatArray
    certified: FloatArray
    weight: FloatArray
    audit: FloatArray

    def at(self, column: str, rounds: FloatArray) -> FloatArray:
        """A column at given rounds."""
        values: FloatArray = getattr(self, column)
        return values[np.minimum(np.searchsorted(self.rounds, rounds), len(values) - 1)]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; NaN becomes null."""
        return {
            "rounds": self.rounds.tolist(),
            **{name: _nulls(getattr(self, name)) for name in _COLUMNS},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Trail":
        """What `to_json` wrote, bit for bit."""
        return cls(
            np.array(document["rounds"], np.int64),
            **{name: np.array(document[name], np.float64) for name in _COLUMNS},
        )


def trail(run: Run[Any], environment: Environment) -> Trail | None:
    """The trail of a run of a learner with epochs on a discrete population; None elsewhere."""
    if not isinstance(environment, Discrete) or not isinstance(run.learner, EpochLearner):
        return None
    return Trail(
        rounds=run.rounds,
        gap=run.gaps,
        in_sample=_in_sample(run, environment),
        certified=_certified(run),
        weight=np.array([learned_weight(policy) for policy in run.policies]),
        audit=np.array([audit_weight(policy) for policy in run.policies]),
    )


def learned_weight(policy: Policy) -> float:
    """How much of a policy is not a constant; all of one that is no mixture."""
    if not isinstance(policy, Mixture):
        return 1.0
    return float(
        sum(
            w
            for h, w in zip(policy.hypotheses, policy.weights, strict=True)
            if h not in (ACCEPT_ALL, REJECT_ALL)
        )
    )


def audit_weight(policy: Policy) -> float:
    """The weight of accept-all; a policy that is no mixture has none."""
    if not isinstance(policy, Mixture):
        return 0.0
    return float(
        sum(w for h, w in zip(policy.hypotheses, policy.weights, strict=True) if h == ACCEPT_ALL)
    )


def _certified(run: Run[EpochLearner]) -> FloatArray:
    if not isinstance(run.learner, CertifiedLearner):
        return np.full(len(run.rounds), np.nan)
    ends = [
        max(float(hi.max(initial=0.0)), float(-lo.min(initial=0.0)))
        for _, lo, hi in run.learner.trail
    ]
    return np.array(ends[: len(run.rounds)])


def _in_sample(run: Run[EpochLearner], environment: Discrete) -> FloatArray:
    """On the labels of all earlier epochs."""
    rates = run.learner.rates
    good, bad = np.zeros(len(environment)), np.zeros(len(environment))
    by_epoch = _gathered(run, len(environment))
    found = []
    for number, policy in enumerate(run.policies, start=1):
        found.append(_gap_on(good, bad, policy, environment, rates))
        more = by_epoch.get(number)
        if more is not None:
            good, bad = good + more[0], bad + more[1]
    return np.array(found)


def _gathered(run: Run[EpochLearner], contexts: int) -> dict[int, FloatArray]:
    """epoch -> (good, bad) labels per context; a context's number is its only feature."""
    found: dict[int, FloatArray] = {}
    for epoch, log in run.learner.gathered:
        place = log.features[:, 0].astype(np.int64)
        counts = np.array(
            [np.bincount(place, column, contexts) for column in (log.positive, log.negative)]
        )
        found[epoch] = found.get(epoch, np.zeros((2, contexts))) + counts
    return found


def _gap_on(
    good: FloatArray, bad: FloatArray, policy: Policy, environment: Discrete, rates: Sequence[Rate]
) -> float:
    label, count = np.repeat([1, -1], len(good)), np.concatenate([good, bad])
    seen = count > 0
    if not seen.any():
        return float("nan")
    sample = LabelledSample(
        np.tile(environment.features, (2, 1))[seen],
        np.tile(environment.group, 2)[seen],
        label[seen],
        count[seen],
    )
    try:
        constraints = GapConstraints.on(rates, sample)
    except CannotEstimateRate:
        return float("nan")
    return float(np.abs(constraints.gaps(policy.acceptance(sample.features, sample.group))).max())


def _nulls(values: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
