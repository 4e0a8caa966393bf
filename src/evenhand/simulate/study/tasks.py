"""What a study consists of: runs, each a learner on a table with a limit and a seed, and the optima
they are compared with.

A task is a few plain values, so it can be sent anywhere, and its key names it for ever: the same
key means the same result.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from evenhand.contracts import Policy
from evenhand.environments.replay import Replay
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.fairness.rates import RATES
from evenhand.hypotheses import policy_from_json
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.named import CLASSES
from evenhand.learners import EpochLearner
from evenhand.learners.rivals.vw import VwPolicy
from evenhand.policies import Mixture
from evenhand.simulate.catalogue import LEARNERS, Setting, make_learner, require_playable
from evenhand.simulate.record import promises
from evenhand.simulate.run import Run, simulate
from evenhand.simulate.trail import audit_weight
from evenhand.tables import Description, Table, read_table
from evenhand.words import Prices

FORMAT = 1
"""Raised when the meaning of a row changes, so that old journals are not taken for new ones."""


@dataclass(frozen=True)
class Source:
    """A table: a published name, the path of a description, or a description itself; `digest` is
    that of its rows.
    """

    name: str
    description: Description | None = None
    digest: str = ""

    def table(self) -> Table:
        """Read it."""
        return read_table(self.description or self.name).encoded()


def source_of(name: str, description: Description | None = None) -> Source:
    """The source with the digest of its rows, so that a changed table is a new one."""
    table = read_table(description or name).encoded()
    parts = (
        table.features.tobytes(),
        "\x1f".join(map(str, table.group.tolist())).encode(),
        table.label.tobytes(),
    )
    digest = hashlib.sha256(b"\x1e".join(parts)).hexdigest()[:16]
    return Source(table.name if description is not None else name, description, digest)


@dataclass(frozen=True)
class Question:
    """What is asked on a table: limit, rate, class, prices."""

    source: Source
    limit: float
    rate: str = "fpr"
    kind: str = "linear"
    false_accept: float = 1.0
    false_reject: float = 1.0

    @property
    def prices(self) -> Prices:
        """As the learners know them."""
        return Prices(self.false_accept, self.false_reject)

    @property
    def plain(self) -> dict[str, Any]:
        """What names it, as plain values."""
        return {
            "table": self.source.name,
            "digest": self.source.digest,
            "limit": self.limit,
            "rate": self.rate,
            "class": self.kind,
            "false_accept": self.false_accept,
            "false_reject": self.false_reject,
        }


@dataclass(frozen=True)
class OptimumTask:
    """The best fair policy of the class in hindsight, and the best constant."""

    question: Question

    @cached_property
    def key(self) -> str:
        """Its name for ever."""
        return _key({"optimum": self.question.plain})

    def play(self) -> dict[str, Any]:
        """Solve it on the whole table."""
        asked = self.question
        world, rate = population(asked.source, asked.kind), RATES[asked.rate]
        loss, policy = world.optimum(asked.limit, rate, asked.prices)
        costs = [
            world.loss(Mixture((constant,), (1.0,)), asked.prices)
            for constant in (ACCEPT_ALL, REJECT_ALL)
        ]
        try:
            told = policy.to_json()
        except NotSerialisable:
            told = None
        return {
            **asked.plain,
            "optimum": loss,
            "constant": min(costs),
            "accept_all": costs[0],
            "policy": told,
        }


@dataclass(frozen=True)
class RunTask:
    """One run; `optimum` is what the optimum's task found."""

    question: Question
    learner: str
    seed: int
    rounds: int
    failure_probability: float
    optimum: str = ""

    @cached_property
    def key(self) -> str:
        """Its name for ever; the optimum follows from the question."""
        return _key({"run": {**self.question.plain, **self._own}})

    @property
    def _own(self) -> dict[str, Any]:
        names = ("learner", "seed", "rounds", "failure_probability")
        return {name: getattr(self, name) for name in names}

    def play(self) -> dict[str, Any]:
        """Simulate it, and measure it by the table's truth."""
        asked, found = self.question, json.loads(self.optimum)
        world = population(asked.source, asked.kind)
        if found["policy"] is not None:
            world.know_optimum(
                asked.limit,
                RATES[asked.rate],
                asked.prices,
                found["optimum"],
                policy_from_json(found["policy"]),
            )
        setting = Setting(
            hypotheses=CLASSES[asked.kind](),
            rate=RATES[asked.rate],
            allowed_gap=asked.limit,
            comparator_gap=None,
            failure_probability=self.failure_probability,
            horizon=self.rounds,
            prices=asked.prices,
        )
        run = simulate(
            make_learner(self.learner, setting), world, self.rounds, self.seed, asked.limit
        )
        return {
            **asked.plain,
            **self._own,
            **measured(run, asked.limit, found["optimum"], found["constant"]),
        }


Task = OptimumTask | RunTask


def measured(run: Run[Any], limit: float, optimum: float, constant: float) -> dict[str, Any]:
    """The figures of a run: costs per person, regret, gaps, audits, and the curves behind the
    figures.
    """
    share = run.lengths / run.rounds[-1]
    regret = float((run.lengths * (run.losses - optimum)).sum())
    worth = float(run.rounds[-1]) * (constant - optimum)
    return {
        "error": float(share @ run.losses),
        "last_error": float(run.losses[-1]),
        "optimum": optimum,
        "constant": constant,
        "regret": regret,
        "regret_over_constant": regret / worth if worth > 0 else None,
        "worst_gap": run.worst_gap,
        "last_gap": float(run.gaps[-1]),
        "rounds_above": run.share_above(limit),
        "audit_share": float(share @ [_audit(policy) for policy in run.policies]),
        "accepted_share": float(run.accepted.sum() / run.rounds[-1]),
        "promised": promises(run.learner, limit),
        "oracle_calls": run.oracle_calls,
        "note": " ".join(run.learner.notes) if isinstance(run.learner, EpochLearner) else "",
        "curve_rounds": run.rounds.tolist(),
        "curve_loss": run.losses.tolist(),
        "curve_gap": run.gaps.tolist(),
    }


def _audit(policy: Policy) -> float:
    if isinstance(policy, VwPolicy):  # what VW does is no mixture of ours
        return 0.0
    return audit_weight(policy)


@lru_cache(maxsize=4)
def population(source: Source, kind: str) -> Replay:
    """The table as a population; a process keeps the last four."""
    return Replay.of_table(source.table(), CLASSES[kind]())


def played(task: Task) -> tuple[str, dict[str, Any], float]:
    """(key, row, seconds); with one BLAS thread, so that a row does not depend on the machine's
    cores.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    begun = perf_counter()
    with threadpool_limits(1):
        row = task.play()
    return task.key, _plain(row), perf_counter() - begun


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in row.items()
    }


def _key(named: dict[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **named}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class StudyPlan:
    """Learners x tables x limits x seeds. first_seed: the seed of the first run."""

    sources: tuple[Source, ...]
    learners: tuple[str, ...]
    limits: tuple[float, ...] = (0.05,)
    seeds: int = 5
    rounds: int = 50_000
    rate: str = "fpr"
    kind: str = "linear"
    failure_probability: float = 0.05
    false_accept: float = 1.0
    false_reject: float = 1.0
    first_seed: int = 0

    def __post_init__(self) -> None:
        for name in self.learners:
            LEARNERS[name]  # InvalidInput if there is none
        if (
            not self.sources
            or not self.learners
            or not self.limits
            or self.seeds < 1
            or self.rounds < 1
        ):
            raise InvalidInput("a study needs at least one table, learner, limit, seed and round.")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"two tables are called {max(names, key=names.count)!r}.",
                hint="give one of them another name.",
            )
        RATES[self.rate]  # InvalidInput if there is none
        for limit in self.limits:
            if not 0 < limit <= 1:
                raise InvalidInput(f"the limit {limit} is not in (0, 1].")
        CLASSES[self.kind]  # InvalidInput if there is none
        for name in self.learners:
            require_playable(name, self.kind)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Table by table, limit by limit."""
        return tuple(
            Question(source, limit, self.rate, self.kind, self.false_accept, self.false_reject)
            for source in self.sources
            for limit in self.limits
        )

    @property
    def optima(self) -> tuple[OptimumTask, ...]:
        """What is solved first."""
        return tuple(OptimumTask(question) for question in self.questions)

    def runs(self, optima: dict[str, dict[str, Any]]) -> Iterator[RunTask]:
        """All runs, in the order of the table of results."""
        for question in self.questions:
            found = json.dumps(optima[OptimumTask(question).key])
            for learner in self.learners:
                for seed in range(self.first_seed, self.first_seed + self.seeds):
                    yield RunTask(
                        question, learner, seed, self.rounds, self.failure_probability, found
                    )

    @property
    def plain(self) -> dict[str, Any]:
        """Settings as plain values."""
        told = asdict(self)
        told["sources"] = [
            {"name": source.name, "digest": source.digest} for source in self.sources
        ]
        return told
