"""Off-policy evaluation: loss and rate gaps of a policy that was not the one that made the log,
valid after every block of it.

The log is read once, in its order, in blocks that grow by GROWTH. Before a block is looked at,
everything that bets on it is fixed from earlier blocks: the regression m and the bets. After it,
intervals are narrowed and never widened, so each of them holds for the whole log at once (a
confidence sequence), and stopping to log when the interval pleases does no harm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from evenhand.bounds import BettingBound
from evenhand.contracts import Policy
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import OutcomeRegression, fit_outcomes
from evenhand.evaluation.candidate import Candidate
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.figures import Estimate, EstimateCourse, Evaluation, Gap, GroupRate
from evenhand.evaluation.gap_process import LoggedGaps, cohort_of
from evenhand.evaluation.loss_betting import LossBound, LossRows, LossState
from evenhand.evaluation.support import denominator_warnings, effective, require_honest, support_of
from evenhand.fairness import FalsePositiveRate
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.common import one_blas_thread
from evenhand.words import FloatArray, IntArray, Prices

FIRST_BLOCK = 100
GROWTH = 1.25
LOSS_PART = 0.2
"""Of delta goes to the loss; the rest to the gaps."""
MOST_LEARNT_FROM = 20_000
"""The regression is fitted on at most so many rows before the block."""
RELEARN = 1.5
"""It is fitted again when the log has grown by this factor."""
MOST_GROUPS = 30
FPR = FalsePositiveRate()


def evaluate(
    log: DecisionLog,
    policy: Candidate | Policy,
    *,
    rates: Sequence[Rate] = (FPR,),
    limit: float = 0.05,
    failure_probability: float = 0.05,
    prices: Prices | None = None,
    groups: Sequence[str] | None = None,
) -> Evaluation:
    """Loss, rates and gaps of `policy` on the population that the log is from.

    `groups`: the groups to compare, others are outside; by default all that occur. With one group
    or none, only the loss is evaluated. The policy must not have been chosen with the help of these
    rows (`log.without_first` leaves out those that were used).
    """
    candidate = policy if isinstance(policy, Candidate) else Candidate(policy)
    _require_limit(limit)
    log.require_support()
    require_honest(log)
    compared = _compared(log, groups)
    judged = tuple(dict.fromkeys(rates)) if len(compared) > 1 else ()
    ledger = _booked(DeltaLedger(failure_probability), judged)
    play = _Play(log, candidate, judged, compared, ledger, prices or Prices())
    return play.told(limit)


def _require_limit(limit: float) -> None:
    if not 0 <= limit <= 1:
        raise InvalidInput(
            f"the limit is {limit}; a gap lies between 0 and 1, and so does its limit."
        )


def _compared(log: DecisionLog, groups: Sequence[str] | None) -> tuple[str, ...]:
    chosen = log.groups if groups is None else tuple(dict.fromkeys(str(group) for group in groups))
    strange = [group for group in chosen if group not in log.groups]
    if strange:
        raise InvalidInput(
            f"group {strange[0]!r} does not occur in {log.source}; its groups are {', '.join(log.groups) or 'not given'}."
        )
    if len(chosen) > MOST_GROUPS:
        raise InvalidInput(
            f"{log.source} has {len(chosen)} groups; at most {MOST_GROUPS} are compared.",
            hint="name those to compare.",
        )
    return chosen


def _booked(ledger: DeltaLedger, rates: tuple[Rate, ...]) -> DeltaLedger:
    delta = ledger.failure_probability
    if not rates:
        return ledger.book("betting on the loss", delta, at=0)
    names = " and ".join(rate.symbol for rate in rates)
    first = ledger.book("betting on the loss", LOSS_PART * delta, at=0)
    return first.book(f"betting cell by cell on the gaps of {names}", first.left, at=0)


def blocks(rows: int) -> Iterator[slice]:
    """0:100, then each block a quarter of what came before, at least 100 rows; the last one takes a
    rest that would be small.
    """
    start = 0
    while start < rows:
        end = start + max(FIRST_BLOCK, int((GROWTH - 1) * start))
        yield slice(start, rows if rows - end < FIRST_BLOCK else end)
        start = rows if rows - end < FIRST_BLOCK else end


@dataclass(frozen=True, eq=False)
class _Play:
    """One evaluation: the log's columns that do not change, and the pass over its blocks."""

    log: DecisionLog
    candidate: Candidate
    rates: tuple[Rate, ...]
    groups: tuple[str, ...]
    ledger: DeltaLedger
    prices: Prices

    def told(self, limit: float) -> Evaluation:
        """The whole evaluation."""
        with one_blas_thread():
            return self._evaluation(limit)

    def _evaluation(self, limit: float) -> Evaluation:
        log, pi = self.log, self.candidate.acceptance(self.log)
        _, scale = self.candidate.spread
        code = _codes(log, self.groups)
        loss, gap, course = self._pass(pi, code)
        rates = self._rates(gap, code)
        support = support_of(log, pi)
        broken = loss.contradiction or (gap is not None and bool(gap.state.contradiction[0]))
        return Evaluation(
            candidate=self.candidate.name,
            limit=limit,
            loss=_estimate(*course.loss[-1].tolist()),
            rates=rates,
            gaps=self._gaps(course),
            contradiction=broken,
            people=log.people,
            accepted=float(log.count @ log.accept),
            open=float(log.count @ log.open),
            outside=float(log.count @ (code < 0)) if self.rates else 0.0,
            support=support,
            ledger=self.ledger,
            assumptions=self._assumptions(code),
            warnings=(*log.notes, *support.warnings(), *self._warnings(code, scale)),
            course=course,
        )

    # the pass

    def _pass(
        self, pi: FloatArray, code: IntArray
    ) -> "tuple[LossState, LoggedGaps | None, EstimateCourse]":
        base, scale = self.candidate.spread
        rule = np.clip((pi - base) / scale, 0.0, 1.0) if scale > 0 else pi
        bound, loss = self._loss_bound, self._loss_bound.start()
        gap = LoggedGaps.start(self._gap_bound) if self.rates else None
        seen = _regressors(self.log, code, len(self.groups))
        first, labelled = self._first_rows(code), _first(self.log.label != 0)
        rows, gaps, losses = [], [], []
        regression, learnt_from = fit_outcomes(None), 0
        for at in blocks(len(self.log)):
            if at.start > RELEARN * learnt_from:
                regression, learnt_from = _fitted(self.log, seen, at.start), at.start
            m = regression.negative_probability(seen[at])
            if not loss.contradiction:
                loss = bound.update(loss, _loss_rows(self.log, at, pi, m))
            if gap is not None:
                gap = gap.step(cohort_of(self.log, at, rule[at], code, m)) if scale > 0 else gap
                gaps.append(self._gap_figures(gap, at.stop, first))
            rows.append(float(at.stop))
            told = _loss(loss, bound.unit)
            losses.append(
                [
                    told.value if told.value is not None and labelled < at.stop else np.nan,
                    told.low,
                    told.high,
                ]
            )
        return (
            loss,
            gap,
            EstimateCourse(
                np.array(rows), np.array(gaps).reshape(len(rows), -1, 3), np.array(losses)
            ),
        )

    @property
    def _loss_bound(self) -> LossBound:
        return LossBound(self.prices, self.ledger.entries[0].share)

    @property
    def _gap_bound(self) -> BettingBound:
        return BettingBound(self.groups, self.rates, 1, self.ledger.entries[1].share)

    # figures

    def _first_rows(self, code: IntArray) -> FloatArray:
        """(R, G): the first row that shows somebody of a rate's denominator; before it nothing is
        estimated, only foretold.
        """
        weight = np.ones(len(self.log))
        found = [
            [_first(self._denominator(r, code == j, weight)[0]) for j in range(len(self.groups))]
            for r in self.rates
        ]
        return np.array(found, dtype=np.float64)

    def _gap_figures(self, gap: LoggedGaps, rows: int, first: FloatArray) -> FloatArray:
        """(gaps, 3): estimate, low, high of every rate and pair after so many rows, as the user
        knows the rates.
        """
        _, scale = self.candidate.spread
        pairs = self._gap_bound.pairs
        if scale == 0:
            return np.zeros((len(self.rates) * len(pairs), 3))
        found = self._gap_bound.intervals(gap.state)
        sign = np.array([[rate.sign] for rate in self.rates])
        later, earlier = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
        estimates = np.where(first < rows, gap.estimates, np.nan)
        values = sign * (estimates[:, later] - estimates[:, earlier])
        return scale * np.stack([values, found.lower[0], found.upper[0]], axis=-1).reshape(-1, 3)

    def _gaps(self, course: EstimateCourse) -> tuple[Gap, ...]:
        if not self.rates:
            return ()
        names = [
            (rate.symbol, self.groups[j], self.groups[i])
            for rate in self.rates
            for j, i in self._gap_bound.pairs
        ]
        return tuple(
            Gap(*name, _estimate(*figures))
            for name, figures in zip(names, course.gaps[-1].tolist(), strict=True)
        )

    def _rates(self, gap: LoggedGaps | None, code: IntArray) -> tuple[GroupRate, ...]:
        if gap is None:
            return ()
        found, estimates = self._gap_bound.intervals(gap.state), gap.estimates
        weight = np.where(self.log.accept, 1.0 / self.log.acceptance, 0.0)
        told = []
        for (r, rate), (j, group) in product(enumerate(self.rates), enumerate(self.groups)):
            used, w = self._denominator(rate, code == j, weight)
            known = float(estimates[r, j]) if used.any() else np.nan
            value = known if rate.sign > 0 else 1.0 - known
            figures = self._spread_out(
                rate, value, found.rate_lower[0, r, j], found.rate_upper[0, r, j]
            )
            people = effective(np.where(used, w, 0.0), self.log.count)
            told.append(
                GroupRate(rate.symbol, group, figures, float(self.log.count @ used), people)
            )
        return tuple(told)

    def _spread_out(self, rate: Rate, value: float, low: float, high: float) -> Estimate:
        """From the rules' rate to the candidate's, which also has constants: offset + scale rate."""
        base, scale = self.candidate.spread
        offset = base if rate.sign > 0 else 1.0 - base - scale
        return _estimate(
            offset if scale == 0 else offset + scale * value,
            offset + scale * low,
            offset + scale * high,
        )

    def _denominator(self, rate: Rate, here: Any, weight: FloatArray) -> tuple[Any, FloatArray]:
        """Who is seen in the denominator of a rate, and with which weight: a rate of everybody
        needs no label.
        """
        if rate.in_denominator(np.array([-1, 1])).all():
            return here, np.ones(len(self.log))
        return here & (self.log.label != 0) & rate.in_denominator(self.log.label), weight

    def _warnings(self, code: IntArray, scale: float) -> list[str]:
        if scale == 0:
            return []
        weight = np.where(self.log.accept, 1.0 / self.log.acceptance, 0.0)
        found = []
        for rate in self.rates:
            for j, group in enumerate(self.groups):
                used, w = self._denominator(rate, code == j, weight)
                found += denominator_warnings(rate.denominator_name, group, w, self.log.count, used)
        return found

    def _assumptions(self, code: IntArray) -> tuple[str, ...]:
        log = self.log
        outside = float(log.count @ (code < 0)) if self.rates else 0.0
        return (
            "the people of the log arrived independently from the population that the candidate will meet",
            "each was accepted by a coin of its own with the recorded probability, which depends on the person and on earlier rows alone",
            "the candidate was chosen without looking at these rows",
            "the label of a person does not depend on the decisions about others; "
            f"{log.count @ log.open:,.0f} accepted people without a label count as the worst case",
            "whether the group is known does not depend on the decision; outside: "
            f"{outside:,.0f} people of no or another group",
        )[: 5 if self.rates else 4]


def _codes(log: DecisionLog, groups: tuple[str, ...]) -> IntArray:
    place = {group: code for code, group in enumerate(groups)}
    return np.array([place.get(value, -1) for value in log.group.tolist()], dtype=np.int64)


def _regressors(log: DecisionLog, code: IntArray, groups: int) -> FloatArray:
    """What the regression sees: the features, and one 0/1 column per group."""
    return np.column_stack([log.features, *((code == j).astype(np.float64) for j in range(groups))])


def _fitted(log: DecisionLog, seen: FloatArray, rows: int) -> OutcomeRegression:
    """m from the rows before `rows` alone; accepted people without a label are left out."""
    past = np.arange(max(0, rows - MOST_LEARNT_FROM), rows)
    past = past[~log.open[past]]
    count, label = log.count[past], log.label[past]
    if not len(past):
        return fit_outcomes(None)
    rejected = np.where(log.accept[past], 0.0, count)
    positive, negative = (np.where(label == value, count, 0.0) for value in (1, -1))
    return fit_outcomes(
        RoundLog(seen[past], None, log.acceptance[past], rejected, positive, negative)
    )


def _loss_rows(log: DecisionLog, at: slice, pi: FloatArray, m: FloatArray) -> LossRows:
    return LossRows(
        pi[at],
        1.0 / log.acceptance[at],
        m,
        log.accept[at],
        log.label[at] == -1,
        log.open[at],
        log.count[at],
    )


def _loss(state: LossState, unit: float) -> Estimate:
    if state.contradiction:
        return Estimate(None, 0.0, unit)
    return _estimate(unit * state.estimate, unit * state.lower, unit * state.upper)


def _estimate(value: float, low: float, high: float) -> Estimate:
    """The estimate, brought inside its interval: the truth is there."""
    return Estimate(
        None if np.isnan(value) else float(np.clip(value, low, high)), float(low), float(high)
    )


def _first(shown: Any) -> float:
    """The first row where something is shown; infinity if there is none."""
    return float(np.argmax(shown)) if shown.any() else np.inf
