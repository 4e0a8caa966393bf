"""A row with a count of 3 is three people: whatever reads a `LabelledSample` says the same of
aggregated rows and of the same people as single rows.

Each entry of `READERS` gives the figures of one reader. A reader for which counts cannot be meant
raises an error that says so (the tests at the end).
"""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.requirements.parts import check_rate

import evenhand as eh
from evenhand.environments import Replay
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.evaluation import measure_policy
from evenhand.fairness.rates import GapConstraints
from evenhand.hypotheses import ACCEPT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.planning.population import LaunchTerms, from_table
from evenhand.words import LabelledSample

RATES = (eh.FalsePositiveRate(), eh.FalseNegativeRate(), eh.SelectionRate())
FPR = RATES[0]
POLICY = eh.policies.Mixture(
    (Threshold(0, 4.0, 2), Threshold(1, 2.0, 2, at_least=False), ACCEPT_ALL), (0.5, 0.3, 0.2)
)


def _samples(rows: int, seed: int, steps: bool) -> tuple[LabelledSample, LabelledSample]:
    """Rows with counts of 1 to 7, and the same people as single rows in the same order; the score
    has few values (`steps`) or one for each row. One row stands for nobody, and its group is
    nobody's.
    """
    draw = np.random.default_rng(seed)
    score = draw.integers(0, 9, rows) if steps else 9.0 * draw.random(rows)
    features = np.column_stack([score, draw.integers(0, 4, rows)]).astype(float)
    group = draw.choice(["a", "b"], rows)
    lean = features[:, 0] + 2.0 * (group == "b") + draw.normal(scale=3.0, size=rows)
    label = np.where(lean > 5.0, 1, -1)
    count = draw.integers(1, 8, rows)
    group[7] = "c"
    count[7] = 0
    one_by_one = np.repeat(np.arange(rows), count)
    together = LabelledSample(features, group, label, count)
    singly = LabelledSample(features[one_by_one], group[one_by_one], label[one_by_one])
    return together, singly


PEOPLE = {"few scores": _samples(90, 3, True), "many scores": _samples(150, 5, False)}
AGGREGATED, SINGLE = PEOPLE["few scores"]


def _problem(sample: LabelledSample) -> eh.CostSensitiveProblem:
    prices = eh.Prices(false_accept=2.0)
    return prices.problem(sample.features, sample.group, sample.label, sample.count)


def _measured(sample: LabelledSample) -> list[object]:
    measured = measure_policy(POLICY, sample, prices=(2.0, 1.0))
    found: list[object] = [measured.people, measured.cost, *measured.cost_interval]
    for rate in measured.rates:
        found += [rate.gap, *rate.gap_interval, rate.ratio]
        for one in rate.groups:
            found += [one.people, one.events, one.least, one.lower, one.upper]
    return found


def _gaps(sample: LabelledSample) -> list[object]:
    constraints = GapConstraints.on(RATES, sample)
    acceptance = POLICY.acceptance(sample.features, sample.group)
    rates = constraints.group_rates(acceptance)
    return [*constraints.gaps(acceptance), *(v for one in rates.values() for v in one.values())]


def _solved(rates: object, hypotheses: object, **settings: object) -> Callable[..., list[object]]:
    def read(sample: LabelledSample) -> list[object]:
        found = eh.solve_fair(_problem(sample), hypotheses, rates, sample, 0.05, **settings)
        figures: list[object] = [found.cost, found.unlimited_cost]
        return [*figures, *found.gaps, *found.unlimited_gaps, *found.policy.weights]

    return read


def _frontier(sample: LabelledSample) -> list[object]:
    traced = eh.faircsc.frontier(_problem(sample), eh.Stumps(), FPR, sample, [0.0, 0.05, 0.2])
    curve, picture = traced.result(0.05).figures
    drawn = np.array(picture.reached)
    # a convex region is known by how far it reaches in each direction; vertices may be split
    angles = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    directions = np.array([np.cos(angles), np.sin(angles)])
    reach = [(region @ directions).max(axis=0) for region in (traced.region, drawn)]
    return [*traced.costs, *curve.lines[0].y, *np.concatenate(reach)]


def _classifier(sample: LabelledSample) -> list[object]:
    model = eh.FairClassifier(eh.Stumps(), limit=0.05, prices=eh.Prices(2.0, 1.0))
    model.fit(
        sample.features,
        sample.label,
        sensitive_features=sample.group,
        sample_weight=sample.weight,
    )
    return [model.cost_, *model.gaps_.values(), model.describe()]


def _replay(sample: LabelledSample) -> list[object]:
    world = Replay(sample, hypotheses=eh.Stumps())
    loss, best = world.optimum(0.05, RATES[:2], eh.Prices())
    drawn = world.draw(500, np.random.default_rng(1))
    return [
        world.loss(POLICY),
        *world.gaps(POLICY, RATES),
        loss,
        best.describe(),
        *drawn.features.ravel(),
        *drawn.label,
        *drawn.group,
    ]


def _planned(hypotheses: object, group_use: str = "certify_only") -> Callable[..., list[object]]:
    def read(sample: LabelledSample) -> list[object]:
        terms = LaunchTerms(0.1, 0.05, 1_000, (FPR,), eh.Prices(2.0, 1.0))
        planned = from_table(sample, hypotheses, group_use, None, terms)
        loss, best = planned.world.optimum(0.1, (FPR,), terms.prices)
        facts = planned.facts()
        return [
            *planned.world.probability,
            *planned.world.positive_rate,
            *planned.world.accepts.ravel(),
            *planned.world.group,
            loss,
            best.describe(),
            planned.rules,
            *facts["group_shares"].values(),
            *facts["bad_rates"].values(),
        ]

    return read


def _whole_plan(sample: LabelledSample) -> list[object]:
    launch = eh.planning.plan_from_sample(
        sample, eh.ScoreThresholds(), limit=0.3, horizon=1_000, runs=1, seed=2
    )
    return [launch.answer, launch.saving_share, launch.final_share]


READERS: dict[str, Callable[[LabelledSample], list[object]]] = {
    "measure_policy": _measured,
    "gaps": _gaps,
    "solve, stumps": _solved(FPR, eh.Stumps()),
    "solve, two rates": _solved(RATES[:2], eh.Stumps()),
    "solve, saddle point": _solved(FPR, eh.Stumps(), method="saddle-point", tolerance=0.02),
    "solve, thresholds by group": _solved(
        FPR, eh.ScoreThresholds(per_group=True), group_use="decide"
    ),
    "solve, a tree": _solved(FPR, DecisionTreeClassifier(max_depth=2, random_state=0)),
    "frontier and its picture": _frontier,
    "FairClassifier": _classifier,
    "Replay": _replay,
    "plan, thresholds": _planned(eh.ScoreThresholds()),
    "plan, thresholds by group": _planned(eh.ScoreThresholds(per_group=True), "decide"),
    "plan, stumps": _planned(eh.Stumps()),
    "plan, a fitted model": _planned(eh.hypotheses.Estimator(LogisticRegression())),
    "plan, linear rules": _planned(eh.Linear()),
    "plan, simulated": _whole_plan,
    "check_rate": lambda sample: list(check_rate(FPR, sample=sample)),
}


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("name", READERS)
def test_counts_are_people(name, people):
    if (name, people) == ("plan, simulated", "many scores"):
        pytest.skip("several seconds; the population of the plan is compared above")
    aggregated, single = PEOPLE[people]
    together = READERS[name](aggregated)
    singly = READERS[name](single)
    assert len(together) == len(singly)
    for one, other in zip(together, singly, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            assert one == pytest.approx(other, abs=1e-9)


def test_parts_of_people_are_no_binomial_count():
    halves = LabelledSample([[1.0], [2.0]], ["a", "b"], [-1, -1], count=[2.5, 3.0])
    with pytest.raises(InvalidInput, match=r"2\.5"):
        measure_policy(POLICY, LabelledSample(*_two_columns(halves)))


def test_parts_of_people_cannot_be_folded():
    features = AGGREGATED.features
    halves = LabelledSample(features, AGGREGATED.group, AGGREGATED.label, AGGREGATED.weight / 2)
    terms = LaunchTerms(0.1, 0.05, 1_000, (FPR,))
    with pytest.raises(InvalidInput, match=r"0\.5|1\.5|2\.5|3\.5"):
        from_table(halves, eh.Linear(), "certify_only", None, terms)
    # classes that are not fitted need shares alone
    assert from_table(halves, eh.ScoreThresholds(), "certify_only", None, terms).rules > 0


def test_bins_are_those_of_the_rows_and_gaps_those_of_the_people():
    """A class is bound to rows, so max_bins may try other cuts; what is said of its answer is true
    for the people all the same.
    """
    aggregated, single = PEOPLE["many scores"]
    found = eh.solve_fair(_problem(aggregated), eh.Stumps(max_bins=8), FPR, aggregated, 0.05)
    acceptance = found.policy.acceptance(single.features, single.group)
    assert GapConstraints.on(FPR, single).gaps(acceptance) == pytest.approx(found.gaps, abs=1e-12)
    assert _problem(single).cost(acceptance) == pytest.approx(found.cost, abs=1e-9)


def test_a_table_with_counts_is_not_streamed():
    with pytest.raises(InvalidInput, match="counts"):
        Replay(AGGREGATED, streamed=True)


def test_a_sample_that_stands_for_nobody_has_no_gap():
    nobody = LabelledSample([[1.0], [2.0]], ["a", "b"], [-1, -1], count=[0, 0])
    with pytest.raises(CannotEstimateRate, match="0 people"):
        nobody.require_two_groups()
    with pytest.raises(InvalidInput, match="no people"):
        measure_policy(eh.policies.Mixture((ACCEPT_ALL,), (1.0,)), nobody)


def _two_columns(sample: LabelledSample) -> tuple[object, ...]:
    features = np.column_stack([sample.features, sample.features])
    return features, sample.group, sample.label, sample.count
