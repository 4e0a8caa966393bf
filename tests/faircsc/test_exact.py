"""FairCSC on exact classes equals the stupid-exact enumeration, however the class is reached."""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly, best_pair, highs, random_problem

import evenhand as eh

RATES = [eh.FalsePositiveRate(), eh.FalseNegativeRate(), eh.SelectionRate()]


def normalised(problem: eh.CostSensitiveProblem, cost: float) -> float:
    return (cost - problem.rejection_total) / np.abs(problem.acceptance_cost).sum()


def own_gap(case, policy, rate):
    acceptance = policy.acceptance(case.sample.features)
    means = [
        acceptance[(case.sample_group == j) & rate.in_denominator(case.sample_label)].mean()
        for j in (0, 1)
    ]
    return (means[1] - means[0]) * (-1 if isinstance(rate, eh.FalseNegativeRate) else 1)


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
@pytest.mark.parametrize("limit", [0.0, 0.01, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.symbol)
def test_equals_enumeration_of_all_pairs(wrap, limit, rate):
    for seed in range(25):
        case = random_problem(seed)
        solution = eh.solve_fair(case.problem, wrap(case.hypotheses), [rate], case.sample, limit)
        costs, gaps = case.points([rate])
        assert (
            abs(normalised(case.problem, solution.cost) - best_pair(costs, gaps[0], limit)) <= 1e-12
        )
        assert abs(own_gap(case, solution.policy, rate)) <= limit + 1e-12
        assert abs(own_gap(case, solution.policy, rate) - solution.gaps[0]) <= 1e-12
        assert solution.support_size <= 2
        assert solution.report.converged
        assert solution.lower_bound <= solution.cost
        assert (
            solution.cost - solution.lower_bound
            <= 1e-12 * np.abs(case.problem.acceptance_cost).sum()
        )
        assert (
            abs(
                case.problem.cost(solution.policy.acceptance(case.problem.features)) - solution.cost
            )
            <= 1e-9
        )
        np.testing.assert_allclose(
            solution.acceptance, solution.policy.acceptance(case.problem.features)
        )


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
def test_large_class_equals_highs(wrap):
    for seed in range(3):
        case = random_problem(seed, hypotheses=3000, contexts=80, rows=400)
        solution = eh.solve_fair(case.problem, wrap(case.hypotheses), RATES[:1], case.sample, 0.03)
        accepts = case.table[:, case.contexts]
        costs = accepts @ case.cost / np.abs(case.cost).sum()
        negatives = [(case.sample_group == j) & (case.sample_label == -1) for j in (0, 1)]
        gaps = case.table[:, case.sample_contexts[negatives[1]]].mean(1) - case.table[
            :, case.sample_contexts[negatives[0]]
        ].mean(1)
        assert abs(normalised(case.problem, solution.cost) - highs(costs, gaps, 0.03)) <= 1e-9


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
@pytest.mark.parametrize(
    ("rates", "groups"),
    [([eh.FalsePositiveRate(), eh.FalseNegativeRate()], 2), ([eh.FalsePositiveRate()], 5)],
    ids=["odds", "five"],
)
def test_several_constraints_equal_the_linear_program(wrap, rates, groups):
    for seed in range(8):
        case = random_problem(seed, hypotheses=60, contexts=30, groups=groups, rows=300)
        solution = eh.solve_fair(case.problem, wrap(case.hypotheses), rates, case.sample, 0.04)
        costs, gaps = case.points(rates)
        assert abs(normalised(case.problem, solution.cost) - highs(costs, gaps, 0.04)) <= 1e-9
        assert np.abs(solution.gaps).max() <= 0.04 + 1e-12
        assert len(solution.gaps) == len(rates) * groups * (groups - 1) // 2
        assert solution.report.converged
        tight = np.abs(np.abs(solution.gaps) - 0.04) <= 1e-9
        support = [
            case.table.tolist().index(h.accepts(np.arange(30.0)[:, None]).tolist())
            for h in solution.policy.hypotheses
        ]
        rank = np.linalg.matrix_rank(gaps[np.ix_(tight, support)]) if tight.any() else 0
        assert solution.support_size <= 1 + rank


def test_group_classifiers_join_when_the_group_may_decide():
    case = random_problem(3, hypotheses=6)
    group = np.arange(len(case.contexts)) % 2
    problem = eh.CostSensitiveProblem(
        case.problem.features,
        group,
        cost_if_rejected=1.0 * (group == 1),
        cost_if_accepted=1.0 * (group == 0),
    )
    blind = eh.solve_fair(problem, case.hypotheses, RATES[0], case.sample, 0.5)
    seeing = eh.solve_fair(problem, case.hypotheses, RATES[0], case.sample, 0.5, group_use="decide")
    assert seeing.cost < blind.cost
    assert any(h.describe() == "accept if group is 1" for h in seeing.policy.hypotheses)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1.0, 1e12])
def test_the_scale_of_costs_changes_nothing(scale):
    case = random_problem(5)
    scaled = eh.CostSensitiveProblem(
        case.problem.features,
        None,
        scale * case.problem.cost_if_rejected,
        scale * case.problem.cost_if_accepted,
    )
    for wrap in (lambda h: h, OracleOnly):
        ours = eh.solve_fair(case.problem, wrap(case.hypotheses), RATES[0], case.sample, 0.02)
        other = eh.solve_fair(scaled, wrap(case.hypotheses), RATES[0], case.sample, 0.02)
        assert abs(normalised(scaled, other.cost) - normalised(case.problem, ours.cost)) <= 1e-12
        np.testing.assert_allclose(other.gaps, ours.gaps, atol=1e-12)


def test_merged_rows_equal_separate_rows():
    """When problem and sample are the same people the rows are shared; that must not change the
    answer.
    """
    case = random_problem(11)
    problem = eh.Prices().problem(case.sample.features, None, case.sample.label)
    shuffled = np.random.default_rng(0).permutation(len(case.sample))
    apart = eh.LabelledSample(
        case.sample.features[shuffled], case.sample.group[shuffled], case.sample.label[shuffled]
    )
    one = eh.solve_fair(problem, case.hypotheses, RATES[0], case.sample, 0.05)
    two = eh.solve_fair(problem, case.hypotheses, RATES[0], apart, 0.05)
    assert abs(one.cost - two.cost) <= 1e-9


def test_a_count_stands_for_repeated_rows():
    case = random_problem(12)
    count = np.random.default_rng(1).integers(0, 4, len(case.sample)).astype(float)
    count[:4] = 1
    repeated = np.repeat(np.arange(len(case.sample)), count.astype(int))
    counted = eh.LabelledSample(case.sample.features, case.sample.group, case.sample.label, count)
    listed = eh.LabelledSample(
        case.sample.features[repeated], case.sample.group[repeated], case.sample.label[repeated]
    )
    a, b = (
        eh.solve_fair(case.problem, case.hypotheses, RATES[0], sample, 0.02)
        for sample in (counted, listed)
    )
    assert abs(a.cost - b.cost) <= 1e-9


def test_ties_prefer_one_hypothesis_to_a_mixture():
    """Two hypotheses cost the same; one has no gap. A mixture of anything would be needless."""
    table = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]], bool)
    contexts, cost = np.arange(4), np.array([-3.0, 1.0, 1.0, 3.0])
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [2.0], [3.0]] * 2),
        np.array([0, 0, 1, 1] * 2),
        np.array([-1] * 4 + [1] * 4),
    )
    problem = eh.CostSensitiveProblem(contexts[:, None].astype(float), None, np.zeros(4), cost)
    solution = eh.solve_fair(problem, eh.FiniteClass.from_table(table), RATES[0], sample, 0.1)
    assert solution.support_size == 1
    assert solution.gaps[0] == 0


def test_zero_costs_are_solved():
    case = random_problem(2)
    problem = eh.CostSensitiveProblem(
        case.problem.features, None, np.ones(len(case.contexts)), np.ones(len(case.contexts))
    )
    solution = eh.solve_fair(problem, case.hypotheses, RATES[0], case.sample, 0.0)
    assert solution.cost == len(case.contexts)
    assert solution.support_size == 1
