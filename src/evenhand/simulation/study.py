"""Studies: learners x tables x limits x seeds, with every table taken for the population.

A study is a sweep with a journal. The optimum of every table and limit is found first, then all
runs are made; what the journal holds is not computed again. Its result is one comparison for each
table and limit.

Tasks are named by the settings they follow from, with a digest of the table's rows: the same key
means the same result, on any machine and after any restart.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from evenhand.algorithms.certified.quota import Quota
from evenhand.canonical import canonical
from evenhand.contracts import Hypothesis, Json, Learner
from evenhand.environments import Replay
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import as_rates
from evenhand.hypotheses.named import CLASSES
from evenhand.shares import require_promise
from evenhand.shown import Brief
from evenhand.simulation.comparison import Comparison, runs_by_learner
from evenhand.simulation.named import (
    LEARNERS,
    SHARED,
    Setting,
    make_learner,
    require_playable,
)
from evenhand.simulation.record import RunRecord
from evenhand.simulation.run import permitted_shares
from evenhand.simulation.sweep import (
    JOURNAL,
    Journal,
    Optimum,
    OptimumTask,
    Progress,
    RunTask,
    sweep,
)
from evenhand.tables import Description, Table, import_pyarrow, read_table
from evenhand.words import Prices

FORMAT = 1
"""Raised when the meaning of a result changes, so that old journals are not taken for new ones."""


# the tables


@dataclass(frozen=True)
class Source:
    """Where a table comes from.

    Parameters
    ----------
    name : str
        The name of a table, the path of a description, or the name of a described table.
    description : Description, optional
        The description of a table of one's own.
    digest : str
        A digest of its rows, so that a changed table is a new one.
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
        The name of a table, or the path of a description.
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


@lru_cache(maxsize=4)
def population(source: Source, kind: str) -> Replay:
    """The table as a population; a process keeps the last four."""
    return Replay.of_table(source.table(), CLASSES[kind]())


def population_with_optimum(
    source: Source,
    kind: str,
    limit: float,
    rates: tuple[str, ...],
    prices: Prices,
    optimum: Optimum,
    shares: tuple[float, float] | None = None,
) -> Replay:
    """The same with its optimum known, so that no run searches for it again."""
    world = population(source, kind)
    if optimum.policy is not None:
        known = (optimum.loss, optimum.policy)
        world.know_optimum(limit, as_rates(rates), prices, *known, shares=shares)
    return world


# the plan


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
        The number of runs for each learner, table and limit.
    rounds : int
        How many people are decided about in each run.
    rates : tuple of str
        The names of the rates whose gaps are limited; the field's names are understood.
    kind : str
        The name of the class of rules.
    delta : float
        Probability that a certified learner ever exceeds the limit in a run.
    false_accept, false_reject : float
        What the errors cost.
    first_seed : int
        The seed of the first run for each learner, table and limit.
    accept_at_most, accept_at_least : float, optional
        The largest and the smallest share of the people that every policy may accept.
    quota : Quota, optional
        How many people may be accepted in each period, with people as its unit of time.
    candidates : tuple of Hypothesis, optional
        The incumbent's rules; the tables then have the same columns.

    Examples
    --------
    >>> plan = StudyPlan((Source("loans"),), ("certified", "accept-all"), limits=(0.05, 0.1))
    >>> plan.size  # two optima, and five runs of each learner with each limit
    22
    """

    sources: tuple[Source, ...]
    learners: tuple[str, ...]
    limits: tuple[float, ...] = (0.05,)
    seeds: int = 5
    rounds: int = 50_000
    rates: tuple[str, ...] = ("fpr",)
    kind: str = "linear"
    delta: float = 0.05
    false_accept: float = 1.0
    false_reject: float = 1.0
    first_seed: int = 0
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    quota: Quota | None = None
    candidates: tuple[Hypothesis, ...] | None = None

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
        if len(set(self.learners)) < len(self.learners):
            twice = max(self.learners, key=self.learners.count)
            raise InvalidInput(f"the learner {twice!r} is given twice.", hint="name it once.")
        as_rates(self.rates)  # InvalidInput if there is none
        for limit in self.limits:
            require_promise(limit)
        CLASSES[self.kind]  # InvalidInput if there is none
        for name in self.learners:
            require_playable(name, self.kind)
        for limit in self.limits:
            self.made_learners(limit)  # InvalidInput if a learner cannot keep these settings

    @property
    def shared(self) -> Json:
        """Cap, floor, quota and candidates: those that are given."""
        named = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in named.items() if value is not None}

    def shares(self, limit: float) -> tuple[float, float] | None:
        """Return between which shares the policies of a run may accept.

        Parameters
        ----------
        limit : float
            A limit of the study.

        Returns
        -------
        (float, float) or None
            The smallest and the largest one; None where every share is permitted.
        """
        if not self.shared:
            return None
        found = permitted_shares(next(iter(self.made_learners(limit).values())))
        return None if found == (0.0, 1.0) else found

    @property
    def size(self) -> int:
        """The number of tasks: the optimum of each table and limit, and all runs."""
        return len(self.questions) * (1 + len(self.learners) * self.seeds)

    @property
    def questions(self) -> tuple[tuple[Source, float], ...]:
        """Table by table, limit by limit."""
        return tuple((source, limit) for source in self.sources for limit in self.limits)

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def prices(self) -> Prices:
        """The costs of errors."""
        return Prices(self.false_accept, self.false_reject)

    def optima(self) -> list[OptimumTask]:
        """Return the search for the optimum of each table and limit.

        Returns
        -------
        list of OptimumTask
            The tasks, question by question.
        """
        return [
            OptimumTask(
                population=partial(population, source, self.kind),
                limit=limit,
                rates=as_rates(self.rates),
                prices=self.prices,
                key=_key({"optimum": self._question(source, limit)}),
                shares=self.shares(limit),
            )
            for source, limit in self.questions
        ]

    def runs(self, optima: Sequence[Optimum]) -> list[RunTask]:
        """Return all runs: question by question, learner by learner, seed by seed.

        Parameters
        ----------
        optima : sequence of Optimum
            The results of the tasks of `optima`.

        Returns
        -------
        list of RunTask
            The tasks.
        """
        tasks = []
        for (source, limit), optimum in zip(self.questions, optima, strict=True):
            world = partial(
                population_with_optimum,
                source,
                self.kind,
                limit,
                self.rates,
                self.prices,
                optimum,
                self.shares(limit),
            )
            for name, learner in self.made_learners(limit).items():
                tasks += [
                    RunTask(
                        learner=learner,
                        population=world,
                        rounds=self.rounds,
                        seed=seed,
                        limit=limit,
                        regret_gap=limit,
                        optimum=optimum.loss,
                        key=_key({"run": self.run_settings(source, limit, name, seed)}),
                    )
                    for seed in self.all_seeds
                ]
        return tasks

    def made_learners(self, limit: float) -> dict[str, Learner]:
        """Make the learners for one limit.

        Parameters
        ----------
        limit : float
            The limit.

        Returns
        -------
        dict of str to Learner
            The learners by name, at their beginning.
        """
        setting = Setting(
            hypotheses=CLASSES[self.kind](),
            rate=as_rates(self.rates),
            limit=limit,
            comparator_gap=None,
            delta=self.delta,
            horizon=self.rounds,
            prices=self.prices,
            **self.shared,
        )
        return {name: make_learner(name, setting) for name in self.learners}

    def run_settings(self, source: Source, limit: float, learner: str, seed: int) -> Json:
        """Return what distinguishes a run from all others, as plain values.

        Parameters
        ----------
        source : Source
            The table.
        limit : float
            The limit.
        learner : str
            The learner's name.
        seed : int
            The seed.

        Returns
        -------
        dict
            One entry per setting.
        """
        return {
            **self._question(source, limit),
            "learner": learner,
            "seed": seed,
            "rounds": self.rounds,
            "delta": self.delta,
        }

    def _question(self, source: Source, limit: float) -> Json:
        return {
            "table": source.name,
            "digest": source.digest,
            "limit": limit,
            "rate": ",".join(self.rates),
            "class": self.kind,
            "false_accept": self.false_accept,
            "false_reject": self.false_reject,
            **{name: _plain(value) for name, value in self.shared.items()},
        }


def _plain(setting: object) -> object:
    """A cap, a floor, a quota or candidates as plain values."""
    if isinstance(setting, Quota):
        return [setting.count, setting.period]
    if isinstance(setting, tuple):
        return [rule.to_json() for rule in setting]
    return setting


def _key(named: Json) -> str:
    text = canonical({"format": FORMAT, **named})
    return hashlib.sha256(text.encode()).hexdigest()[:24]


# the study


@dataclass(frozen=True, eq=False, repr=False)
class Study(Brief):
    """The results of a study.

    Parameters
    ----------
    plan : StudyPlan
        What was run.
    comparisons : tuple of Comparison
        One for each table and limit, in the order of `plan.questions`.
    """

    plan: StudyPlan
    comparisons: tuple[Comparison, ...]

    def rows(self) -> Iterator[Json]:
        """Return one row per run, for a table: its settings, its figures and its curves.

        Returns
        -------
        iterator of dict
            The rows in the order of the plan. Times are left out, which are no result: the same
            study gives the same rows, wherever it ran.
        """
        for (source, limit), comparison in zip(self.plan.questions, self.comparisons, strict=True):
            for learner in comparison.learners:
                for run in learner.runs:
                    settings = self.plan.run_settings(source, limit, learner.name, run.seed)
                    yield {**settings, **_figures(run, limit)}


def _figures(run: RunRecord, limit: float) -> Json:
    """The figures of a run, and the curves behind them."""
    return {
        "cost": run.cost,
        "last_cost": float(run.losses[-1]),
        "optimum": run.optimum,
        "constant": run.constant,
        "regret": float(run.regret[-1]),
        "regret_over_constant": run.regret_over_constant,
        "worst_gap": run.worst_gap,
        "last_gap": float(run.gaps[-1]),
        "rounds_above": run.share_above(limit),
        "audit_share": run.audit_share,
        "accepted_share": run.accepted_share,
        "guaranteed": run.guaranteed,
        "oracle_calls": run.oracle_calls,
        "note": run.note,
        "curve_rounds": run.rounds.tolist(),
        "curve_loss": run.losses.tolist(),
        "curve_gap": run.gaps.tolist(),
    }


def study(
    plan: StudyPlan, folder: Path, n_jobs: int = 1, progress: Progress | None = None
) -> Study:
    """Run what the journal in a folder does not hold yet, and collect all results.

    Parameters
    ----------
    plan : StudyPlan
        Learners x tables x limits x seeds.
    folder : pathlib.Path
        Where the journal is; a study that was stopped goes on from there.
    n_jobs : int
        As for `sweep`: 1 is this process, -1 takes all workers of joblib's backend.
    progress : callable, optional
        Called with the number of finished tasks, of `plan.size`.

    Returns
    -------
    Study
        The results of all runs; they do not depend on who did the work.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.simulation.study import StudyPlan, source_of
    >>> plan = StudyPlan(
    ...     (source_of("lending"),), ("accept-all",), seeds=1, rounds=100, kind="stumps"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study(plan, Path(folder))
    >>> round(results.comparisons[0].summaries[0].worst_gap, 6)
    0.0
    """

    def runs_finished(done: int) -> None:
        if progress is not None:
            progress(len(optima) + done)

    with Journal(folder / JOURNAL) as journal:
        optima = sweep(plan.optima(), n_jobs, journal, progress)
        runs = sweep(plan.runs(optima), n_jobs, journal, runs_finished)

    each = len(plan.learners) * plan.seeds
    comparisons = []
    for number, (source, limit) in enumerate(plan.questions):
        own = runs[number * each : (number + 1) * each]
        comparisons.append(
            Comparison(
                environment={"environment": source.name},
                rounds=plan.rounds,
                seeds=tuple(plan.all_seeds),
                limit=limit,
                delta=plan.delta,
                regret_gap=limit,
                optimum=own[0].optimum,
                constant=own[0].constant,
                learners=runs_by_learner(plan.made_learners(limit), own),
            )
        )
    return Study(plan, tuple(comparisons))


def write_parquet(results: Study, path: Path) -> None:
    """Write the rows of a study as a Parquet file.

    Parameters
    ----------
    results : Study
        What `study` returned.
    path : pathlib.Path
        The file; it is replaced whole.

    Raises
    ------
    InvalidInput
        If pyarrow is not installed.
    """
    pyarrow, parquet = import_pyarrow("the table of results (Parquet)")
    numbers = pyarrow.list_(pyarrow.float64())
    types = {
        "curve_loss": numbers,
        "curve_gap": numbers,
        "curve_rounds": pyarrow.list_(pyarrow.int64()),
        "regret_over_constant": pyarrow.float64(),
    }
    rows = list(results.rows())
    arrays = {
        name: pyarrow.array([row[name] for row in rows], type=types.get(name)) for name in rows[0]
    }
    partly = path.with_suffix(".part")
    parquet.write_table(pyarrow.table(arrays), partly)
    partly.replace(path)
