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

import numpy as np

from evenhand.contracts import Json, Learner
from evenhand.environments import Replay
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.fairness.rates import RATES
from evenhand.hypotheses import policy_from_json
from evenhand.hypotheses.named import CLASSES
from evenhand.simulate.named import LEARNERS, Setting, make_learner, require_playable
from evenhand.simulate.record import audit_weight, constant_costs, notes_of, promises
from evenhand.simulate.run import Run, simulate
from evenhand.tables import Description, Table, read_table
from evenhand.words import Prices

FORMAT = 1
"""Raised when the meaning of a row changes, so that old journals are not taken for new ones."""


@dataclass(frozen=True)
class Source:
    """Where a table comes from.

    Parameters
    ----------
    name : str
        A published table's name, the path of a description, or the name of a described table.
    description : Description, optional
        The description of a table of one's own.
    digest : str
        A digest of its rows, so that a changed table is a new one.

    Examples
    --------
    >>> len(Source("lending").table().label)
    1200
    """

    name: str
    description: Description | None = None
    digest: str = ""

    def table(self) -> Table:
        """Read the table.

        Returns
        -------
        Table
            Its rows, encoded as numbers.
        """
        return read_table(self.description or self.name).encoded()


def source_of(name: str, description: Description | None = None) -> Source:
    """Read a table once, and return its source with the digest of its rows.

    Parameters
    ----------
    name : str
        A published table's name, or the path of a description.
    description : Description, optional
        The description of a table of one's own.

    Returns
    -------
    Source
        The source.

    Examples
    --------
    >>> source_of("lending").name
    'lending'
    """
    table = Source(name, description).table()
    parts = (
        table.features.tobytes(),
        "\x1f".join(map(str, table.group.tolist())).encode(),
        table.label.tobytes(),
    )
    digest = hashlib.sha256(b"\x1e".join(parts)).hexdigest()[:16]
    return Source(table.name if description is not None else name, description, digest)


@dataclass(frozen=True)
class Question:
    """What is asked on a table.

    Parameters
    ----------
    source : Source
        The table.
    limit : float
        The gap that no policy may exceed.
    rate : str
        The name of the rate.
    kind : str
        The name of the class of rules.
    false_accept, false_reject : float
        What the errors cost.

    Examples
    --------
    >>> question = Question(Source("loans"), 0.05)
    >>> question.plain["class"], question.prices.false_accept
    ('linear', 1.0)
    """

    source: Source
    limit: float
    rate: str = "fpr"
    kind: str = "linear"
    false_accept: float = 1.0
    false_reject: float = 1.0

    @property
    def prices(self) -> Prices:
        """The costs as the learners know them."""
        return Prices(self.false_accept, self.false_reject)

    @property
    def plain(self) -> Json:
        """What names the question, as plain values."""
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
    """The best fair policy of the class in hindsight, and the best constant.

    Parameters
    ----------
    question : Question
        What is asked.

    Examples
    --------
    >>> task = OptimumTask(Question(source_of("lending"), 0.05, kind="stumps"))
    >>> row = task.play()
    >>> row["optimum"] < row["constant"] <= row["accept_all"]
    True
    """

    question: Question

    @cached_property
    def key(self) -> str:
        """The task's name for ever."""
        return _key({"optimum": self.question.plain})

    def play(self) -> Json:
        """Solve the question on the whole table.

        Returns
        -------
        dict
            The question, the loss and the policy of the optimum, and the losses of constants.
        """
        asked = self.question
        world = population(asked.source, asked.kind)
        loss, policy = world.optimum(asked.limit, RATES[asked.rate], asked.prices)
        costs = constant_costs(world, asked.prices)
        try:
            plain_policy = policy.to_json()
        except NotSerialisable:
            plain_policy = None
        return {
            **asked.plain,
            "optimum": loss,
            "constant": min(costs),
            "accept_all": costs[0],
            "policy": plain_policy,
        }


@dataclass(frozen=True)
class RunTask:
    """One run of a learner.

    Parameters
    ----------
    question : Question
        The table, the limit, the rate, the class and the prices.
    learner : str
        The learner's name, with options.
    seed : int
        The seed of the run.
    rounds : int
        How many people are decided about.
    failure_probability : float
        delta.
    optimum : str
        What the optimum's task returned, as JSON; it follows from the question.

    Examples
    --------
    >>> import json
    >>> question = Question(source_of("lending"), 0.05, kind="stumps")
    >>> optimum = json.dumps(OptimumTask(question).play())
    >>> task = RunTask(question, "accept-all", 0, 100, 0.05, optimum)
    >>> round(task.play()["worst_gap"], 6)
    0.0
    """

    question: Question
    learner: str
    seed: int
    rounds: int
    failure_probability: float
    optimum: str = ""

    @cached_property
    def key(self) -> str:
        """The task's name for ever; the optimum follows from the question."""
        return _key({"run": self.plain})

    @property
    def plain(self) -> Json:
        """What names the run, as plain values."""
        names = ("learner", "seed", "rounds", "failure_probability")
        return {**self.question.plain, **{name: getattr(self, name) for name in names}}

    def play(self) -> Json:
        """Simulate the run, and measure it by the table's truth.

        Returns
        -------
        dict
            The task, and the figures of the run.
        """
        asked, best = self.question, json.loads(self.optimum)
        world, rate = population(asked.source, asked.kind), RATES[asked.rate]
        if best["policy"] is not None:
            policy = policy_from_json(best["policy"])
            world.know_optimum(asked.limit, rate, asked.prices, best["optimum"], policy)
        setting = Setting(
            hypotheses=CLASSES[asked.kind](),
            rate=rate,
            allowed_gap=asked.limit,
            comparator_gap=None,
            failure_probability=self.failure_probability,
            horizon=self.rounds,
            prices=asked.prices,
        )
        learner = make_learner(self.learner, setting)
        run = simulate(learner, world, self.rounds, self.seed, asked.limit)
        return {**self.plain, **measured(run, asked.limit, best["optimum"], best["constant"])}


Task = OptimumTask | RunTask


def measured(run: Run[Learner], limit: float, optimum: float, constant: float) -> Json:
    """The figures of a run: costs per person, regret, gaps, audits, and the curves behind the
    figures.
    """
    share = run.lengths / run.rounds[-1]
    regret = float((run.lengths * (run.losses - optimum)).sum())
    worth = float(run.rounds[-1]) * (constant - optimum)
    audits = [audit_weight(policy) for policy in run.policies]
    return {
        "error": float(share @ run.losses),
        "last_error": float(run.losses[-1]),
        "optimum": optimum,
        "constant": constant,
        "regret": regret,
        "regret_over_constant": regret / worth if constant - optimum > 1e-9 else None,
        "worst_gap": run.worst_gap,
        "last_gap": float(run.gaps[-1]),
        "rounds_above": run.share_above(limit),
        "audit_share": float(share @ audits),
        "accepted_share": float(run.accepted.sum() / run.rounds[-1]),
        "promised": promises(run.learner, limit),
        "oracle_calls": run.oracle_calls,
        "note": notes_of(run.learner),
        "curve_rounds": run.rounds.tolist(),
        "curve_loss": run.losses.tolist(),
        "curve_gap": run.gaps.tolist(),
    }


@lru_cache(maxsize=4)
def population(source: Source, kind: str) -> Replay:
    """The table as a population; a process keeps the last four."""
    return Replay.of_table(source.table(), CLASSES[kind]())


def play(task: Task) -> tuple[str, Json, float]:
    """Play a task: (key, row, seconds). One BLAS thread, so that a row does not depend on the
    machine's cores.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    begun = perf_counter()
    with threadpool_limits(1):
        row = task.play()
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in row.items()
    }
    return task.key, plain, perf_counter() - begun


def _key(named: Json) -> str:
    # not `evenhand.canonical`, whose texts have no spaces: old journals have these keys
    text = json.dumps({"format": FORMAT, **named}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class StudyPlan:
    """Learners x tables x limits x seeds.

    Parameters
    ----------
    sources : tuple of Source
        The tables.
    learners : tuple of str
        The names of the learners.
    limits : tuple of float
        The gaps that no policy may exceed.
    seeds : int
        How many runs of each kind.
    rounds : int
        How many people are decided about in each run.
    rate : str
        The name of the rate.
    kind : str
        The name of the class of rules.
    failure_probability : float
        delta.
    false_accept, false_reject : float
        What the errors cost.
    first_seed : int
        The seed of the first run of each kind.

    Examples
    --------
    >>> plan = StudyPlan((Source("loans"),), ("certified", "accept-all"), limits=(0.05, 0.1))
    >>> len(plan.questions), len(plan.optima)
    (2, 2)
    >>> runs = plan.runs({task.key: {} for task in plan.optima})
    >>> len(list(runs))
    20
    """

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
        some = all((self.sources, self.learners, self.limits))
        if not some or self.seeds < 1 or self.rounds < 1:
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

    def runs(self, optima: dict[str, Json]) -> Iterator[RunTask]:
        """Return all runs, in the order of the table of results.

        Parameters
        ----------
        optima : dict
            What the optima's tasks returned, by their keys.

        Returns
        -------
        iterator of RunTask
            The runs.
        """
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for question in self.questions:
            best = json.dumps(optima[OptimumTask(question).key])
            for learner in self.learners:
                for seed in seeds:
                    yield RunTask(
                        question, learner, seed, self.rounds, self.failure_probability, best
                    )

    @property
    def plain(self) -> Json:
        """The settings as plain values."""
        sources = [{"name": source.name, "digest": source.digest} for source in self.sources]
        return {**asdict(self), "sources": sources}
