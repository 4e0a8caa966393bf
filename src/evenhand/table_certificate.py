"""A certificate for the table you have: fitted and certified on one table, for the population.

No launch and no log is needed: a table of people with outcomes, drawn independently. The order of
events carries the proof.

1. **A draw splits the table**, without looking at anything in it. The first part is for fitting: a
   third, or half where rules are fitted models, which need more people than an exact search. The
   people of the second part are independent draws from the population.
2. **Candidates.** The fair oracle on the first part, at the limit, half of it, and 0: its rules
   are the candidates, and from now on fixed. Which of them are worth a share of delta, and which
   end of an interval needs most of it, is decided by a forecast on the first part.
3. **Intervals on the second part.** Given all pairs (group, outcome), the acceptances of a fixed
   rule are binomial in each group, so its gap has an exact interval
   (`evenhand.bounds.proportions`). A union over candidates, rates, pairs and ends: all intervals
   hold at once with probability 1 - delta. Ceilings on rates of all people take part in it with
   Clopper and Pearson's upper end.
4. **Choice.** Since all intervals hold at once, any later choice is free: the cheapest mixture w of
   candidates and constants with

       sum_h w_h high_h <= limit,   sum_h w_h low_h >= -limit   for every rate and pair,

   a linear program. Costs are not part of the guarantee, so for an exact class they are estimated
   on the whole table; a fitted model looks too good on the people it was fitted to. Accept-all and
   reject-all have no gap and need no interval, so there is always an answer. Without coins at
   decision time (`randomise=False`) it is the cheapest single rule that passes.

A policy that was chosen elsewhere needs no first part: its rules are the candidates, and the whole
table is for certifying.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from evenhand.bounds.proportions import difference_interval, proportion_interval
from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass, Rate
from evenhand.errors import CannotEstimateRate, InvalidInput, NotConverged, NotSerialisable
from evenhand.faircsc import bind_fair
from evenhand.fairness.acceptance import Acceptance, acceptance_table
from evenhand.fairness.certificate import (
    GIVEN_POLICY_ASSUMPTIONS,
    SPLIT_TABLE_ASSUMPTIONS,
    CellCount,
    Certificate,
    GapInterval,
    RateCeiling,
    plain_label,
)
from evenhand.fairness.certified import (
    WHO,
    answer_with_use,
    ceilings_table,
    counts_table,
    drawn,
    gaps_table,
)
from evenhand.fairness.rates import RATES, RateLike, as_rates, require_certifiable
from evenhand.findings import Finding, size_of, stands
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.named import as_class
from evenhand.media import Told
from evenhand.policies import Mixture
from evenhand.result import Amount, Cell, Intervals, Result, Table, Verdict, column, with_rows
from evenhand.shares import require_delta, require_promise, require_share
from evenhand.shown import Brief
from evenhand.table_parts import (
    FIT_SHARE,
    FIT_SHARE_OF_MODELS,
    AcceptanceCosts,
    TablePart,
    counted_rows,
    decision_counts,
    gap_names,
    gaps_of,
    split_table,
)
from evenhand.words import (
    BoolArray,
    FloatArray,
    Group,
    LabelledSample,
    Prices,
)

LIMITS = (1.0, 0.5, 0.0)
"""Candidates are solutions at these multiples of the limit."""

LEAST_WEIGHT = 0.02
"""A rule with less weight in a solution is no candidate: it would cost more delta than it saves."""

LEANING = 0.95
"""The share of an interval's delta that its more important end gets."""

CONSTANTS = (ACCEPT_ALL, REJECT_ALL)


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedRule(Brief):
    """A rule that was certified, and what became of it.

    Parameters
    ----------
    rule : Hypothesis
        The rule.
    weight : float
        Its weight in the policy.
    cost : float
        Its cost per person, on the people who certified it.
    low, high : array, shape (gaps,)
        The interval of each of its gaps.
    tops : array, shape (ceilings,)
        The upper end of each of its rates that has a ceiling.
    """

    rule: Hypothesis
    weight: float
    cost: float
    low: FloatArray
    high: FloatArray
    tops: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class TableCertification(Told, Brief):
    """A policy that is certified on a table, with its certificate.

    Parameters
    ----------
    policy : Mixture
        The cheapest mixture of the certified rules and constants that is within the limit.
    certificate : Certificate
        What is claimed, with which evidence, under which assumptions.
    cost : float
        The cost per person of the policy, on the people who certified it; the error rate where both
        prices are 1.
    constant_cost : float
        The same of the better constant.
    rules : tuple of CertifiedRule
        The rules that took part, the constants last.
    names : tuple of str
        The names of the gaps.
    fitted_on, certified_on : int
        How many people were for fitting, and for certifying.
    model : tuple of GapInterval or None
        The gaps of the policy that was brought along, as it is; None if rules were fitted.
    oracle_calls : int
        How many models were fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((3000, 1))
    >>> label = np.where(rng.random(3000) < x[:, 0], 1, -1)
    >>> people = LabelledSample(x, rng.choice(["a", "b"], 3000), label)
    >>> from evenhand.hypotheses import Stumps
    >>> done = certify(Stumps(), people, limit=0.1)
    >>> done.learned_weight > 0.5, done.cost < done.constant_cost, done.certificate.status
    (True, True, 'certified')
    """

    policy: Mixture
    certificate: Certificate
    cost: float
    constant_cost: float
    rules: tuple[CertifiedRule, ...]
    names: tuple[str, ...]
    fitted_on: int
    certified_on: int
    model: tuple[GapInterval, ...] | None = None
    oracle_calls: int = 0

    ALSO: ClassVar = ("delta", "learned_weight")

    @property
    def delta(self) -> float:
        """The probability with which the claim may be wrong."""
        return self.certificate.delta

    @property
    def learned_weight(self) -> float:
        """The weight of rules that are no constants."""
        return 1.0 - self.policy.weight_of(*CONSTANTS)

    @property
    def acceptance(self) -> Acceptance | None:
        """Whom the policy accepts of the people who certified it, and what it saves there."""
        return self.certificate.acceptance

    @property
    def gaps(self) -> tuple[GapInterval, ...]:
        """The gaps that a gate judges: those of the model as it is, or of the certified policy."""
        return self.certificate.gaps if self.model is None else self.model

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every gap beside its limit: what `evenhand.evaluation.gates` judges.

        Parameters
        ----------
        limit : float, optional
            The largest gap that is allowed; that of the certificate by default.
        least_ratio : float, optional
            Ratios are not certified.

        Returns
        -------
        tuple of Finding
            The gaps of the model as it is, or of the certified policy.

        Raises
        ------
        InvalidInput
            If a ratio is asked for.
        """
        if least_ratio is not None:
            raise InvalidInput(
                "a certificate has no ratios.", hint="limit the gap.", argument="least_ratio"
            )
        allowed = self.certificate.limit if limit is None else limit
        return tuple(gap.finding(allowed) for gap in self.gaps)

    def result(self, names: Sequence[str] | None = None) -> Result:
        """What is said of the certification.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns that rules look at.

        Returns
        -------
        Result
            The verdict on what was judged, the claim, whom the policy accepts; the tables "gaps",
            "acceptance", "rules" and others.
        """
        certificate = self.certificate
        limit = certificate.limit
        as_it_is = self.model is None or self.model == certificate.gaps
        findings = tuple(gap.finding(limit) for gap in certificate.gaps)
        bars = drawn(certificate.gaps, limit)
        tables = [gaps_table("gaps", "Gaps of the certified policy", certificate.gaps, limit)]
        if not as_it_is:
            handed = self.model or ()
            tables.append(gaps_table("handed_in", "The policy as it was handed in", handed, limit))
            more = drawn(handed, limit, "handed in, ")
            bars = (bars[0], (*bars[1], *more[1]), *bars[2:])
        if self.acceptance is not None:
            tables.append(acceptance_table(self.acceptance, WHO))
        tables += [
            ceilings_table(certificate),
            _rules_table(self, names),
            counts_table(certificate),
        ]
        return Result(
            kind="table-certificate",
            title=f"A policy certified on {self.certified_on:,} people",
            record=self,
            answer=_answer(self, as_it_is),
            verdict=Verdict(
                self.findings(), self.delta, "" if as_it_is else "The policy as it was handed in"
            ),
            claimed=findings,
            facts=_facts(self),
            tables=with_rows(*tables),
            figures=(Intervals("Gaps and their limit", *bars),),
            policy=tuple(self.policy.describe(names).splitlines()),
            assumptions=tuple(certificate.assumptions),
        )


def _answer(record: TableCertification, as_it_is: bool) -> tuple[str, ...]:
    answer = [record.certificate.claim]
    if not as_it_is:
        answer.insert(
            0,
            "The policy as it was handed in is not certified. The policy below is: the cheapest "
            "mixture of its rules with accepting and rejecting all applicants.",
        )
    return tuple(answer_with_use(record.certificate, answer))


def _facts(record: TableCertification) -> dict[str, Cell]:
    accepted = record.acceptance
    here = accepted is not None and accepted.people() > 0
    return {
        "accepts, of these people": Amount(accepted.share(), "percent")
        if accepted is not None and here
        else None,
        "cost per person": Amount(record.cost, "cost"),
        "cost of the better constant": Amount(record.constant_cost, "cost"),
        "weight of learned rules": Amount(record.learned_weight, "percent"),
        "fitted on": record.fitted_on or None,
        "certified on": record.certified_on,
    }


def _rules_table(record: TableCertification, names: Sequence[str] | None) -> Table:
    return Table.of(
        "rules",
        "Rules that took part",
        record.rules,
        column("rule", take=lambda one: one.rule.describe(names)),
        column("weight", "weight", "weight"),
        column("cost", "cost per person", "cost"),
        note="The policy draws one of the rules with a weight above 0 for each person.",
    )


def certify(
    model: object,
    people: LabelledSample,
    limit: float = 0.05,
    *,
    rates: RateLike = "fpr",
    prices: Prices | None = None,
    delta: float = 0.05,
    ceilings: Mapping[str, float] | None = None,
    randomise: bool = True,
    group_use: GroupUse = "certify_only",
    fit_share: float | None = None,
    max_calls: int | None = None,
    seed: int = 0,
) -> TableCertification:
    """Fit and certify on one table; or certify a policy that was chosen elsewhere.

    Parameters
    ----------
    model : hypothesis class, its name, scikit-learn classifier, or Mixture
        What to fit ("stumps"); or a policy that was chosen without these people.
    people : LabelledSample
        The table: people drawn independently from the population that the certificate is about. A
        row with a count stands for that number of people.
    limit : float, default 0.05
        How far a rate may differ between two groups. Fix it beforehand, as `seed` is fixed.
    rates : str, Rate or sequence of them, default "fpr"
        The rates whose gaps are limited.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    delta : float, default 0.05
        Probability that the certificate is wrong.
    ceilings : dict, optional
        Ceilings on rates of all people: {"fpr": 0.1, "selection": 0.2} accepts at most a tenth of
        the bad outcomes and a fifth of all people.
    randomise : bool, default True
        Whether the policy may be a mixture. If not, it is the cheapest single rule that passes.
    group_use : {"certify_only", "decide"}
        Whether the group is only measured, or may influence decisions.
    fit_share : float, optional
        The share of the table used for fitting; fix it before you look at the table. By default
        1/3 for an exact class, and 1/2 for fitted models.
    max_calls : int, optional
        A bound on the oracle calls of each fit.
    seed : int, default 0
        Seed of the split of the table. Fix it beforehand: delta does not cover the best of several
        calls with other seeds, limits, rates or classes. Of k calls give each delta / k; then all
        of them hold at once with probability 1 - delta, and you may choose.

    Returns
    -------
    TableCertification
        The policy and its certificate: always an answer, because constants have no gap.

    Raises
    ------
    InvalidInput
        If a setting is impossible, or a count is not a whole number: survey weights are not people.
    CannotEstimateRate
        If there is one group only.

    Examples
    --------
    >>> from evenhand.hypotheses import Stumps
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random((2000, 1))
    >>> repaid = np.where(rng.random(2000) < score[:, 0], 1, -1)
    >>> loans = LabelledSample(score, rng.choice(["f", "m"], 2000), repaid)
    >>> done = certify(Stumps(), loans, limit=0.2, randomise=False)
    >>> len(done.policy.weights), done.cost < done.constant_cost
    (1, True)
    """
    require_promise(limit)
    require_delta(delta)
    if fit_share is not None:
        require_share("fit_share", fit_share, "(0, 1)")
    asked = as_rates(rates)
    require_certifiable(asked)
    kept = _ceilings(ceilings)
    row = counted_rows(people, "a certificate counts people, not survey weights")
    groups = people.groups
    costs = AcceptanceCosts.of(prices or Prices(), people)
    ends = _Ends(asked, groups, kept, delta)
    names = ends.names

    if isinstance(model, Mixture):
        group_use = model.group_use
        first = np.zeros(len(row), dtype=bool)
        second = judges = TablePart(people, row, costs, group_use)
        rules = [rule for rule, w in zip(model.hypotheses, model.weights, strict=True) if w > 0]
        candidates = [rule for rule in rules if rule not in CONSTANTS]
        leaning = np.full(len(names), 0.5)
        calls = 0
        assumptions = GIVEN_POLICY_ASSUMPTIONS
    else:
        hypotheses = as_class(model)
        if fit_share is None:
            fit_share = FIT_SHARE if hypotheses.exact else FIT_SHARE_OF_MODELS
        first = split_table(len(row), fit_share, seed)
        second = TablePart(people, row[~first], costs, group_use)
        # With the second part alone, chance often prefers a constant to a slightly cheaper rule.
        judges = TablePart(people, row, costs, group_use) if hypotheses.exact else second
        candidates, leaning, calls = _candidates(
            hypotheses,
            TablePart(people, row[first], costs, group_use),
            second,
            ends,
            limit,
            randomise,
            group_use,
            max_calls,
        )
        assumptions = SPLIT_TABLE_ASSUMPTIONS

    # From here on the candidates and the shares of delta are fixed: the second part is looked at.
    certified = [ends.certified(rule, second, len(candidates), leaning) for rule in candidates]
    certified += [ends.constant(rule, second) for rule in CONSTANTS]
    priced = certified  # on the second part
    if judges is not second:
        priced = [replace(one, cost=judges.cost(judges.accepts(one.rule))) for one in certified]
    weights = _cheapest(priced, limit, [one for _, one in kept], randomise)
    if isinstance(model, Mixture):
        as_it_is = _weights_of(model, certified)
        if _within(certified, as_it_is, limit, [one for _, one in kept]):
            weights = as_it_is
    rows = [replace(one, weight=float(w)) for one, w in zip(certified, weights, strict=True)]
    chosen = [one for one in rows if one.weight > 0]
    policy = Mixture(
        tuple(one.rule for one in chosen),
        tuple(one.weight for one in chosen),
        group_use,
        people.schema,
    )
    return TableCertification(
        policy=policy,
        certificate=_certificate(policy, rows, second, ends, limit, delta, assumptions),
        cost=sum(one.weight * one.cost for one in rows),
        constant_cost=min(one.cost for one in rows[-2:]),
        rules=tuple(rows),
        names=names,
        fitted_on=int(first.sum()),
        certified_on=int((~first).sum()),
        model=ends.intervals(certified, _weights_of(model, certified))
        if isinstance(model, Mixture)
        else None,
        oracle_calls=calls,
    )


def _ceilings(given: Mapping[str, float] | None) -> list[tuple[Rate, float]]:
    """The rates with a ceiling."""
    kept = [
        (RATES[name], require_share(f"ceilings of {name}", value, "[0, 1]"))
        for name, value in (given or {}).items()
    ]
    for rate, _ in kept:
        if rate.sign < 0:
            raise InvalidInput(
                f"the {rate.name} has a ceiling, which reject-all cannot keep: there would not "
                "always be an answer.",
                hint="ceilings are for rates of accepted people: fpr, selection.",
                argument="ceilings",
            )
    return kept


class _Ends:
    """The gaps and ceilings that share delta, and the ends of their intervals."""

    def __init__(
        self,
        rates: Sequence[Rate],
        groups: Sequence[Group],
        ceilings: Sequence[tuple[Rate, float]],
        delta: float,
    ) -> None:
        self.rates = rates
        self.groups = groups
        self.ceilings = ceilings
        self.delta = delta
        self.gaps = gaps_of(rates, groups)

    @property
    def names(self) -> tuple[str, ...]:
        return gap_names(self.gaps)

    def share(self, candidates: int) -> float:
        """What each gap (both ends together) and each ceiling of each candidate may spend."""
        return self.delta / (max(candidates, 1) * (len(self.gaps) + len(self.ceilings)))

    def counts(self, accepted: BoolArray, part: TablePart) -> list[tuple[int, int, int, int]]:
        """x_1 of n_1 and x_2 of n_2 for each gap."""
        return decision_counts(self.gaps, accepted, part)

    def certified(
        self, rule: Hypothesis, part: TablePart, candidates: int, leaning: FloatArray
    ) -> CertifiedRule:
        """A rule with the exact intervals of its gaps."""
        accepted = part.accepts(rule)
        share = self.share(candidates)
        low, high = [], []
        for counts, up in zip(self.counts(accepted, part), leaning, strict=True):
            ends = difference_interval(*counts, share * (1 - up), share * up)
            low.append(ends.lower)
            high.append(ends.upper)
        tops = []
        for rate, _ in self.ceilings:
            counted = np.asarray(rate.in_denominator(part.label))
            events = int((accepted & counted).sum())
            tops.append(proportion_interval(events, int(counted.sum()), share).upper)
        cost = part.cost(accepted)
        return CertifiedRule(rule, 0.0, cost, np.array(low), np.array(high), np.array(tops))

    def predicted(
        self,
        rule: Hypothesis,
        first: TablePart,
        accepted: BoolArray,
        first_counts: Sequence[tuple[int, int, int, int]],
        second_counts: Sequence[tuple[int, int, int, int]],
        candidates: int,
        leaning: FloatArray,
    ) -> CertifiedRule:
        """What the second part will say, as far as the first one knows; normal approximation."""
        from scipy.special import ndtri

        share = self.share(candidates)
        low, high = [], []
        for (x1, n1, x2, n2), (_, m1, _, m2), up in zip(
            first_counts, second_counts, leaning, strict=True
        ):
            p1 = (x1 + 1) / (n1 + 2)
            p2 = (x2 + 1) / (n2 + 2)
            error = np.sqrt(p1 * (1 - p1) / max(m1, 1) + p2 * (1 - p2) / max(m2, 1))
            gap = x1 / max(n1, 1) - x2 / max(n2, 1)
            low.append(max(-1.0, gap + ndtri(share * (1 - up)) * error))
            high.append(min(1.0, gap - ndtri(share * up) * error))
        tops = []
        for rate, _ in self.ceilings:
            counted = np.asarray(rate.in_denominator(first.label))
            n = max(int(counted.sum()), 1)
            p = (int((accepted & counted).sum()) + 1) / (n + 2)
            tops.append(min(1.0, p - ndtri(share) * np.sqrt(p * (1 - p) / n)))
        cost = first.cost(accepted)
        return CertifiedRule(rule, 0.0, cost, np.array(low), np.array(high), np.array(tops))

    def constant(self, rule: Hypothesis, part: TablePart) -> CertifiedRule:
        """A constant: no gap, and rates that are known."""
        accepted = np.full(len(part.rows), rule == ACCEPT_ALL)
        none = np.zeros(len(self.gaps))
        tops = np.full(len(self.ceilings), float(rule == ACCEPT_ALL))
        return CertifiedRule(rule, 0.0, part.cost(accepted), none, none, tops)

    def intervals(
        self, rules: Sequence[CertifiedRule], weights: FloatArray
    ) -> tuple[GapInterval, ...]:
        """The gaps of a mixture: the intervals of its rules, weighted."""
        low = sum(w * one.low for w, one in zip(weights, rules, strict=True))
        high = sum(w * one.high for w, one in zip(weights, rules, strict=True))
        return tuple(
            GapInterval(rate.symbol, plain_label(b), plain_label(a), float(lo), float(hi))
            for (rate, b, a), lo, hi in zip(
                self.gaps, np.atleast_1d(low), np.atleast_1d(high), strict=True
            )
        )


def _candidates(
    hypotheses: HypothesisClass,
    first: TablePart,
    second: TablePart,
    ends: _Ends,
    limit: float,
    randomise: bool,
    group_use: GroupUse,
    max_calls: int | None,
) -> tuple[list[Hypothesis], FloatArray, int]:
    """The rules worth a share of delta, and the share of each gap's delta for its upper end: both
    from the first part and the numbers of people of the second.
    """
    balanced = np.full(len(ends.names), 0.5)
    try:
        # Bound once: a model that was fitted for one of the limits serves the others.
        fair = bind_fair(
            hypotheses,
            first.problem.features,
            first.group,
            ends.rates,
            first.sample,
            limit,
            group_use=group_use,
            max_calls=max_calls,
        )
    except CannotEstimateRate:
        # Nobody of a group is there to fit to: constants remain.
        return [], balanced, 0
    solutions = fair.solve_at([share * limit for share in LIMITS], first.problem.acceptance_cost)
    sets = [
        [
            rule
            for rule, weight in zip(one.policy.hypotheses, one.policy.weights, strict=True)
            if weight >= LEAST_WEIGHT and rule not in CONSTANTS
        ]
        for one in solutions
    ]
    leaning = np.where(solutions[0].gaps > 0, LEANING, 1 - LEANING)
    calls = sum(one.oracle_calls for one in solutions)
    for one in solutions:
        if one.report.ran_out:
            warnings.warn(NotConverged(one.report.note), stacklevel=3)

    nobody = np.zeros(len(second.rows), dtype=bool)
    second_counts = ends.counts(nobody, second)
    constants = [ends.constant(rule, first) for rule in CONSTANTS]
    # Each rule is asked once; the forecasts below need its answers many times.
    accepted = {rule: first.accepts(rule) for one in sets for rule in one}
    first_counts = {rule: ends.counts(answer, first) for rule, answer in accepted.items()}
    best: tuple[float, list[Hypothesis], FloatArray] | None = None
    tried = [*sets, sets[0] + sets[-1], [rule for one in sets for rule in one]]
    tried += [[rule] for one in sets for rule in one]
    seen: list[list[Hypothesis]] = []
    for chosen in tried:
        distinct = list(dict.fromkeys(chosen))
        if not distinct or distinct in seen:
            continue
        seen.append(distinct)
        for shares in (balanced, leaning, 1 - leaning):
            rules = [
                ends.predicted(
                    rule,
                    first,
                    accepted[rule],
                    first_counts[rule],
                    second_counts,
                    len(distinct),
                    shares,
                )
                for rule in distinct
            ]
            rules += constants
            weights = _cheapest(rules, limit, [one for _, one in ends.ceilings], randomise)
            cost = float(sum(w * one.cost for w, one in zip(weights, rules, strict=True)))
            if best is None or cost < best[0] - 1e-12:
                best = cost, distinct, shares
    if best is None:
        return [], balanced, calls
    return best[1], best[2], calls


def _cheapest(
    rules: Sequence[CertifiedRule], limit: float, ceilings: Sequence[float], randomise: bool
) -> FloatArray:
    """The weights of the cheapest mixture (or single rule) that is certified."""
    costs = np.array([one.cost for one in rules])
    high = np.array([one.high for one in rules])
    low = np.array([one.low for one in rules])
    tops = np.array([one.tops for one in rules])
    if not randomise:
        passes = [_keeps(one.low, one.high, one.tops, limit, ceilings) for one in rules]
        chosen = int(np.argmin(np.where(passes, costs, np.inf)))
        return np.asarray(np.eye(len(rules))[chosen])
    bounds = np.concatenate([high.T, -low.T, tops.T])
    allowed = np.concatenate([np.full(high.shape[1] * 2, limit), np.asarray(ceilings)])
    if len(rules) == 1 + len(CONSTANTS) and not len(ceilings):
        weights = _with_one_rule(costs, float(bounds[:, 0].max()), limit)
    else:
        weights = _of_program(costs, bounds, allowed)
    # Rounding must not carry the sum beyond the limit: what is too much goes to reject-all, which
    # has neither a gap nor a rate.
    excess = float(np.max(bounds @ weights / np.maximum(allowed, 1e-300), initial=0.0))
    if excess > 1.0:
        weights = weights / excess
        weights[-1] += 1.0 - weights.sum()
    return np.asarray(weights)


def _with_one_rule(costs: FloatArray, reach: float, limit: float) -> FloatArray:
    """The program's solution for one rule and the constants, which have no gap: as much weight as
    the rule's largest end allows if it is cheaper than the better constant, which has the rest.
    """
    weights = np.zeros(len(costs))
    constant = 1 + int(np.argmin(costs[1:]))
    if costs[0] < costs[constant]:
        weights[0] = 1.0 if reach <= limit else limit / reach
    weights[constant] = 1.0 - weights[0]
    return weights


def _of_program(costs: FloatArray, bounds: FloatArray, allowed: FloatArray) -> FloatArray:
    """min costs w  subject to  bounds w <= allowed, sum w = 1, w >= 0."""
    from scipy.optimize import linprog

    found = linprog(
        costs,
        A_ub=bounds,
        b_ub=allowed,
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    solved = np.asarray(found.x, dtype=np.float64)
    weights = np.where(solved < 1e-9, 0.0, solved)
    return np.asarray(weights / weights.sum())


def _weights_of(model: Mixture, rules: Sequence[CertifiedRule]) -> FloatArray:
    """The weights of a policy among the rules that were certified."""
    return np.array([model.weight_of(one.rule) for one in rules])


def _within(
    rules: Sequence[CertifiedRule], weights: FloatArray, limit: float, ceilings: Sequence[float]
) -> bool:
    """Whether a mixture is certified as it is."""
    high = sum(w * one.high for w, one in zip(weights, rules, strict=True))
    low = sum(w * one.low for w, one in zip(weights, rules, strict=True))
    tops = sum(w * one.tops for w, one in zip(weights, rules, strict=True))
    return _keeps(np.atleast_1d(low), np.atleast_1d(high), np.atleast_1d(tops), limit, ceilings)


def _keeps(
    low: FloatArray, high: FloatArray, tops: FloatArray, limit: float, ceilings: Sequence[float]
) -> bool:
    """Whether all ends are within the limit and the ceilings, as the certificate will say it."""
    gaps = (stands(*size_of(*ends), limit) for ends in zip(low, high, strict=True))
    rates = (stands(0.0, top, most) for top, most in zip(tops, ceilings, strict=True))
    return all(one == "within" for one in (*gaps, *rates))


def _acceptance(
    policy: Mixture, rules: Sequence[CertifiedRule], part: TablePart, groups: Sequence[Group]
) -> Acceptance:
    """Whom the policy accepts of the people who certified it."""
    chance = np.zeros(len(part))
    for one in rules:
        if one.weight > 0:
            chance += one.weight * part.accepts(one.rule)
    return Acceptance.of(
        np.minimum(chance, 1.0),
        part.group,
        part.label,
        groups={group: plain_label(group) for group in groups},
        learned_weight=1.0 - policy.weight_of(*CONSTANTS),
        costs=(part.accept_cost, part.reject_cost),
    )


def _certificate(
    policy: Mixture,
    rules: Sequence[CertifiedRule],
    second: TablePart,
    ends: _Ends,
    limit: float,
    delta: float,
    assumptions: tuple[str, ...],
) -> Certificate:
    """What is claimed of the policy."""
    weights = np.array([one.weight for one in rules])
    try:
        fingerprint, models = policy.sha256, policy.models
    except NotSerialisable:
        fingerprint, models = f"not serialisable: {policy.describe()}", ()
    counts = tuple(
        CellCount(
            plain_label(group),
            outcome,
            int(np.sum((second.group == group) & (second.label == outcome))),
        )
        for group in ends.groups
        for outcome in (-1, 1)
    )
    tops = sum(w * one.tops for w, one in zip(weights, rules, strict=True))
    return Certificate(
        limit=limit,
        delta=delta,
        spent=delta,
        bound="exact differences of two proportions on the second part of a table",
        bound_params={"candidates": len(rules) - len(CONSTANTS)},
        policy=fingerprint,
        window=(0, len(second.rows)),
        assumptions=assumptions,
        counts=counts,
        acceptance=_acceptance(policy, rules, second, ends.groups),
        gaps=ends.intervals(rules, weights),
        groups=tuple(plain_label(group) for group in ends.groups),
        models=models,
        scope="table",
        ceilings=tuple(
            RateCeiling(rate.symbol, float(top), ceiling)
            for (rate, ceiling), top in zip(ends.ceilings, np.atleast_1d(tops), strict=True)
        ),
    )
