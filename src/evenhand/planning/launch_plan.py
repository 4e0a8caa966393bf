"""The launch plan: a record of what a launch is expected to cost and to bring."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, Literal

import numpy as np

from evenhand.contracts import Params
from evenhand.media import Told
from evenhand.planning.planned import planned
from evenhand.planning.population import Incumbent
from evenhand.result import Result
from evenhand.shown import Brief
from evenhand.words import FloatArray

Answer = Literal[
    "worth it",
    "probably worth it",
    "close call",
    "probably not worth it",
    "not worth it",
    "nothing to gain",
]

SURE = 0.99
"""How often the interval of the saving holds the saving of one more run."""
PROBABLE = 0.75
"""From this probability on that one more run saves (or does not), a launch is probably (not) worth
it."""
MARGIN = 0.80
"""Bands hold the middle 80% of the simulated runs."""


@dataclass(frozen=True)
class Spread:
    """A figure over the simulated runs: its mean, and the band that holds the middle 80% of them.

    Parameters
    ----------
    mean : float
        The mean.
    low, high : float
        The band.

    Examples
    --------
    >>> import numpy as np
    >>> Spread.of(np.arange(101.0)).describe()
    '50 (10 to 90)'
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> "Spread":
        """Summarise one value per run.

        Parameters
        ----------
        values : array of float
            One value per run.

        Returns
        -------
        Spread
            Mean and band.
        """
        low, high = np.quantile(values, [(1 - MARGIN) / 2, (1 + MARGIN) / 2])
        return cls(float(np.mean(values)), float(low), float(high))

    @classmethod
    def of_next(cls, values: FloatArray) -> "Spread":
        """Predict the value of one more run.

        Parameters
        ----------
        values : array of float
            One value per run.

        Returns
        -------
        Spread
            The mean, and the interval that holds the next value with probability SURE if values
            are normal: mean -+ t s sqrt(1 + 1/n). Of a single run nothing is known of the
            spread: then the interval reaches from minus to plus the size of the value, and further.

        Examples
        --------
        >>> import numpy as np
        >>> Spread.of_next(np.array([9.0, 10.0, 11.0, 10.0])).describe()
        '10 (5 to 15)'
        """
        count = len(values)
        mean = float(np.mean(values))
        if count == 1:
            return cls(mean, -2 * abs(mean), 2 * abs(mean))
        from scipy.special import stdtrit

        half = stdtrit(count - 1, (1 + SURE) / 2) * np.std(values, ddof=1) * np.sqrt(1 + 1 / count)
        return cls(mean, mean - float(half), mean + float(half))

    def describe(self) -> str:
        """Write the figure as text.

        Returns
        -------
        str
            For example "1,234 (1,100 to 1,400)".
        """
        text = f"{self.mean:,.0f} ({self.low:,.0f} to {self.high:,.0f})"
        return text.replace("-", "\N{MINUS SIGN}")


def chance_of_saving(savings: FloatArray) -> float:
    """The probability that one more run saves, by the runs so far.

    Two estimates, and the surer one counts. If savings are normal, that of the interval:
    T_{n-1}(mean / (s sqrt(1 + 1/n))). If all n runs agree, one more run agrees with probability
    n / (n + 1), whatever the distribution, because each of n + 1 runs is as likely to be the odd
    one. A single run says nothing.

    >>> import numpy as np
    >>> round(chance_of_saving(np.array([-3.0, -1.0, -200.0])), 2)  # none of 3 saved
    0.25
    >>> chance_of_saving(np.array([5.0]))
    0.5
    """
    from scipy.special import stdtr

    count = len(savings)
    if count == 1:
        return 0.5
    mean = float(np.mean(savings))
    scale = float(np.std(savings, ddof=1)) * np.sqrt(1 + 1 / count)
    if scale == 0:
        return 1.0 if mean > 0 else 0.0
    chance = float(stdtr(count - 1, mean / scale))
    saved = int((savings > 0).sum())
    if saved == 0:
        return min(chance, 1 / (count + 1))
    return max(chance, count / (count + 1)) if saved == count else chance


def answer_of(savings: FloatArray) -> Answer:
    """Whether a launch with these savings is worth it.

    Clear, where the interval that holds the saving of one more run with probability SURE lies on
    one side of zero; probable, where one more run falls on that side with probability PROBABLE.

    >>> import numpy as np
    >>> answer_of(np.array([9.0, 10.0, 11.0, 10.0])), answer_of(np.array([-1.0, -20.0, -3.0]))
    ('worth it', 'probably not worth it')
    >>> answer_of(np.array([-5.0, 6.0, 1.0, -2.0])), answer_of(np.array([10.0]))
    ('close call', 'close call')
    """
    band = Spread.of_next(savings)
    if band.low > 0:
        return "worth it"
    if band.high <= 0:
        return "not worth it"
    chance = chance_of_saving(savings)
    if chance >= PROBABLE:
        return "probably worth it"
    return "probably not worth it" if chance <= 1 - PROBABLE else "close call"


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Brief):
    """A figure over rounds, with its band over the simulated runs.

    Parameters
    ----------
    mean : array of float
        The mean at each round.
    low, high : array of float
        The band at each round.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve.of(np.array([[0.0, 1.0], [0.0, 3.0]]))
    >>> curve.mean.tolist()
    [0.0, 2.0]
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, runs: FloatArray) -> "Curve":
        """Summarise one curve per run.

        Parameters
        ----------
        runs : array of float
            (runs, rounds).

        Returns
        -------
        Curve
            Mean and band.
        """
        low, high = np.quantile(runs, [(1 - MARGIN) / 2, (1 + MARGIN) / 2], axis=0)
        return cls(runs.mean(axis=0), low, high)


def constant_in_words(share: float) -> str:
    """What it is to accept a share of the people, whoever they are.

    >>> constant_in_words(1.0), constant_in_words(0.0), constant_in_words(0.3)
    ('accepting all applicants', 'rejecting all applicants', 'accepting 30% by lot')
    """
    whole = {1.0: "accepting all applicants", 0.0: "rejecting all applicants"}
    return whole.get(share, f"accepting {100 * share:.3g}% by lot")


def median_round(reached_at: FloatArray, horizon: float) -> float:
    """The median round of one more run, estimated from n runs; infinity if most do not reach it.

    The middle one of a few runs is a poor estimate of the median: another n runs have another one.
    Its mean over resampled runs has a smaller variance (Harrell and Davis, 1982): with r_(1) <= ...
    <= r_(n) the ordered rounds,

        ln(1 + median) = sum_i w_i ln(1 + r_(i)),    w_i = B(i/n) - B((i - 1)/n),

    B the distribution function of Beta((n + 1)/2, (n + 1)/2). Logarithms, because epochs grow by a
    factor. A run that does not reach it counts as the horizon.

    >>> import numpy as np
    >>> round(median_round(np.array([1_000.0, 1_250.0, 1_562.0, np.inf]), 10_000))
    1718
    >>> median_round(np.array([1_000.0, np.inf, np.inf]), 10_000)
    inf
    """
    from scipy.special import betainc

    runs = np.sort(reached_at)
    count = len(runs)
    if not isfinite(runs[(count - 1) // 2]):
        return inf
    rounds = np.minimum(runs, horizon)
    half = (count + 1) / 2
    weights = np.diff(betainc(half, half, np.arange(count + 1) / count))
    # a run that has the weight from the start reaches it after 0 rounds
    return float(np.expm1(weights @ np.log1p(rounds)))


@dataclass(frozen=True)
class Milestone:
    """The round from which a share of the learned policy's full weight is deployed for good.

    Parameters
    ----------
    share : float
        The share.
    round, early, late : int or None
        The median over the simulated runs (`median_round`), and the band; None means not within
        the horizon.
    reached : int
        How many runs reached it.
    runs : int
        How many runs there were.

    Examples
    --------
    >>> import numpy as np
    >>> Milestone.of(0.5, np.array([200.0, 300.0, 250.0]), horizon=1_000).describe()
    'after 247 people (200 to 300)'
    >>> Milestone.of(0.5, np.array([np.inf, 300.0, np.inf]), horizon=1_000).describe()
    'not within the horizon (1 of 3 simulation runs)'
    """

    share: float
    round: int | None
    early: int | None
    late: int | None
    reached: int
    runs: int

    @classmethod
    def of(cls, share: float, reached_at: FloatArray, horizon: float) -> "Milestone":
        """Summarise when simulated runs reached it.

        Parameters
        ----------
        share : float
            The share.
        reached_at : array of float
            The round of each run; infinity where it was not within the horizon.
        horizon : float
            The rounds of each run.

        Returns
        -------
        Milestone
            Median and band.
        """
        band = [(1 - MARGIN) / 2, (1 + MARGIN) / 2]
        ends = np.quantile(reached_at, band, method="inverted_cdf")
        figures = (median_round(reached_at, horizon), *ends)
        median, early, late = (round(value) if isfinite(value) else None for value in figures)
        reached = int(np.isfinite(reached_at).sum())
        return cls(share, median, early, late, reached, len(reached_at))

    def describe(self) -> str:
        """Write the milestone as text.

        Returns
        -------
        str
            For example "after 12,000 people (9,000 to 20,000)".
        """
        if self.round is None:
            return f"not within the horizon ({self.reached} of {self.runs} simulation runs)"
        late = "beyond the horizon" if self.late is None else f"{self.late:,}"
        return f"after {self.round:,} people ({self.early:,} to {late})"


@dataclass(frozen=True, eq=False)
class Course:
    """One way to decide, simulated.

    Parameters
    ----------
    name : str
        The learner's name.
    explored : float
        The rounds in which it accepts all applicants first.
    guaranteed : bool
        Whether its own bound covers the limit.
    infeasible : str, optional
        Why it cannot run at this horizon; then there are no figures.
    regret : Spread, optional
        The cost beyond the best policy within the limit, at the horizon.
    total : Spread, optional
        The cost at the horizon.
    worst_gap : float, optional
        The largest true gap of any run.
    cost : Curve, optional
        The cumulative cost.

    Examples
    --------
    >>> Course("two-phase", 9000.0, guaranteed=True, infeasible="too long").regret is None
    True
    """

    name: str
    explored: float
    guaranteed: bool
    infeasible: str | None = None
    regret: Spread | None = None
    total: Spread | None = None
    worst_gap: float | None = None
    cost: Curve | None = None


@dataclass(frozen=True)
class Advice:
    """What would help a launch that is held back: the first that succeeds in two simulated runs.

    Parameters
    ----------
    sought : bool
        Whether anything was tried: nothing is where a launch is worth it as it is.
    limit, horizon : float, int or None
        The limit at this volume, and the number of people at this limit, that would do.
    widest_limit, longest_horizon : float, int or None
        How far was tried.
    gain_from, gain : float or None
        Where there is nothing to gain: from which limit on there is, and how much per person.
    note : str
        What the learner says whose audit budget was too small to begin.

    Examples
    --------
    >>> Advice().sought, Advice(True, limit=0.2).limit
    (False, 0.2)
    """

    sought: bool = False
    limit: float | None = None
    horizon: int | None = None
    widest_limit: float | None = None
    longest_horizon: int | None = None
    gain_from: float | None = None
    gain: float | None = None
    note: str = ""


HELD_BACK = 0.5
"""Below this share of the full weight a launch is held back."""


@dataclass(frozen=True, eq=False)
class LaunchPlan(Told):
    """What a launch of the certified learner is expected to cost and to bring, by simulation.

    Costs are in units of the prices (errors, if both are 1).

    Parameters
    ----------
    limit, delta : float
        The guarantee.
    horizon : int
        People in all.
    per_day : float or None
        People per day.
    population : mapping
        Where the population comes from, its groups, and the number of rules.
    prices : (float, float)
        The prices of a false accept and of a false reject.
    runs : int
        How many runs were simulated.
    constant_share : float
        Whom the better constant accepts: 1, all applicants; 0, nobody; else so large a share of
        them, by lot.
    constant_cost, best_cost, free_cost : float
        Costs per person of that constant, of the best policy within the limit, and without a limit.
    full_weight : float
        The learned rules' weight in the best policy within the limit; the rest are constants.
    audited, audited_bad, bill, bill_beyond_constant : Spread
        People whom the audit coin accepts, those of them with a bad outcome, what these cost, and
        what the audits cost beyond the better constant.
    half, full : Milestone
        When half, and 95%, of the full weight is certified.
    saving, saving_share : Spread, float
        What is saved against the better constant, and its share of what is possible.
    break_even : int or None
        The round from which the mean cost stays below the better constant's.
    final_share : float
        The share of the full weight that is certified at the horizon.
    final_weight : float
        The certified weight of the learned rules at the horizon, in the median run.
    runs_that_save : int
        In how many runs the learner is cheaper than the better constant.
    answer : str
        Whether the launch is worth it.
    advice : Advice
        What would help.
    rounds : array of float
        The rounds of the curves.
    weight, audit, gap, accepted, bill_so_far : Curve
        The share of the full weight that is certified, the share of people whom the audit coin
        accepts, the true |gap|, the share of the people whom the policy accepts, and what all
        audits have cost by then.
    courses : tuple of Course
        The certified learner, and the other ways to decide.
    accept_at_most, accept_at_least : float, optional
        The capacity, and the floor: the share of the people whom every policy may accept at most,
        and at least.
    quota : (int, float), optional
        How many people may be accepted of how many who come, as a hard count.
    audit_budget : float, optional
        Bad accepts that audits may cost.
    incumbent : tuple of Incumbent
        What the rules of today do on the table.

    Examples
    --------
    >>> import evenhand as eh
    >>> launch = eh.plan(
    ...     limit=0.1, group_shares={"a": 0.6, "b": 0.4}, bad_rates=0.4, auc=0.85,
    ...     per_day=50, days=100, runs=1,
    ... )
    >>> launch.horizon, launch.days(1_000), launch.unit, launch.certified.name
    (5000, '20 days', 'errors', 'certified')
    >>> launch.answer
    'close call'
    >>> [people for people, *_ in launch.over_time()]
    [100, 250, 750, 2500, 5000]
    >>> launch.to_frame("curves").columns.tolist()[:3]
    ['people', 'weight', 'weight_low']
    """

    limit: float
    delta: float
    horizon: int
    per_day: float | None
    population: Params
    prices: tuple[float, float]
    runs: int
    constant_share: float
    constant_cost: float
    best_cost: float
    free_cost: float
    full_weight: float
    audited: Spread
    audited_bad: Spread
    bill: Spread
    bill_beyond_constant: Spread
    half: Milestone
    full: Milestone
    saving: Spread
    saving_share: float
    break_even: int | None
    final_share: float
    final_weight: float
    runs_that_save: int
    answer: Answer
    advice: Advice
    rounds: FloatArray
    weight: Curve
    audit: Curve
    gap: Curve
    accepted: Curve
    bill_so_far: Curve
    courses: tuple[Course, ...]
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    quota: tuple[int, float] | None = None
    audit_budget: float | None = None
    incumbent: tuple[Incumbent, ...] = ()

    ALSO: ClassVar = ("constant", "possible", "unit")

    def result(self) -> Result:
        """What is said of the plan.

        Returns
        -------
        Result
            Whether the launch is worth it, and why; the tables "ways", "over_time", "milestones",
            "curves" and others.
        """
        return planned(self)

    def over_time(self) -> list[tuple[int, float, float, float, float]]:
        """Return what happens along the way, in the mean over the simulation runs.

        Returns
        -------
        list of (int, float, float, float, float)
            After how many people; the share whom the policy then accepts; the share whom the audit
            coin accepts; the share of the learned policy's full weight that is certified; and what
            all audits have cost so far.
        """
        stops = [min(100, self.horizon), *(round(part * self.horizon) for part in ALONG)]
        rows = []
        for people in sorted({stop for stop in stops if stop >= min(100, self.horizon)}):
            # the policy that decides about the next person, which the last stop has not
            at = int(np.searchsorted(self.rounds, people))
            curves = (self.accepted, self.audit, self.weight, self.bill_so_far)
            accepted, audit, weight, bill = (float(curve.mean[at]) for curve in curves)
            rows.append((people, accepted, audit, weight, bill))
        return rows

    @property
    def worth_it(self) -> bool:
        """Whether the launch is expected to be cheaper than the best constant."""
        return self.answer == "worth it"

    @property
    def certified(self) -> Course:
        """The certified learner's course."""
        return self.courses[0]

    @property
    def constant(self) -> str:
        """The better constant, in words."""
        return constant_in_words(self.constant_share)

    @property
    def possible(self) -> float:
        """What the best policy within the limit would save over the horizon."""
        return self.horizon * (self.constant_cost - self.best_cost)

    @property
    def held_back(self) -> bool:
        """Whether less than half of the full weight is certified at the horizon."""
        return self.final_share < HELD_BACK

    @property
    def unit(self) -> str:
        """What costs are counted in."""
        return "errors" if self.prices == (1.0, 1.0) else "units of cost"

    def __repr__(self) -> str:
        return f"<LaunchPlan: {self.answer}, {self.horizon:,} people, limit {self.limit:g}>"

    def days(self, people: float) -> str:
        """Write a number of people as days.

        Parameters
        ----------
        people : float
            How many people.

        Returns
        -------
        str
            For example "12 days"; empty where the volume per day is not known.
        """
        return "" if self.per_day is None else f"{people / self.per_day:,.0f} days"


ALONG = (0.01, 0.05, 0.15, 0.5, 1.0)
"""The parts of the horizon at which `over_time` looks, besides the first 100 people."""
