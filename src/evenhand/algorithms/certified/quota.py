"""A quota: so many people may be accepted in a period, as a hard count.

Coins are tossed one at a time, in the order of arrival. A person has the policy's probability while
fewer than `count` people of the period have been accepted, and else is rejected for certain, under
the record of the policy "reject all applicants": that is settled before the person's coin, by
earlier people alone. So the bets of the certificate stay predictable, row by row, although when a
quota is spent depends on earlier coins. Nobody is ordered by a score, and nothing is cut
afterwards.

A quota is spread over its period by aiming at the accepted share count / people of those who come.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.algorithms.settings import require_number, require_whole
from evenhand.rounds import Rounds


@dataclass(frozen=True)
class Quota:
    """At most so many people are accepted in each period of time.

    Parameters
    ----------
    count : int
        How many people may be accepted in a period; never exceeded.
    period : float
        How long a period is, in the units of `at` in `decide`: period k lasts from k * period until
        the next one begins.
    people : float, optional
        About how many people come in a period, for spreading the quota over it; by default as many
        as came in the periods before.

    Raises
    ------
    InvalidInput
        If a number makes no sense.

    Notes
    -----
    A person who was drawn to be accepted counts, even if a human then rejects the person.

    Examples
    --------
    >>> Quota(50, period=1.0, people=1000).people
    1000
    """

    count: int
    period: float
    people: float | None = None

    def __post_init__(self) -> None:
        require_whole(
            "count",
            self.count,
            1,
            "a quota is a whole number of people, at least 1",
            "leave the quota out to set none; to accept nobody, no learner is needed.",
        )
        require_number(
            "period",
            self.period,
            lambda span: span > 0,
            "a period is a positive, finite span of time",
            "in the units of at: 1.0 for a day, if at counts days.",
        )
        if self.people is not None:
            require_number(
                "people",
                self.people,
                lambda many: many > 0,
                "the number of people who come in a period is above 0",
                "None takes as many as came in the periods before.",
            )

    def left(self, rounds: Rounds, now: float | None) -> int:
        """How many people may still be accepted in the present period.

        Parameters
        ----------
        rounds : Rounds
            The people decided so far.
        now : float or None
            The time; None before the first person.

        Returns
        -------
        int
            At least 0.
        """
        if now is None:
            return int(self.count)
        at = rounds["at"]
        # time does not run backwards, so the column is sorted; a border is rounded the same way for
        # all people
        period = np.floor(now / self.period)
        begin = int(np.searchsorted(at, (period - 1.0) * self.period))
        here = np.floor(at[begin:] / self.period) == period
        return max(int(self.count) - int(rounds["accept"][begin:][here].sum()), 0)

    def aim(self, rounds: Rounds, now: float | None) -> float:
        """The accepted share that spreads the quota over a period.

        Parameters
        ----------
        rounds : Rounds
            The people decided so far.
        now : float or None
            The time.

        Returns
        -------
        float
            A number in (0, 1]; 1 while nobody knows how many come.
        """
        people = self.people
        if people is None and now is not None:
            period = np.floor(now / self.period)
            at = rounds["at"]
            whole = np.floor(at / self.period) < period
            if whole.any():
                periods = period - np.floor(at[0] / self.period)
                people = float(whole.sum()) / float(periods)
        return 1.0 if people is None else min(self.count / people, 1.0)
