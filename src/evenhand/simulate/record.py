"""A run as plain numbers: what a report needs, small enough to come back from another process and
to be kept as JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from evenhand.contracts import Environment, Learner
from evenhand.environments.truth import TablePopulation
from evenhand.learners import AcceptAll, CertifiedLearner, EpochLearner, TwoPhaseLearner, Uniform
from evenhand.simulate.diagnostics import policy_set, regret_in_set
from evenhand.simulate.run import Run
from evenhand.simulate.trail import Trail, trail
from evenhand.words import FloatArray, IntArray

_INTEGERS = ("rounds", "accepted")
_NUMBERS = ("regret", "gaps", "losses")


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The arrays of `Run`, one entry per stretch of rounds with one policy, and what is known about
    the learner at its end.

    promised: whether the learner's own bound certifies the limit for every policy it deployed (a
    slack above the limit does not). slack: beta of the exploration sample. regret_in_set and
    worst_gap_in_set: the truth about the learner's own set Pi.
    """

    seed: int
    rounds: IntArray
    regret: FloatArray
    gaps: FloatArray
    losses: FloatArray
    accepted: IntArray
    phases: tuple[str, ...]
    optimum: float
    oracle_calls: int
    seconds: float
    promised: bool
    slack: float | None = None
    regret_in_set: float | None = None
    worst_gap_in_set: float | None = None
    note: str = ""
    trail: Trail | None = None

    @property
    def lengths(self) -> IntArray:
        """Rounds of each stretch."""
        return np.diff(self.rounds, prepend=0)

    @property
    def worst_gap(self) -> float:
        """The largest |true gap| ever deployed."""
        return float(self.gaps.max())

    @property
    def explored(self) -> int:
        """Rounds in which everybody was accepted in order to learn."""
        return int(self.lengths[[phase == "explore" for phase in self.phases]].sum())

    @property
    def exploration_regret(self) -> float:
        """The part of the regret that those rounds cost."""
        exploring = np.array([phase == "explore" for phase in self.phases])
        return float((self.lengths * (self.losses - self.optimum))[exploring].sum())

    def share_above(self, limit: float) -> float:
        """The share of rounds whose policy had a true gap above the limit."""
        return float(self.lengths[self.gaps > limit + 1e-9].sum() / self.rounds[-1])

    def regret_at(self, rounds: FloatArray) -> FloatArray:
        """Cumulative regret after each of `rounds`: linear within a stretch, where the policy does
        not change.
        """
        return np.interp(rounds, np.r_[0, self.rounds], np.r_[0.0, self.regret])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return (
            plain
            | {name: plain[name].tolist() for name in _INTEGERS + _NUMBERS}
            | {
                "phases": list(self.phases),
                "trail": None if self.trail is None else self.trail.to_json(),
            }
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "RunRecord":
        """What `to_json` wrote, bit for bit."""
        arrays: dict[str, Any] = {name: np.array(document[name], np.int64) for name in _INTEGERS}
        arrays |= {name: np.array(document[name], np.float64) for name in _NUMBERS}
        followed = document.get("trail")
        arrays["trail"] = None if followed is None else Trail.from_json(followed)
        return cls(**{**document, **arrays, "phases": tuple(document["phases"])})


def record(run: Run[Any], environment: Environment, limit: float) -> RunRecord:
    """The numbers of a run; consecutive epochs with the same policy become one stretch."""
    last = _ends_of_stretches(run)
    accepted = np.diff(np.cumsum(run.accepted)[last], prepend=0)
    slack = getattr(run.learner, "slack", None)
    return RunRecord(
        seed=run.seed,
        rounds=run.rounds[last],
        regret=run.regret[last],
        gaps=run.gaps[last],
        losses=run.losses[last],
        accepted=accepted,
        phases=tuple(run.phases[i] for i in last),
        optimum=run.optimum,
        oracle_calls=run.oracle_calls,
        seconds=run.seconds,
        promised=promises(run.learner, limit),
        slack=None if slack is None else slack.beta,
        note=" ".join(run.learner.notes) if isinstance(run.learner, EpochLearner) else "",
        trail=trail(run, environment),
        **_own_set(run, environment),
    )


def promises(learner: Learner, limit: float) -> bool:
    """Whether the learner's bound covers `limit` for all it has deployed: constants have gap 0; a
    set Pi needs limit + beta within it.
    """
    if limit >= 1 or isinstance(learner, AcceptAll | Uniform):
        return True
    if isinstance(learner, CertifiedLearner):
        return learner.allowed_gap <= limit
    if not isinstance(learner, TwoPhaseLearner):
        return False
    return learner.slack is None or learner.slack.limit + learner.slack.beta <= limit + 1e-9


def _ends_of_stretches(run: Run[Any]) -> IntArray:
    same = (np.diff(run.gaps) == 0) & (np.diff(run.losses) == 0)
    same &= np.array(run.phases[1:], str) == np.array(run.phases[:-1], str)
    return np.flatnonzero(np.append(~same, True))


def _own_set(run: Run[Any], environment: Environment) -> dict[str, float]:
    """Regret inside the learner's own set and its worst member, where there is such a set and the
    population is a table.
    """
    learner = run.learner
    if (
        not isinstance(learner, TwoPhaseLearner)
        or learner.slack is None
        or not isinstance(environment, TablePopulation)
    ):
        return {}
    return {
        "regret_in_set": float(regret_in_set(run, environment)[-1]),
        "worst_gap_in_set": policy_set(learner, environment).worst_gap,
    }
