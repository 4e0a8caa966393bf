"""Has the population changed? Sequential tests that may be looked at all the time, with a
false-alarm probability for the whole run.

The guarantee assumes that D does not change. What can be watched are streams of categories that are
i.i.d. while D is fixed: the group of each arrival; the label of each audited person of a group
(good, bad, unresolved); the decision of one fixed policy.

**Theorem.** Let X_1, X_2, ... be i.i.d. with any fixed distribution theta on C categories, and Q
any probability distribution of sequences. With n_c the counts,

    E_t = Q(X_1..X_t) / sup over theta' of prod_c theta'_c^{n_c}
       <= Q(X_1..X_t) / P_theta(X_1..X_t) =: M_t,

and M_t is a non-negative martingale with M_0 = 1 under theta (a likelihood ratio), so by Ville's
inequality P(E_t >= 1/alpha for any t) <= P(M_t >= 1/alpha for any t) <= alpha, for all t at once,
whatever theta, without knowing theta.

*Choice of Q: one change.* Time is cut into blocks of at least `block` people (where a block ends
may depend on anything in the past). With probability pi_j the distribution changes at the end of
block j; before and after it, a fresh Dirichlet(1/2) mixture (Krichevsky-Trofimov). With J blocks so
far,

    Q = sum_j pi_j KT(before j) KT(since j) + w_J KT(all)
    w_J = 1/(1 + ln(1+J)),    pi_j = w_{j-1} - w_j.

Terms are non-negative, so leaving some out keeps E_t below M_t: of J candidates only about 4 log2 J
are kept (a multiple of 2^v is kept for 4 * 2^v blocks), and the state stays small for ever.

*Adaptive audits are harmless*: M_t needs only that, given the past, the next person of the stream
has distribution theta. Whether and when there is a next one may depend on anything in the past.
(Labels enter in order of arrival, once their cohort is closed.)

*Power.* With n people before and m after a change from p to q, ln E is about m KL(q, p) n/(n+m) -
(C-1)/2 ln(n m) - ln 1/pi_j. A base rate that moves by .1 after n = 20,000 people (share 1e-3/6,
looked at every 50) is flagged after 600 people at .1 -> .2, 1,250 at .3 -> .4 and 1,350 at .5 -> .4
(medians; 95% within 900, 1,850 and 2,200); after n = 5,000, 95% within 2,600. With fewer than about
2,000 people before the change the past is too short to contradict, and a shift of .1 may never be
flagged. On a fixed population the evidence falls: in 900 simulated runs of a million people E
never exceeded 1.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.shares import require_share
from evenhand.words import FloatArray, Group

KEPT_BLOCKS = 4
"""A candidate at a multiple of 2^v blocks is kept for KEPT_BLOCKS * 2^v blocks."""


def log_mixture(counts: FloatArray) -> FloatArray:
    """ln KT(counts) = ln of Gamma(C/2)/Gamma(N + C/2) prod_c Gamma(n_c + 1/2)/Gamma(1/2), over the
    last axis.
    """
    from scipy.special import gammaln

    half = counts.shape[-1] / 2
    each = (gammaln(counts + 0.5) - math.lgamma(0.5)).sum(axis=-1)
    mixed = each + math.lgamma(half) - gammaln(counts.sum(axis=-1) + half)
    return np.asarray(mixed, dtype=np.float64)


def log_likelihood(counts: FloatArray) -> FloatArray:
    """sup over theta of ln prod theta_c^{n_c} = sum_c n_c ln(n_c/N), over the last axis."""
    from scipy.special import xlogy

    people = counts.sum(axis=-1)
    return np.asarray(xlogy(counts, counts).sum(axis=-1) - xlogy(people, people))


def no_change_weight(blocks: int) -> float:
    """w_J = 1/(1 + ln(1+J)): the prior probability of no change at the first J boundaries."""
    return 1 / (1 + math.log1p(blocks))


def change_weight(block: int) -> float:
    """pi_j = w_{j-1} - w_j, about 1/(j ln^2 j): slow enough to find a late change."""
    return no_change_weight(block - 1) - no_change_weight(block)


def kept(block: int, blocks: int) -> bool:
    """Whether the boundary after block `block` is still a candidate when `blocks` blocks have
    ended.
    """
    return blocks - block < KEPT_BLOCKS * (block & -block)


@dataclass(frozen=True)
class ConstancyTest:
    """The e-process of one stream; it is `alarmed` for ever once peak >= ln 1/alpha.

    Parameters
    ----------
    false_alarm : float
        alpha: the probability of ever being alarmed on a fixed population.
    block : int
        The people of a block, at least.
    total : tuple of float
        The counts of each category so far.
    open : float
        The people since the last boundary.
    blocks : int
        How many blocks have ended.
    boundaries : tuple
        (block number, counts before it) of the points at which a change may have happened.
    peak : float
        The largest ln E ever seen.

    Examples
    --------
    >>> test = ConstancyTest.start(categories=2, false_alarm=1e-3, block=100)
    >>> for _ in range(20):
    ...     test = test.update([30, 70])
    >>> test.alarmed
    False
    >>> for _ in range(20):
    ...     test = test.update([50, 50])
    >>> test.alarmed
    True
    """

    false_alarm: float
    block: int
    total: tuple[float, ...]
    open: float = 0.0
    blocks: int = 0
    boundaries: tuple[tuple[int, tuple[float, ...]], ...] = ()
    peak: float = 0.0

    @classmethod
    def start(cls, categories: int, false_alarm: float, block: int = 250) -> Self:
        """A test that has seen nobody.

        Parameters
        ----------
        categories : int
            How many values the stream has, at least 2.
        false_alarm : float
            alpha.
        block : int, default 250
            The people of a block.

        Returns
        -------
        ConstancyTest
            The test.
        """
        require_share("false_alarm", false_alarm, "(0, 1)")
        if categories < 2 or block < 1:
            raise InvalidInput(
                f"{categories} categories, blocks of {block}: a test needs >= 2 and >= 1."
            )
        return cls(false_alarm, block, (0.0,) * categories)

    @property
    def alarmed(self) -> bool:
        """Whether the evidence ever reached 1/alpha."""
        return self.peak >= -math.log(self.false_alarm)

    def update(self, counts: ArrayLike) -> "ConstancyTest":
        """The test after the next people.

        Parameters
        ----------
        counts : array_like, shape (categories,)
            How many of them are in each category.

        Returns
        -------
        ConstancyTest
            A new test.
        """
        new = np.asarray(counts, dtype=np.float64)
        if new.shape != (len(self.total),) or (new < 0).any():
            raise LengthMismatch(
                f"counts is {new.tolist()}; this stream has {len(self.total)} categories, none "
                "negative."
            )
        total = tuple(float(n) for n in new + self.total)
        grown = replace(self, total=total, open=self.open + float(new.sum()))
        measured = replace(grown, peak=max(self.peak, grown.log_evidence()))
        if measured.open < self.block:
            return measured
        # a boundary here: from now on a change may have happened at this point
        number = self.blocks + 1
        candidates = (*measured.boundaries, (number, measured.total))
        alive = tuple(entry for entry in candidates if kept(entry[0], number))
        return replace(measured, open=0.0, blocks=number, boundaries=alive)

    def log_evidence(self) -> float:
        """The evidence against a fixed population.

        Returns
        -------
        float
            ln E_t from the candidates that are kept.
        """
        total = np.array(self.total)
        terms = [math.log(no_change_weight(self.blocks)) + float(log_mixture(total))]
        if self.boundaries:
            before = np.array([counts for _, counts in self.boundaries])
            prior = np.log([change_weight(block) for block, _ in self.boundaries])
            terms.extend((prior + log_mixture(before) + log_mixture(total - before)).tolist())
        return float(np.logaddexp.reduce(terms) - log_likelihood(total))


@dataclass(frozen=True)
class Stream:
    """The name of a stream.

    Parameters
    ----------
    kind : str
        What is watched: "group mix", "labels", "share".
    group : optional
        The group whose people are in it.
    rule : int, optional
        The number of the rule that accepted them.

    Examples
    --------
    >>> print(Stream("labels", "a", 3))
    labels of a accepted by rule 3
    """

    kind: str
    group: Group = None
    rule: int | None = None

    def __str__(self) -> str:
        who = "" if self.group is None else f" of {self.group}"
        by = "" if self.rule is None else f" accepted by rule {self.rule}"
        return f"{self.kind}{who}{by}"


@dataclass(frozen=True)
class DriftMonitor:
    """Several streams under one false-alarm probability.

    Parameters
    ----------
    false_alarm : float
        alpha of all streams together.
    block : int
        The people of a block.
    streams : dict
        The test of each stream.
    later : int, default 0
        How many streams appeared after the start.

    Notes
    -----
    Streams named at the start share half of alpha equally. A stream that appears later (one per
    deployed policy), the N-th of them, gets 6 (alpha/2) / (pi^2 N^2). The shares sum to at most
    alpha, so by the union bound the probability that a learner on a fixed D is ever alarmed is at
    most alpha.

    Examples
    --------
    >>> monitor = DriftMonitor.start({Stream("group mix"): 2, Stream("labels", "a"): 2})
    >>> monitor = monitor.watch(Stream("group mix"), [60, 40]).watch(Stream("share", "a"), [1, 3])
    >>> monitor.alarms, [str(name) for name in monitor.streams]
    ((), ['group mix', 'labels of a', 'share of a'])
    """

    false_alarm: float
    block: int
    streams: dict[Stream, ConstancyTest]
    later: int = 0

    @classmethod
    def start(
        cls, categories: dict[Stream, int], false_alarm: float = 1e-3, block: int = 250
    ) -> Self:
        """A monitor that has seen nobody.

        Parameters
        ----------
        categories : dict
            How many values each stream has that is known from the beginning.
        false_alarm : float, default 1e-3
            alpha.
        block : int, default 250
            The people of a block.

        Returns
        -------
        DriftMonitor
            The monitor.
        """
        share = false_alarm / (2 * max(len(categories), 1))
        tests = {name: ConstancyTest.start(c, share, block) for name, c in categories.items()}
        return cls(false_alarm, block, tests)

    @property
    def alarms(self) -> tuple[Stream, ...]:
        """The streams that changed."""
        return tuple(name for name, test in self.streams.items() if test.alarmed)

    def watch(self, name: Stream, counts: ArrayLike) -> "DriftMonitor":
        """The monitor after the next people of a stream.

        Parameters
        ----------
        name : Stream
            The stream; an unknown name opens one, with its own share of alpha.
        counts : array_like, shape (categories,)
            How many of the people are in each category.

        Returns
        -------
        DriftMonitor
            A new monitor.
        """
        later = self.later
        test = self.streams.get(name)
        if test is None:
            later += 1
            share = inverse_square_share(self.false_alarm / 2, later)
            test = ConstancyTest.start(np.asarray(counts).size, share, self.block)
        return replace(self, later=later, streams={**self.streams, name: test.update(counts)})

    def retire(self, name: Stream) -> "DriftMonitor":
        """The monitor without a stream that has ended; its share stays spent.

        Parameters
        ----------
        name : Stream
            The stream, for example of a policy that is no longer deployed.

        Returns
        -------
        DriftMonitor
            A new monitor.
        """
        left = {key: test for key, test in self.streams.items() if key != name}
        return replace(self, streams=left)

    def describe(self) -> str:
        """The monitor in words.

        Returns
        -------
        str
            One line per stream.
        """
        return "\n".join(
            f"{name}: {int(sum(test.total)):,} people, evidence {test.peak:.1f} of "
            f"{-math.log(test.false_alarm):.1f}" + (" ALARM" if test.alarmed else "")
            for name, test in self.streams.items()
        )
