"""Heuristic oracles stay inside the limit and below the constants."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.faircsc.problems import OracleOnly, random_problem
from tests.tools import need

import evenhand as eh
from evenhand.faircsc import bind_fair
from evenhand.faircsc.pooled import Answers
from evenhand.fairness.rates import as_rates
from evenhand.hypotheses.named import CLASSES
from evenhand.tables import read_table


def people(seed: int, rows: int = 1500) -> tuple[eh.CostSensitiveProblem, eh.LabelledSample]:
    r = np.random.default_rng(seed)
    features = r.normal(size=(rows, 4))
    group = np.where(r.random(rows) < 0.4, 1, -1)
    label = np.where(features[:, 0] - 0.5 * group + r.normal(size=rows) > 0, 1, -1)
    features[:, 1] += 0.8 * group
    sample = eh.LabelledSample(features, group, label)
    return eh.Prices().problem(sample.features, group, label), sample


@pytest.mark.thorough
@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(), DecisionTreeClassifier(max_depth=5, random_state=0)],
    ids=["logistic", "tree"],
)
@pytest.mark.parametrize(
    "rates",
    [[eh.FalsePositiveRate()], [eh.FalsePositiveRate(), eh.FalseNegativeRate()]],
    ids=["fpr", "odds"],
)
def test_heuristic_is_feasible_and_useful(classifier, rates):
    problem, sample = people(0)
    solution = eh.solve_fair(problem, eh.Estimator(classifier), rates, sample, 0.03)
    constant = min((sample.label == 1).sum(), (sample.label == -1).sum())
    assert np.abs(solution.gaps).max() <= 0.03 + 1e-12
    assert solution.cost < 0.9 * constant
    assert solution.lower_bound is None
    assert solution.oracle_calls <= (12 if len(rates) == 1 else 20)
    assert solution.support_size <= 1 + len(rates)


PARTITIONING = {
    "linear": eh.Linear(),
    "logistic": eh.Estimator(LogisticRegression()),
    "tree": eh.Estimator(DecisionTreeClassifier(max_depth=4, random_state=0)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PARTITIONING)
@pytest.mark.parametrize(
    "rates",
    [eh.FalsePositiveRate(), [eh.FalsePositiveRate(), eh.FalseNegativeRate()]],
    ids=["fpr", "odds"],
)
def test_what_a_search_offers_besides_its_answer_is_worth_having(name, rates):
    """Other labels in the leaves, other cut-offs: after two calls the mixture never costs more,
    and in some cases less, than that of the answers alone. Cost and gaps of the solution are those
    of its policy."""
    gains = []
    for seed in range(3):
        problem, sample = people(seed, rows=600)
        fair = bind_fair(PARTITIONING[name], problem.features, None, rates, sample, 0.02)
        whole = fair.solve(problem.acceptance_cost, problem.rejection_total)
        acceptance = whole.policy.acceptance(problem.features)
        assert problem.cost(acceptance) == pytest.approx(whole.cost, abs=1e-9)
        assert np.abs(fair.constraints.gaps(acceptance)).max() <= 0.02 + 1e-12
        asked = [np.array(step.multipliers) for step in whole.report.iterations[:2]]
        pricer, _ = fair.pricer(problem.acceptance_cost)
        known = Answers.of(pricer)
        for multipliers in asked:
            known.pool.add(pricer(multipliers))
        costs = []
        for alone in (True, False):
            best = known.best(0.02, answers_alone=alone)
            costs.append(
                sum(w * column.cost for w, column in zip(best.weights, best.columns, strict=True))
            )
        gains.append(costs[0] - costs[1])
        assert (
            costs[1] * np.abs(problem.acceptance_cost).sum() + problem.rejection_total
            >= whole.cost - 1e-9
        )
    assert min(gains) >= -1e-12
    assert max(gains) > 1e-4


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(fit_intercept=False),
        DecisionTreeClassifier(max_depth=3, monotonic_cst=[1, 0, 0, 0]),
        GaussianNB(),
    ],
    ids=["no intercept", "constrained", "naive Bayes"],
)
def test_nothing_is_offered_that_may_leave_the_class(classifier):
    problem, _ = people(0, rows=200)
    assert (
        eh.Estimator(classifier).bind(problem.features, None).partition(problem.acceptance_cost)
        is None
    )


def test_answers_serve_the_next_limit():
    """Two limits in one go take fewer calls than one after the other, ask no question twice, and
    keep their limits.
    """
    problem, sample = people(0)
    fair = bind_fair(eh.Linear(), problem.features, None, eh.FalsePositiveRate(), sample, 0.1)
    limits = (0.05, 0.02)
    alone = [fair.at(limit).cheapest(problem.acceptance_cost) for limit in limits]
    shared = fair.solve_at(limits, problem.acceptance_cost)
    assert shared[0].oracle_calls == alone[0].oracle_calls
    assert shared[1].oracle_calls < alone[1].oracle_calls
    asked = [step.multipliers for solution in shared for step in solution.report.iterations]
    assert len(asked) == len(set(asked)) == sum(solution.oracle_calls for solution in shared)
    for limit, one, other in zip(limits, shared, alone, strict=True):
        assert np.abs(one.gaps).max() <= limit + 1e-12
        assert one.cost <= other.cost + 2e-3 * np.abs(problem.acceptance_cost).sum()


def test_an_exact_class_is_solved_alike_at_one_limit_and_at_several():
    case = random_problem(3, hypotheses=30)
    fair = bind_fair(
        case.hypotheses, case.problem.features, None, eh.FalsePositiveRate(), case.sample, 0.1
    )
    together = fair.solve_at((0.1, 0.02), case.problem.acceptance_cost)
    for limit, found in zip((0.1, 0.02), together, strict=True):
        alone = fair.at(limit).cheapest(case.problem.acceptance_cost)
        assert (found.cost, found.oracle_calls) == (alone.cost, alone.oracle_calls)


def test_an_oracle_that_lies_is_survived():
    """A heuristic oracle that answers at random: still feasible, never above the constants."""
    case = random_problem(1, hypotheses=40)

    class Liar(OracleOnly):
        def bind(self, features, group):
            r, bound = np.random.default_rng(0), self.inner.bind(features, group)

            class Random:
                def best(self, acceptance_cost):
                    return bound.hypothesis(int(r.integers(2, 40)))

            return Random()

    solution = eh.solve_fair(
        case.problem, Liar(case.hypotheses, exact=False), eh.FalsePositiveRate(), case.sample, 0.02
    )
    assert np.abs(solution.gaps).max() <= 0.02 + 1e-12
    assert (
        solution.cost
        <= min(case.problem.rejection_total, case.problem.cost(np.ones(len(case.problem)))) + 1e-9
    )


HEURISTIC = ("linear", "logistic", "tree", "lightgbm")
CONSTRAINED = {"one": ["fpr"], "several": ["fpr", "fnr"]}


def limits_and_unlimited(problem, sample, hypotheses, rates, limit):
    """What a mixture within the limit costs, and what "without a limit" is said to cost, by every
    way that shows both."""
    solution = eh.solve_fair(problem, hypotheses, rates, sample, limit)
    yield solution.cost, solution.unlimited_cost
    if len(rates) == 1:
        traced = eh.faircsc.frontier(
            problem, hypotheses, rates[0], sample, [limit, 0.3], directions=8
        )
        free = float(traced.costs[0] - traced.price_of_fairness[0])
        yield from ((cost, free) for cost in traced.costs)
        yield from ((found.cost, found.unlimited_cost) for found in traced.solutions)
    world = eh.environments.Replay(sample, hypotheses=hypotheses)
    yield world.optimum(limit, rates)[0], world.optimum(1.0, rates)[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", HEURISTIC)
@pytest.mark.parametrize("constrained", CONSTRAINED)
def test_no_limit_costs_less_than_none(kind, constrained):
    if kind == "lightgbm":
        need("libgomp")
    rates = as_rates(CONSTRAINED[constrained])
    for seed, limit in ((0, 0.1), (1, 0.02)):
        problem, sample = people(seed, rows=200)
        for cost, free in limits_and_unlimited(problem, sample, CLASSES[kind](), rates, limit):
            assert free <= cost + 1e-9


@pytest.mark.thorough
def test_the_first_answer_alone_would_cost_more_than_a_limit():
    """Negative control: the answer at multiplier 0, which was shown before as that without a
    limit, costs more than a mixture within the limit on some tables."""
    beaten = []
    for seed in range(20):
        problem, sample = people(seed, rows=250)
        solution = eh.solve_fair(problem, eh.Linear(), "fpr", sample, 0.1)
        first = solution.report.iterations[0]
        assert first.multipliers == (0.0,)
        before = problem.rejection_total + solution.report.cost_scale * first.cost
        assert solution.unlimited_cost <= min(solution.cost, before)
        beaten.append(before > solution.cost + 1e-9)
    assert sum(beaten) >= 3  # measured: 13


@pytest.mark.claims_tables
@pytest.mark.parametrize("kind", HEURISTIC)
@pytest.mark.parametrize("name", ["adult", "compas", "german", "taiwan", "loanapp", "recid"])
def test_no_limit_costs_less_than_none_on_real_tables(name, kind):
    sample = read_table(name).encoded().subset(4_000).sample
    problem = eh.Prices().problem(sample.features, sample.group, sample.label)
    for limit in (0.02, 0.1):
        solution = eh.solve_fair(problem, CLASSES[kind](), "fpr", sample, limit)
        print(f"{name} {kind} {limit}: {solution.cost:.6g} against {solution.unlimited_cost:.6g}")
        assert solution.unlimited_cost <= solution.cost + 1e-9
