"""A closed cohort of rounds, and the wealth that it brings every betting process at the nodes of
[0, 1].

[0, 1] is cut, before any data, into CELLS between EDGES, and the cells are gathered into CLASSES.
For one class [a, b], a group j, a bet lambda, a side and a hypothesis that accepts the row (h = 1)
or rejects it (h = 0):

    g = min(lambda c_j, THETA / max(1 - a, b)),    s = 1 - a if h = 1 else b
    R = THETA / (g s) >= 1
    phi > 0 is dangerous (up and h = 1, low and h = 0):   m' = max(m, (w - R)/(w - 1)),   w = 1/p
    phi < 0 is dangerous (up and h = 0, low and h = 1):   m' = min(m, R/(w - 1))
    phi = m' (rejected),  w - m'(w - 1) (accepted, hit),  -m'(w - 1) (accepted, miss)
    ln W(f) = sum over rows of ln(1 -+ g phi (h - f))       - for up, + for low

so that g |phi| |h - f| <= THETA for phi of the dangerous sign and every f of the class. A label
that has not arrived is a hit where phi > 0 is dangerous and a miss where phi < 0 is: the smaller
factor. Where the clamp binds, the dangerous phi is written as R: w - m'(w - 1) would lose digits at
small p.

ln W is a sum of logarithms of affine functions of f, so it is concave on the class, and in a cell
it lies above the chord through its values at the two nodes. Where the chord exceeds the threshold,
ln W does:

    one group        points f of a cell with chord > L are out
    a pair of cells  points (f_j, f_i) with chord_j^up + chord_i^low > L are out

The classes share their borders, so there are 28 nodes for 20 cells. Rows of equal group, w, m and
outcome are counted together, and the bets of a plan are few (`BettingBound.plan`), so that the
logarithms are computed once for all hypotheses; what a hypothesis adds is a product of its counts
with them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evenhand.computing import compiled
from evenhand.contracts import Rate
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, IntArray, as_numbers

THETA = 0.8
"""Every factor is at least 1 - THETA."""
_LEFT = (0, 0.01, 0.035, 0.07, 0.115, 0.16, 0.21, 0.27, 0.35, 0.42)
_BORDERS = (0, 0.035, 0.115, 0.27)
EDGES = np.array([*_LEFT, 0.5, *(1.0 - np.array(_LEFT[::-1]))])
CLASSES = np.array([*_BORDERS, 0.5, *(1.0 - np.array(_BORDERS[::-1]))])
_CUTS = np.searchsorted(EDGES, CLASSES - 1e-9)
FIRST_CELL = _CUTS[:-1]
"""The first cell of each class."""
SPANS = tuple(slice(_CUTS[c] + c, _CUTS[c + 1] + c + 1) for c in range(len(CLASSES) - 1))
"""The nodes of each class."""
NODES = np.concatenate([EDGES[_CUTS[c] : _CUTS[c + 1] + 1] for c in range(len(CLASSES) - 1)])
CLASS_OF_CELL = np.repeat(np.arange(len(CLASSES) - 1), np.diff(_CUTS))
CLASS_OF_NODE = np.repeat(np.arange(len(CLASSES) - 1), np.diff(_CUTS) + 1)
LEFT_NODE = np.arange(len(EDGES) - 1) + CLASS_OF_CELL
"""The node at the left end of each cell; the next one is at its right end."""
AT_ONCE = 100_000
"""Logarithms that are computed at a time, few enough to stay in the cache."""
MOST_ENTRIES = 20_000
"""Rows, or kinds of rounds, that are looked at together."""
REJECTED, HIT, MISS, UNRESOLVED = range(4)
OUTCOMES = ("rejected", "positive", "negative", "unresolved")
"""What became of a round, in the order in which rounds are counted."""
UP = 0
LOW = 1
"""The two sides of a process: up rejects high rates, low rejects low ones."""
SIDES = np.array([[UP], [LOW]])


def as_table(accepts: ArrayLike, group: ArrayLike) -> tuple[BoolArray, IntArray]:
    """(M, n) who accepts whom, and (n,) the codes of the groups."""
    table = np.ascontiguousarray(accepts, dtype=bool)
    codes = np.ascontiguousarray(group, dtype=np.int64)
    if codes.ndim != 1 or table.ndim != 2 or table.shape[1] != len(codes):
        raise LengthMismatch(
            f"accepts is {table.shape} and group {codes.shape}; they must be (hypotheses, n) and "
            "(n,)."
        )
    return table, codes


@dataclass(frozen=True, eq=False, repr=False)
class AcceptedRounds(Brief):
    """How many rounds of each row and outcome every hypothesis accepts: sums, without people.

    A hypothesis that cuts a column accepts the people above its cut. So one number for each cut of
    a column is kept, the people between it and the next one, and its suffix sums are what the rules
    of the column accept, or what they reject. Any other rule has a number of its own.

    Parameters
    ----------
    rounds : array of int, shape (rows, 4)
        The rounds of each row by outcome, in the order of `OUTCOMES`.
    by_slot : array of int, shape (rows, 4, slots)
        The same by slot.
    ends : array of int, shape (slots,)
        The first slot after the column of each slot.
    place : array of int, shape (M,)
        The slot at which the sum of each hypothesis begins.
    below : array of bool, shape (M,)
        Hypotheses that accept those who are not in the sum.

    Examples
    --------
    >>> counts = AcceptedRounds(
    ...     rounds=np.array([[9, 0, 0, 0]]), by_slot=np.array([[[2, 3], [0, 0], [0, 0], [0, 0]]]),
    ...     ends=np.array([2, 2]), place=np.array([0, 1, 1]), below=np.array([False, False, True]),
    ... )
    >>> counts.weighted(np.ones((1, 4))).tolist()
    [5.0, 3.0, 6.0]
    """

    rounds: IntArray
    by_slot: IntArray
    ends: IntArray
    place: IntArray
    below: BoolArray

    def __len__(self) -> int:
        return len(self.place)

    def where(self, rows: BoolArray) -> "AcceptedRounds":
        """Some of the rows.

        Parameters
        ----------
        rows : array of bool
            Which.

        Returns
        -------
        AcceptedRounds
            These rows.
        """
        return AcceptedRounds(
            self.rounds[rows], self.by_slot[rows], self.ends, self.place, self.below
        )

    def of(
        self, rows: IntArray, kinds: IntArray, kind_of: tuple[int, ...], starts: IntArray
    ) -> FloatArray:
        """How many rounds of some entries each hypothesis accepts.

        Parameters
        ----------
        rows, kinds : array of int, shape (E,)
            The row of each entry, and as which kind its rounds are seen.
        kind_of : tuple of int
            As which kind a round with each of the OUTCOMES is seen.
        starts : array of int
            Entries from one start to the next are added up.

        Returns
        -------
        array, shape (M, starts)
            Exact counts.
        """
        by_slot = np.zeros((len(rows), self.by_slot.shape[2]), dtype=self.by_slot.dtype)
        all_people = np.zeros(len(rows))
        for outcome, seen_as in enumerate(kind_of):
            here = np.flatnonzero(kinds == seen_as)
            by_slot[here] += self.by_slot[rows[here], outcome]
            all_people[here] += self.rounds[rows[here], outcome]
        if len(starts) < len(rows):
            by_slot = np.add.reduceat(by_slot, starts, axis=0)
            all_people = np.add.reduceat(all_people, starts)
        suffix = np.zeros((by_slot.shape[1] + 1, len(starts)))
        suffix[:-1] = by_slot.T
        np.cumsum(suffix[::-1], axis=0, out=suffix[::-1])
        accepted = (suffix[:-1] - suffix[self.ends])[self.place]
        accepted[self.below] = all_people - accepted[self.below]
        return np.asarray(accepted)

    def weighted(self, weight: FloatArray) -> FloatArray:
        """A weighted sum over the rounds that each hypothesis accepts.

        Parameters
        ----------
        weight : array, shape (rows, 4)
            The weight of a round, by row and outcome.

        Returns
        -------
        array, shape (M,)
            The sums.
        """
        rows = weight.any(axis=1)
        by_slot = np.append(np.tensordot(weight[rows], self.by_slot[rows], 2), 0.0)
        suffix = np.cumsum(by_slot[::-1])[::-1]
        accepted = (suffix[:-1] - suffix[self.ends])[self.place]
        all_people = float((weight * self.rounds).sum())
        return np.asarray(np.where(self.below, all_people - accepted, accepted))


@dataclass(frozen=True, eq=False, repr=False)
class Cohort(Brief):
    """Rounds whose maturity window has closed, in rows of people who are alike.

    The people of a row have equal features, group, acceptance probability and regression. Arrays
    are checked and converted; one number stands for all rows.

    Parameters
    ----------
    accepts : array, shape (M, n)
        Whether hypothesis h accepts the people of row i.
    group : array, shape (n,)
        The code 0 ... G-1 of the group, or -1 for people outside the certificate.
    acceptance : array, shape (n,)
        p: the probability under which the rounds were played, exactly as it was drawn.
    regression : array, shape (n,)
        m: a forecast of P[y = -1 | x]; it is clipped to [0, 1].
    rejected, positive, negative, unresolved : array, shape (n,)
        Rounds rejected; accepted with y = +1; with y = -1; with a label that has not arrived.
    labelled : array, shape (G,), optional
        Groups in which the policy, known before the coins, accepts all applicants with a positive
        probability; all of them by default. The rates that need labels look at their rows alone,
        and there p > 0.
    lost_count, lost_weight : array, optional
        People of whom nothing but the draw is known any more, and the largest |phi| that each may
        have had before the clamp (1/p if accepted, else 1).
    taken : AcceptedRounds, optional
        How many rounds of each row every hypothesis accepts, instead of `accepts`, which is then of
        shape (0, n): the people of a row need not be alike for the hypotheses.

    Notes
    -----
    Requirements that no code can check: p and m are functions of the person's features (and group)
    and of *earlier* epochs alone; the coin was drawn afresh for each person; whether the group is
    known does not depend on the decision.

    Examples
    --------
    >>> cohort = Cohort(
    ...     [[True, False]], [0, 1], acceptance=0.5, regression=0.3,
    ...     rejected=[40, 60], positive=[30, 35], negative=[10, 25],
    ... )
    >>> cohort.rounds
    array([ 80., 120.])
    """

    accepts: BoolArray
    group: IntArray
    acceptance: FloatArray
    regression: FloatArray
    rejected: FloatArray
    positive: FloatArray
    negative: FloatArray
    unresolved: FloatArray = field(default_factory=lambda: np.array(0.0))
    labelled: BoolArray = field(default_factory=lambda: np.ones(0, dtype=bool))
    lost_count: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    taken: AcceptedRounds | None = None
    rounds: FloatArray = field(init=False, repr=False)
    """The rounds in each row."""

    if TYPE_CHECKING:  # what may be given; the fields hold what it is converted to

        def __init__(
            self,
            accepts: ArrayLike,
            group: ArrayLike,
            acceptance: ArrayLike,
            regression: ArrayLike,
            rejected: ArrayLike,
            positive: ArrayLike,
            negative: ArrayLike,
            unresolved: ArrayLike = 0.0,
            labelled: BoolArray = ...,
            lost_count: FloatArray = ...,
            lost_weight: FloatArray = ...,
            taken: AcceptedRounds | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        accepts, group = as_table(self.accepts, self.group)
        counts = OUTCOMES
        columns = {
            name: as_numbers(getattr(self, name), len(group), name)
            for name in ("acceptance", "regression", *counts)
        }
        labelled = np.asarray(self.labelled, dtype=bool)
        converted = columns | {
            "accepts": accepts,
            "group": group,
            "regression": np.clip(columns["regression"], 0.0, 1.0),
            "labelled": labelled if len(labelled) else np.ones(group.max(initial=-1) + 1, bool),
            "lost_count": np.asarray(self.lost_count, dtype=np.float64),
            "lost_weight": np.asarray(self.lost_weight, dtype=np.float64),
            "rounds": sum(columns[name] for name in counts),
        }
        for name, array in converted.items():
            object.__setattr__(self, name, array)
        for name in counts:
            _require_none(columns[name] < 0, columns[name], name, "a count cannot be below 0")
        impossible = (self.lost_weight < 1).any() or (self.lost_count < 0).any()
        if len(self.lost_count) != len(self.lost_weight) or impossible:
            raise InvalidInput(
                "lost people come with a count of at least 0 and a largest weight of at least 1."
            )
        p = self.acceptance
        _require_none(~((p >= 0) & (p <= 1)), p, "acceptance", "it is a probability")
        _require_none(
            (self.labelled_group >= 0) & (p <= 0),
            p,
            "acceptance",
            "a certificate needs every probability of being accepted in (0, 1], because it divides "
            "by it",
        )
        certain = (p == 1) & (self.rejected > 0)
        _require_none(
            certain, self.rejected, "acceptance is 1 but rejected", "that cannot have happened"
        )

    def __len__(self) -> int:
        return len(self.group)

    @property
    def hypotheses(self) -> int:
        """M."""
        return len(self.accepts) if self.taken is None else len(self.taken)

    @property
    def labelled_group(self) -> IntArray:
        """(n,): the code of the group where labels may be looked at, else -1."""
        inside = self.group >= 0
        counted = np.zeros(len(self.group), dtype=bool)
        counted[inside] = self.labelled[self.group[inside]]
        return np.where(counted, self.group, -1)


def _require_none(bad: BoolArray, value: FloatArray, what: str, requirement: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        message = f"{what} is {value[row]:g} in row {row} of the cohort"
        raise InvalidInput(message, requirement=requirement, row=row)


@dataclass(frozen=True, eq=False)
class CountedRounds:
    """A cohort as one rate sees it: a `hit` is an accepted round in the rate's denominator, a
    `miss` one outside it. lost_weight: the largest |phi| of the people of whom nothing is known; 0
    where this rate looks at nobody.
    """

    group: IntArray
    inverse: FloatArray
    regression: FloatArray
    rejected: FloatArray
    hit: FloatArray
    miss: FloatArray
    unresolved: FloatArray
    lost_weight: FloatArray
    kind_of: tuple[int, int, int, int]
    """As which kind a round with each of the OUTCOMES is seen."""

    @property
    def outcomes(self) -> FloatArray:
        """(4, n): rounds rejected, hit, miss, unresolved."""
        return np.stack([self.rejected, self.hit, self.miss, self.unresolved])

    @property
    def phi(self) -> FloatArray:
        """The unclamped estimate of how many of the row's rounds are in the denominator; unresolved
        ones count as forecast.
        """
        m = self.regression
        unseen = (self.rejected + self.unresolved) * m
        return unseen + self.hit * self._phi_of_hit + self.miss * self._phi_of_miss

    @property
    def _phi_of_hit(self) -> FloatArray:
        return self.regression + (1.0 - self.regression) * self.inverse

    @property
    def _phi_of_miss(self) -> FloatArray:
        return self.regression - self.regression * self.inverse

    @property
    def phi_of_outcomes(self) -> FloatArray:
        """(n, 4): what one round with each of the OUTCOMES adds to phi."""
        m = self.regression
        of_kind = {REJECTED: m, HIT: self._phi_of_hit, MISS: self._phi_of_miss, UNRESOLVED: m}
        return np.stack([of_kind[kind] for kind in self.kind_of], axis=1)


def counted_rounds(rate: Rate, cohort: Cohort) -> CountedRounds:
    """FPR: hits are the negatives; FNR: hits are the positives and m becomes 1 - m; selection:
    every round is a certain hit, whether its label may be looked at or not.
    """
    negatives, positives = counts_labels(rate)
    none = np.zeros(len(cohort))
    ones = np.ones(len(cohort))
    if negatives and positives:
        weight = np.ones(len(cohort.lost_weight))
        certain = (HIT, HIT, HIT, HIT)
        columns = (cohort.group, ones, none, none, cohort.rounds, none, none, weight)
        return CountedRounds(*columns, certain)
    hit = cohort.negative
    miss = cohort.positive
    kind_of = (REJECTED, MISS, HIT, UNRESOLVED)
    if positives:
        hit, miss = miss, hit
        kind_of = (REJECTED, HIT, MISS, UNRESOLVED)
    # p = 0 only where no label counts
    inverse = np.divide(1.0, cohort.acceptance, out=ones, where=cohort.acceptance > 0)
    return CountedRounds(
        cohort.labelled_group,
        inverse,
        regression_of(rate, cohort.regression),
        cohort.rejected,
        hit,
        miss,
        cohort.unresolved,
        cohort.lost_weight if cohort.labelled.any() else np.zeros(len(cohort.lost_weight)),
        kind_of,
    )


def counts_labels(rate: Rate) -> FloatArray:
    """(does y = -1 count, does y = +1 count), as 0 and 1."""
    return rate.in_denominator(np.array([-1, 1], dtype=np.int64)).astype(np.float64)


def regression_of(rate: Rate, regression: FloatArray) -> FloatArray:
    """The forecast of P[in the denominator | x] from the one of P[y = -1 | x]."""
    negatives, positives = counts_labels(rate)
    return np.asarray(negatives * regression + positives * (1.0 - regression))


@dataclass(frozen=True, eq=False)
class Entries:
    """The rounds of one group, those that look alike counted together: w, m, kind and count (E,).

    A hypothesis sees them through people (M, S): with `starts`, entries of the same row stand next
    to each other, and people says whether h accepts the row; without, people says how many rounds
    of each entry h accepts.
    """

    inverse: FloatArray
    regression: FloatArray
    kind: IntArray
    count: FloatArray
    people: FloatArray
    starts: IntArray | None

    @classmethod
    def of_groups(
        cls, cohort: Cohort, rounds: CountedRounds, groups: int
    ) -> Iterator[tuple[int, "Entries"]]:
        """(group, entries), a part at a time; the group -1 is left out.

        Where p = 1, phi is 1 for a hit and 0 for a miss whatever m is: hits look alike, and the
        rest brings nothing.
        """
        accepts = cohort.accepts
        certain = rounds.inverse == 1.0
        outcomes = rounds.outcomes
        brings = (outcomes != 0) & ~(certain & np.array([[True], [False], [True], [False]]))
        m = np.where(certain, 0.0, rounds.regression)
        for j in range(groups):
            row, kind = np.nonzero((brings & (rounds.group == j)).T)
            if not len(row):
                continue
            count = outcomes[kind, row]
            w = rounds.inverse[row]
            # entries that look alike stand next to each other in `order`
            order = np.lexsort((kind, w, m[row]))
            look = np.stack([kind[order], w[order], m[row][order]])
            first = np.ones(len(order), dtype=bool)
            first[1:] = (look[:, 1:] != look[:, :-1]).any(axis=0)
            starts = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
            few_alike = np.count_nonzero(first) >= len(starts) - 1
            if cohort.taken is None and few_alike:  # row by row
                for at in range(0, len(starts) - 1, MOST_ENTRIES):
                    own = starts[at : at + MOST_ENTRIES + 1]
                    part = slice(own[0], own[-1])
                    people = accepts[:, row[own[:-1]]]
                    look_of_part = (w[part], m[row[part]], kind[part], count[part])
                    yield j, cls(*look_of_part, people.astype(np.float64), own[:-1] - own[0])
                continue
            alike = look[:, first]
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.cumsum(first) - 1
            shape = (alike.shape[1], len(rounds.group))
            if cohort.taken is None:
                from scipy import sparse  # heavy, and needed for many rows alone

                counted = sparse.csr_array((count, (place, row)), shape=shape)
                taken = np.ascontiguousarray((counted @ accepts.T.astype(np.float64)).T)
            else:
                groups_of_alike = np.flatnonzero(first)
                taken = cohort.taken.of(row[order], kind[order], rounds.kind_of, groups_of_alike)
            total = np.bincount(place, weights=count, minlength=shape[0]).astype(np.float64)
            for at in range(0, shape[0], MOST_ENTRIES):
                part = slice(at, at + MOST_ENTRIES)
                kinds, inverse, regression = alike[:, part]
                own_kind = kinds.astype(np.int64)
                yield j, cls(inverse, regression, own_kind, total[part], taken[:, part], None)

    def changes(self, stakes: FloatArray, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """What `people` is multiplied with, (stakes, S, 2 nodes), and what is added to that,
        (stakes, 2 nodes), for ln W at the nodes.
        """
        all_rows = np.arange(len(self.kind))
        if self.starts is not None and len(self.people) == 1:  # one hypothesis: no entry is both
            taken = np.repeat(self.people[0] > 0, np.diff(self.starts, append=len(self.kind)))
            parts = (all_rows[taken == h] for h in (False, True))
            added = sum(
                self.count[part] @ self.log_factors(stakes, nodes, h == 1, part)
                for h, part in enumerate(parts)
            )
            return np.zeros((len(stakes), 0, 2 * len(nodes))), np.asarray(added)
        rejects, accepts = (self.log_factors(stakes, nodes, h, all_rows) for h in (False, True))
        change = np.subtract(accepts, rejects, out=accepts)
        if self.starts is not None:
            change *= self.count[:, np.newaxis]
            change = np.add.reduceat(change, self.starts, axis=1)
        return change, np.asarray(self.count @ rejects)

    def log_factors(
        self, stakes: FloatArray, nodes: IntArray, accepts: bool, entries: IntArray
    ) -> FloatArray:
        """(stakes, entries, 2 nodes): ln(1 - g phi (h - f)), then ln(1 + g phi (h - f)), for h = 1
        if `accepts`, else 0.
        """
        classes, of_node = np.unique(CLASS_OF_NODE[nodes], return_inverse=True)
        columns = (self.inverse, self.regression, self.kind)
        w, m, kind = (column[entries, np.newaxis] for column in columns)
        a = CLASSES[classes]
        b = CLASSES[classes + 1]
        g = np.minimum(stakes[:, np.newaxis, np.newaxis], THETA / np.maximum(1.0 - a, b))
        reach = THETA / (g * ((1.0 - a) if accepts else b))
        more = w - 1.0
        odds = np.divide(1.0, more, out=np.full(w.shape, 1e200), where=more > 0.0)
        hit = kind == HIT
        rejected = kind == REJECTED
        over = np.maximum(m, np.minimum(1.0, 1.0 - (reach - 1.0) * odds))
        high = np.where(kind == MISS, -over * more, np.minimum(w - m * more, reach))
        high = np.where(rejected, over, high)
        under = np.minimum(m, np.minimum(reach * odds, 1.0))
        low = np.where(hit, w - under * more, -np.minimum(m * more, reach))
        low = np.where(rejected, under, low)
        up, down = (high, low) if accepts else (low, high)
        factors = np.concatenate([(-g * up)[..., of_node], (g * down)[..., of_node]], axis=2)
        factors *= np.tile(float(accepts) - NODES[nodes], 2)
        factors += 1.0
        return np.asarray(np.log(factors, out=factors))


def add_cohort(
    wealth: FloatArray,
    rate: Rate,
    cohort: Cohort,
    bets: FloatArray,
    inverse_share: FloatArray,
    alive: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add what a cohort brings for one rate to wealth (M, G, K, 2, nodes), with bets (M, K) and
    inverse_share c (G,), in the classes alive (M, G, classes).

    Returns the sums of h phi (M, G) and of phi (G,), and what people of whom nothing is known any
    more may have cost each process (M, K): -ln(1 - min(THETA, g w)) each, at most; g is the largest
    over the groups, as the group is lost, too.
    """
    rounds = counted_rounds(rate, cohort)
    groups = len(inverse_share)
    phi = rounds.phi
    mass = np.bincount(rounds.group + 1, weights=phi, minlength=groups + 1)[1:]
    inside = rounds.group[:, np.newaxis] == np.arange(groups)
    if cohort.taken is None:
        hits = cohort.accepts.astype(np.float64) @ np.where(inside, phi[:, np.newaxis], 0.0)
    else:
        each = rounds.phi_of_outcomes
        own = [cohort.taken.weighted(np.where(here[:, np.newaxis], each, 0.0)) for here in inside.T]
        hits = np.stack(own, axis=1)
    stakes = (bets * inverse_share.max())[:, :, np.newaxis]
    lost = -np.log1p(-np.minimum(THETA, stakes * rounds.lost_weight)) @ cohort.lost_count
    for j, entries in Entries.of_groups(cohort, rounds, groups):
        add_wealth(wealth[:, j], entries, bets, float(inverse_share[j]), alive[:, j])
    return np.asarray(hits), np.asarray(mass), np.asarray(lost)


def add_wealth(
    wealth: FloatArray, entries: Entries, bets: FloatArray, inverse_share: float, alive: BoolArray
) -> None:
    """Add what the entries of one group bring to wealth (M, K, 2, nodes), with bets (M, K), in the
    classes alive (M, classes).
    """
    nodes = np.flatnonzero(np.asarray(alive.any(axis=0))[CLASS_OF_NODE])
    different = np.unique(bets[bets > 0])
    if not (len(entries.kind) and len(nodes) and len(different)):
        return
    together = max(1, AT_ONCE // (len(entries.kind) * len(nodes)))
    for first in range(0, len(different), together):
        some = different[first : first + together]
        changes = entries.changes(some * inverse_share, nodes)
        for bet, change, added in zip(some, *changes, strict=True):
            members, k = np.nonzero(bets == bet)
            brought = entries.people[members, : len(change)] @ change + added
            brought = brought.reshape(-1, 2, len(nodes))
            if len(nodes) == wealth.shape[-1]:  # whole rows are added faster
                wealth[members, k] += brought
            else:
                which = members[:, np.newaxis, np.newaxis], k[:, np.newaxis, np.newaxis]
                wealth[*which, SIDES, nodes] += brought


# what the chords exclude: loops over cells and pairs of cells, each beside its NumPy form

MEMBERS_AT_ONCE = 200
"""Members whose pairs of cells are compared at a time in NumPy."""
Grid = tuple[FloatArray, IntArray]
"""The edges of the cells, and the node at the left end of each."""
Cells = tuple[FloatArray, FloatArray]
"""lower, upper (B, cells): what is left of each cell; lower > upper where nothing is."""
Pair = tuple[Cells, Cells]
"""The cells of group j and those of group i."""
Given = tuple[FloatArray, FloatArray, Pair, FloatArray, Grid]
"""What `largest_gaps` is given."""


def _narrow_cells(
    wealth: FloatArray, threshold: FloatArray, grid: Grid, lower: FloatArray, upper: FloatArray
) -> None:
    edges, left_node = grid
    width = np.diff(edges)
    for k in range(threshold.shape[1]):
        for side in range(2):
            left = wealth[:, k, side, left_node] - threshold[:, k, np.newaxis]
            right = wealth[:, k, side, left_node + 1] - threshold[:, k, np.newaxis]
            kept = lower <= upper
            gone = kept & (left > 0.0) & (right > 0.0)
            b, c = np.nonzero(kept & ~gone & ((left > 0.0) | (right > 0.0)))
            one = left[b, c]
            two = right[b, c]
            cut = edges[c] + width[c] * one / (one - two)
            falls = two > 0.0
            upper[b[falls], c[falls]] = np.minimum(upper[b[falls], c[falls]], cut[falls])
            lower[b[~falls], c[~falls]] = np.maximum(lower[b[~falls], c[~falls]], cut[~falls])
            lower[gone] = 1.0
            upper[gone] = 0.0


@compiled(_narrow_cells)
def narrow_cells(
    wealth: FloatArray, threshold: FloatArray, grid: Grid, lower: FloatArray, upper: FloatArray
) -> None:
    """lower, upper (B, cells) lose the points whose chord of wealth (B, K, 2, nodes) exceeds
    threshold (B, K).
    """
    edges, left_node = grid
    for b in range(len(lower)):
        for c in range(len(left_node)):
            for k in range(threshold.shape[1]):
                for side in range(2):
                    if lower[b, c] > upper[b, c]:
                        break
                    left = wealth[b, k, side, left_node[c]] - threshold[b, k]
                    right = wealth[b, k, side, left_node[c] + 1] - threshold[b, k]
                    if left > 0.0 and right > 0.0:
                        lower[b, c] = 1.0
                        upper[b, c] = 0.0
                    elif right > 0.0:
                        upper[b, c] = min(
                            upper[b, c],
                            edges[c] + (edges[c + 1] - edges[c]) * left / (left - right),
                        )
                    elif left > 0.0:
                        lower[b, c] = max(
                            lower[b, c],
                            edges[c] + (edges[c + 1] - edges[c]) * left / (left - right),
                        )


def _largest_gaps(
    wealth_j: FloatArray, wealth_i: FloatArray, cells: Pair, threshold: FloatArray, grid: Grid
) -> FloatArray:
    """The largest corner first: of the other pairs of cells only those that could exceed what it
    leaves are looked at.
    """
    (lower_j, upper_j), (lower_i, upper_i) = cells
    given = (wealth_j, wealth_i, cells, threshold, grid)
    x = np.where(lower_j <= upper_j, upper_j, -np.inf)
    y = np.where(lower_i <= upper_i, lower_i, np.inf)
    gaps = np.full(len(threshold), -np.inf)
    some = np.flatnonzero((x > -np.inf).any(axis=1) & (y < np.inf).any(axis=1))
    gaps[some] = _left_of_pairs(some, x[some].argmax(axis=1), y[some].argmin(axis=1), given)
    for start in range(0, len(some), MEMBERS_AT_ONCE):
        members = some[start : start + MEMBERS_AT_ONCE]
        corner = x[members][:, :, np.newaxis] - y[members][:, np.newaxis]
        b, c, d = np.nonzero(corner > gaps[members][:, np.newaxis, np.newaxis])
        np.maximum.at(gaps, members[b], _left_of_pairs(members[b], c, d, given))
    return gaps


def _left_of_pairs(b: IntArray, c: IntArray, d: IntArray, given: Given) -> FloatArray:
    """The largest x - y of member b, x in cell c and y in cell d, below all lines; `given` are the
    arguments of `largest_gaps`.
    """
    wealth_j, wealth_i, cells, threshold, (edges, left_node) = given
    (lower_j, upper_j), (lower_i, upper_i) = cells
    x = upper_j[b, c]
    y = lower_i[b, d]
    value = x - y
    rooms = (x - lower_j[b, c], upper_i[b, d] - y)
    at_j = left_node[c]
    at_i = left_node[d]
    for k in range(threshold.shape[1]):
        base_j = wealth_j[b, k, 0, at_j]
        base_i = wealth_i[b, k, 1, at_i]
        slope_j = (wealth_j[b, k, 0, at_j + 1] - base_j) / (edges[c + 1] - edges[c])
        slope_i = (wealth_i[b, k, 1, at_i + 1] - base_i) / (edges[d + 1] - edges[d])
        excess = base_j + slope_j * (x - edges[c]) + base_i
        excess += slope_i * (y - edges[d]) - threshold[b, k]
        above = excess > 0.0
        gone = np.zeros(len(b))
        steeper = slope_j >= -slope_i
        for turn in (steeper, ~steeper):
            gain = np.where(turn, slope_j, -slope_i)
            room = np.where(turn, *rooms)
            works = (gain > 0.0) & (excess > 0.0)
            step = np.minimum(room, excess / np.where(works, gain, 1.0))
            gone = np.where(works, gone + step, gone)
            rest = np.where(step < room, 0.0, excess - step * gain)
            excess = np.where(works, rest, excess)
        least = np.where(excess > 0.0, -np.inf, np.minimum(value, x - y - gone))
        value = np.where(above, least, value)
    return np.asarray(value)


@compiled(_largest_gaps, pays=10_000_000)
def largest_gaps(
    wealth_j: FloatArray, wealth_i: FloatArray, cells: Pair, threshold: FloatArray, grid: Grid
) -> FloatArray:
    """max x - y over pairs of cells, x and y in what is left of them, chord(x) + chord(y) <=
    threshold for every bet.

    From the best corner (largest x, smallest y) the excess over the threshold is worked off by
    lowering x or raising y, whichever takes more of it per unit first: a linear program with one
    constraint.
    """
    (lower_j, upper_j), (lower_i, upper_i) = cells
    edges, left_node = grid
    size = len(left_node)
    bets = threshold.shape[1]
    gaps = np.empty(len(threshold))
    for b in range(len(threshold)):
        best = -np.inf
        least = np.inf
        for d in range(size):
            if lower_i[b, d] <= upper_i[b, d] and lower_i[b, d] < least:
                least = lower_i[b, d]
        for c in range(size - 1, -1, -1):
            x = upper_j[b, c]
            if lower_j[b, c] > x:
                continue
            if x - least <= best:
                break
            width_j = edges[c + 1] - edges[c]
            at_j = left_node[c]
            for d in range(size):
                y = lower_i[b, d]
                if y > upper_i[b, d]:
                    continue
                if x - y <= best:
                    break
                width_i = edges[d + 1] - edges[d]
                at_i = left_node[d]
                value = x - y
                for k in range(bets):
                    slope_j = (wealth_j[b, k, 0, at_j + 1] - wealth_j[b, k, 0, at_j]) / width_j
                    slope_i = (wealth_i[b, k, 1, at_i + 1] - wealth_i[b, k, 1, at_i]) / width_i
                    excess = (
                        wealth_j[b, k, 0, at_j] + slope_j * (x - edges[c]) + wealth_i[b, k, 1, at_i]
                    )
                    excess += slope_i * (y - edges[d]) - threshold[b, k]
                    if excess <= 0.0:
                        continue
                    given = 0.0
                    for turn in range(2):
                        if (turn == 0) == (slope_j >= -slope_i):
                            gain = slope_j
                            room = x - lower_j[b, c]
                        else:
                            gain = -slope_i
                            room = upper_i[b, d] - y
                        if gain > 0.0 and excess > 0.0:
                            step = min(room, excess / gain)
                            given += step
                            excess -= step * gain
                            if step < room:
                                excess = 0.0
                    value = -np.inf if excess > 0.0 else min(value, x - y - given)
                    if value <= best:
                        break
                best = max(best, value)
        gaps[b] = best
    return gaps
