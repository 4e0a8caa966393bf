"""What else could be done with a table, beside `evenhand.certify`.

- **In sample**: the cheapest mixture that keeps the limit on the whole table.
- **Split and shrink**: half of the table for the cheapest fair mixture, the other half for the
  exact interval [lo, hi] of its gap, with one coin a person; the mixture gets the weight
  min(1, limit / max(|lo|, |hi|)) and the better constant the rest.
- **Split and test**: half of the table for the cheapest mixture at half the limit, the other half
  for two Clopper-Pearson intervals; the mixture if they show the limit, else the better constant.
- **FaiREE** (Li, Zou and Zhang, arXiv 2211.15072), written from the paper, for the false positive
  rate: a threshold of a score in each group.
- **MAPIE**'s BinaryClassificationController: one threshold of a score.

Each returns a policy as `Rival`: how likely it accepts each row of a table of features.
"""

import warnings
from collections.abc import Callable

import numpy as np
import scipy.special

import evenhand as eh
from evenhand.bounds.proportions import difference_interval, proportion_interval
from evenhand.faircsc import bind_fair

ORDER_STATISTICS = 60
"""FaiREE tries so many order statistics of the first group, evenly spaced."""
NODES = 64
"""Nodes of the quadrature over a Beta distribution."""
TIE = 1e-9
"""Equal scores are put in a random order by numbers below this; leaves differ by more."""

Rival = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fair_on(people, model, limits):
    """The cheapest mixtures that keep each limit on these people."""
    problem = eh.Prices().problem(people.features, people.group, people.label)
    fair = bind_fair(model, people.features, people.group, "fpr", people, limits[0])
    return [one.policy for one in fair.solve_at(limits, problem.acceptance_cost)]


def halves(people, rng):
    """The table cut in two by fair coins."""
    first = rng.random(len(people)) < 0.5
    return [
        eh.LabelledSample(people.features[part], people.group[part], people.label[part])
        for part in (first, ~first)
    ]


def better_constant(people):
    """The acceptance probability of the constant with the smaller error."""
    return float((people.label == 1).mean() >= 0.5)


def bad_cells(accepted, people):
    """(accepted, all) of the people with a bad outcome, in each of the two groups."""
    bad = people.label == -1
    return [
        (
            int((accepted & bad & (people.group == group)).sum()),
            int((bad & (people.group == group)).sum()),
        )
        for group in people.groups
    ]


def split_and_shrink(people, model, limit, delta, rng):
    """(weight, mixture, constant) of split and shrink; the same of split and test."""
    first, second = halves(people, rng)
    fitted, tighter = fair_on(first, model, (limit, limit / 2))
    constant = better_constant(second)

    one, other = bad_cells(coins(fitted, second, rng), second)
    ends = difference_interval(*one, *other, delta / 2)
    reach = max(abs(ends.lower), abs(ends.upper))
    shrunk = min(1.0, limit / max(reach, 1e-12)), fitted, constant

    # Two groups with two ends each.
    low, high = zip(
        *(
            proportion_interval(*cell, delta / 4)
            for cell in bad_cells(coins(tighter, second, rng), second)
        ),
        strict=True,
    )
    passes = high[0] - low[1] <= limit and high[1] - low[0] <= limit
    return shrunk, (float(passes), tighter, constant)


def coins(policy, people, rng):
    """Decisions of a mixture, one coin a person."""
    return rng.random(len(people)) < policy.acceptance(people.features, people.group)


def fairee(score, people, limit, delta, rng):
    """A threshold in each group, (t_1, t_2): accept iff score + TIE * (uniform number) > t; None if
    no pair is a candidate.

    The k-th smallest score of n bad outcomes has F(z_(k)) ~ Beta(k, n - k + 1) if scores are
    continuous. A pair of order statistics is a candidate if

        P(|Q_1 - Q_2| > limit) <= delta,   Q_j ~ Beta(k_j, n_j - k_j + 1),

    and the candidate with the smallest error on the same people is taken.
    """
    score = score + TIE * rng.random(len(score))
    bad = people.label == -1
    steps = []
    wrong = []
    for group in people.groups:
        here = people.group == group
        cuts = np.sort(score[here & bad])
        good = np.sort(score[here & ~bad])
        k = np.arange(1, len(cuts) + 1)
        steps.append(cuts)
        # Bad outcomes above the cut are accepted, good ones up to it are rejected.
        wrong.append(len(cuts) - k + np.searchsorted(good, cuts, side="right"))
    n1, n2 = map(len, steps)
    if min(n1, n2) == 0:
        return None

    first = np.unique(np.linspace(1, n1, ORDER_STATISTICS).astype(int))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    q1 = scipy.special.betaincinv(first[:, None], n1 + 1 - first[:, None], (nodes + 1) / 2)

    def apart(second):
        def below(q):
            k = second[:, None]
            return scipy.special.betainc(k, n2 + 1 - k, np.clip(q, 0, 1))

        return (below(q1 - limit) + 1 - below(q1 + limit)) @ weights / 2

    centre = np.clip(np.round(first / (n1 + 1) * (n2 + 1)).astype(int), 1, n2)
    candidate = apart(centre) <= delta
    # The candidates of each first threshold are a range around the centre.
    ends = []
    for edge in (0, n2 + 1):
        inside = centre.copy()
        outside = np.full_like(centre, edge)
        while (np.abs(inside - outside) > 1).any():
            middle = (inside + outside) // 2
            middle = np.where(np.abs(inside - outside) > 1, middle, inside)
            passes = apart(middle) <= delta
            inside, outside = np.where(passes, middle, inside), np.where(passes, outside, middle)
        ends.append(inside)

    best = None
    for k1, low, high in zip(first[candidate], ends[0][candidate], ends[1][candidate], strict=True):
        k2 = low + int(np.argmin(wrong[1][low - 1 : high]))
        errors = wrong[0][k1 - 1] + wrong[1][k2 - 1]
        if best is None or errors < best[0]:
            best = errors, steps[0][k1 - 1], steps[1][k2 - 1]
    return None if best is None else best[1:]


def above(score, cut):
    """The probability with which score + TIE * (uniform number) > cut."""
    return np.clip((score + TIE - cut) / TIE, 0.0, 1.0)


def mapie_threshold(score, people, limit, delta, *, by_group):
    """A threshold of the score whose false positive rate is at most the limit: of all people, or of
    each group, which bounds the gap. None if MAPIE finds none.
    """
    from mapie.risk_control import BinaryClassificationController, BinaryRisk

    # Its risks see the outcome and the prediction, so the group travels in the outcome.
    second = people.group == people.groups[-1]
    outcome = (people.label == 1) + 2 * second

    def false_positives(counted):
        return BinaryRisk(lambda y, p: p == 1, lambda y, p: np.isin(y, counted), False)

    risks = [false_positives([0]), false_positives([2])] if by_group else [false_positives([0, 2])]
    errors = BinaryRisk(lambda y, p: p != y % 2, lambda y, p: np.ones(len(y), dtype=bool), False)
    controller = BinaryClassificationController(
        lambda rows: np.column_stack([1 - rows[:, 0], rows[:, 0]]),
        risk=risks if by_group else risks[0],
        target_level=[limit] * 2 if by_group else limit,
        confidence_level=1 - delta,
        best_predict_param_choice=errors,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller.calibrate(score[:, None], outcome)
    return controller.best_predict_param
