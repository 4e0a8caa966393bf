"""Comparisons: several learners on one population, and the figures that describe them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import scipy

from evenhand.contracts import Environment, Json, Learner, Params
from evenhand.errors import InvalidInput
from evenhand.shares import require_delta, require_promise
from evenhand.shown import Brief, Cell, Shown, plain, plain_fields
from evenhand.simulation.record import RunRecord
from evenhand.simulation.run import Engine
from evenhand.simulation.sweep import Progress, RunTask, sweep
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Summary:
    """One learner of a comparison in one row: means over its runs.

    Parameters
    ----------
    name : str
        The learner's name.
    runs : int
        How many runs there were.
    regret, regret_error : float
        The mean regret, and the standard error of the mean (None for a single run).
    regret_over_constant, regret_over_constant_error : float or None
        The same as a share of the better constant's regret; None where that constant is optimal.
    regret_in_set : float or None
        The mean regret to the best policy of the learner's own set.
    cost : float
        The mean loss per person.
    worst_gap : float
        The largest |true gap| of any run.
    runs_above : int
        Runs in which any policy was above the limit.
    runs_above_upper : float
        The 95% upper confidence limit (Clopper and Pearson) for the chance of that, from these runs
        alone.
    rounds_above : float
        The mean share of rounds above the limit.
    accepted_share, audit_share, explored_rounds, oracle_calls, seconds : float
        Means over the runs.
    guaranteed : bool
        Whether the learner's own bound covers the limit in every run.
    exploring : int
        Runs that never left the exploration.
    """

    name: str
    runs: int
    regret: float
    regret_error: float | None
    regret_over_constant: float | None
    regret_over_constant_error: float | None
    regret_in_set: float | None
    cost: float
    worst_gap: float
    runs_above: int
    runs_above_upper: float
    rounds_above: float
    accepted_share: float
    audit_share: float
    explored_rounds: float
    oracle_calls: float
    seconds: float
    guaranteed: bool
    exploring: int


@dataclass(frozen=True, eq=False, repr=False)
class LearnerRuns(Brief):
    """All runs of one learner in a comparison.

    Parameters
    ----------
    name : str
        The learner's name.
    params : mapping
        Its settings, without the seed.
    runs : tuple of RunRecord
        One run per seed.
    """

    name: str
    params: Params
    runs: tuple[RunRecord, ...]

    def regret_curves(self, rounds: FloatArray) -> FloatArray:
        """Return the cumulative regret of each run.

        Parameters
        ----------
        rounds : array of float
            After how many rounds.

        Returns
        -------
        array of float
            (runs, rounds).
        """
        return np.array([run.regret_at(rounds) for run in self.runs])

    def summary(self, limit: float) -> Summary:
        """Return the means over the runs.

        Parameters
        ----------
        limit : float
            The gap above which a round counts as a violation.

        Returns
        -------
        Summary
            One row.
        """
        runs = self.runs
        regret = [float(run.regret[-1]) for run in runs]
        relative = [run.regret_over_constant for run in runs]
        inside = [run.regret_in_set for run in runs]
        shares = [run.share_above(limit) for run in runs]
        runs_above = sum(share > 0 for share in shares)
        return Summary(
            name=self.name,
            runs=len(runs),
            regret=float(np.mean(regret)),
            regret_error=_standard_error(regret),
            regret_over_constant=_mean(relative),
            regret_over_constant_error=_standard_error(relative),
            regret_in_set=_mean(inside),
            cost=float(np.mean([run.cost for run in runs])),
            worst_gap=max(run.worst_gap for run in runs),
            runs_above=runs_above,
            runs_above_upper=upper_limit(runs_above, len(runs)),
            rounds_above=float(np.mean(shares)),
            accepted_share=float(np.mean([run.accepted_share for run in runs])),
            audit_share=float(np.mean([run.audit_share for run in runs])),
            explored_rounds=float(np.mean([run.explored for run in runs])),
            oracle_calls=float(np.mean([run.oracle_calls for run in runs])),
            seconds=float(np.mean([run.seconds for run in runs])),
            guaranteed=all(run.guaranteed for run in runs),
            exploring=sum(run.phases[-1] == "explore" for run in runs),
        )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _standard_error(values: Sequence[float | None]) -> float | None:
    """The standard error of the mean of the values that are known; None for a single one."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    return float(np.std(known, ddof=1) / sqrt(len(known)))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown, Brief):
    """Several learners on one population: `to_frame` has a row for each run, `plot` the regret.

    Parameters
    ----------
    environment : mapping
        The population's `params`.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each learner's runs.
    limit : float
        gamma', the gap that counts as a violation when it is exceeded.
    delta : float
        The share of runs in which a certified learner may exceed it.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    optimum : float
        The loss of that policy.
    constant : float
        The loss of the better constant: accepting or rejecting all applicants.
    learners : tuple of LearnerRuns
        All runs.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> again = Comparison.from_json(comparison.to_json())
    >>> again.summaries == comparison.summaries
    True
    >>> comparison.to_frame()[["learner", "seed", "accepted_share"]].values.tolist()
    [['accept-all', 0, 1.0]]
    """

    environment: Params
    rounds: int
    seeds: tuple[int, ...]
    limit: float
    delta: float
    regret_gap: float
    optimum: float
    constant: float
    learners: tuple[LearnerRuns, ...]

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """One row per learner."""
        return tuple(learner.summary(self.limit) for learner in self.learners)

    def _headline(self) -> str:
        name = self.environment.get("environment", "a population")
        return (
            f"{len(self.learners)} learners on {name}: {self.rounds:,} rounds, "
            f"{len(self.seeds)} runs each, limit {self.limit:g}"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        each = [(learner.name, run) for learner in self.learners for run in learner.runs]
        return {
            "learner": [name for name, _ in each],
            "seed": [run.seed for _, run in each],
            "regret": [float(run.regret[-1]) for _, run in each],
            "regret_over_constant": [run.regret_over_constant for _, run in each],
            "cost": [run.cost for _, run in each],
            "worst_gap": [run.worst_gap for _, run in each],
            "rounds_above": [run.share_above(self.limit) for _, run in each],
            "certified": [run.guaranteed for _, run in each],
            "accepted_share": [run.accepted_share for _, run in each],
            "explored": [run.explored for _, run in each],
            "oracle_calls": [run.oracle_calls for _, run in each],
            "seconds": [run.seconds for _, run in each],
        }

    def _draw(self, axes: "Axes") -> None:
        rounds = np.linspace(0, self.rounds, 101)[1:]
        for learner in self.learners:
            curves = learner.regret_curves(rounds)
            (line,) = axes.plot(rounds, curves.mean(axis=0), linewidth=2, label=learner.name)
            if len(curves) > 1:
                band = (curves.min(axis=0), curves.max(axis=0))
                axes.fill_between(rounds, *band, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set_xlabel("round")
        axes.set_ylabel(f"regret to the best policy with a gap of {self.regret_gap:g}")
        axes.legend(frameon=False, fontsize="small")

    def to_json(self) -> Json:
        """Return the comparison as plain JSON.

        Returns
        -------
        dict
            The settings, the summaries, and every run.
        """
        document = plain_fields(self)
        learners = document.pop("learners")
        return {**document, "summaries": plain(self.summaries), "learners": learners}

    @classmethod
    def from_json(cls, document: Params) -> "Comparison":
        """Read what `to_json` wrote, bit for bit; summaries are computed anew.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        Comparison
            The same comparison.
        """
        known: Json = {one.name: document[one.name] for one in fields(cls)}
        known["seeds"] = tuple(document["seeds"])
        known["learners"] = tuple(
            LearnerRuns(one["name"], one["params"], tuple(map(RunRecord.from_json, one["runs"])))
            for one in document["learners"]
        )
        return cls(**known)


def compare(
    learners: Mapping[str, Learner],
    environment: Environment,
    rounds: int,
    seeds: Sequence[int],
    *,
    limit: float,
    delta: float,
    regret_gap: float,
    engine: Engine = "auto",
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run every learner with every seed on one population.

    The same seed means the same people for each learner, as far as their decisions agree.

    Parameters
    ----------
    learners : mapping of str to Learner
        The learners by name.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and learner.
    limit : float
        The gap above which a round counts as a violation.
    delta : float
        delta of the certified learners, for the report.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    engine : {"auto", "events", "counts"}
        As for `simulate`.
    n_jobs : int
        1 does the work in this process; more are workers of joblib's backend (processes of this
        machine, unless `joblib.parallel_config` names a cluster), of which -1 takes all.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Comparison
        All runs.

    Raises
    ------
    InvalidInput
        If there is no learner or no seed, or `n_jobs` is below 1.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll, Uniform
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll(), "coin": Uniform()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> [row.name for row in comparison.summaries]
    ['accept-all', 'coin']
    """
    require_promise(limit)
    require_delta(delta)
    if not learners or not seeds:
        raise InvalidInput(
            f"{len(learners)} learners and {len(seeds)} seeds were given; "
            "a comparison needs one of each."
        )
    tasks = [
        RunTask(learner, environment, rounds, seed, limit, regret_gap, engine)
        for learner in learners.values()
        for seed in seeds
    ]
    runs = sweep(tasks, n_jobs, progress=progress)
    return Comparison(
        environment=dict(environment.params),
        rounds=rounds,
        seeds=tuple(seeds),
        limit=limit,
        delta=delta,
        regret_gap=regret_gap,
        optimum=runs[0].optimum,
        constant=runs[0].constant,
        learners=runs_by_learner(learners, runs),
    )


def runs_by_learner(
    learners: Mapping[str, Learner], runs: Sequence[RunRecord]
) -> tuple[LearnerRuns, ...]:
    """The runs of a sweep, first all seeds of the first learner, then those of the next one."""
    each = len(runs) // len(learners)
    by_learner = []
    for number, (name, learner) in enumerate(learners.items()):
        params = {key: value for key, value in learner.params.items() if key != "seed"}
        own = tuple(runs[number * each : (number + 1) * each])
        by_learner.append(LearnerRuns(name, params, own))
    return tuple(by_learner)


def upper_limit(events: int, trials: int, confidence: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper confidence limit for a probability, from `events`
    in `trials`.

    >>> round(upper_limit(0, 20), 3), upper_limit(3, 3)
    (0.139, 1.0)
    """
    if events >= trials:
        return 1.0
    return float(scipy.special.betaincinv(events + 1, trials - events, confidence))
