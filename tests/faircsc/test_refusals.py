"""Bad input to FairCSC: a clear error that names the thing, its value, the law and the way out."""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly, random_problem

import evenhand as eh


@pytest.fixture
def case():
    return random_problem(0)


def solve(case, **changes):
    arguments = dict(
        problem=case.problem,
        hypotheses=case.hypotheses,
        rates=[eh.FalsePositiveRate()],
        sample=case.sample,
        allowed_gap=0.05,
    )
    return eh.solve_fair(**(arguments | changes))


@pytest.mark.parametrize("limit", [-0.1, np.nan, np.inf])
def test_limit(case, limit):
    with pytest.raises(eh.InvalidInput, match=r"allowed_gap is .*at least 0"):
        solve(case, allowed_gap=limit)


def test_no_rates(case):
    with pytest.raises(eh.InvalidInput, match="rate is an empty list"):
        solve(case, rates=[])


def test_unknown_method_and_group_use(case):
    with pytest.raises(eh.InvalidInput, match="saddle-point"):
        solve(case, method="magic")
    with pytest.raises(eh.InvalidInput, match="certify_only"):
        solve(case, group_use="sometimes")


def test_group_needed_to_decide(case):
    with pytest.raises(eh.InvalidInput, match="no group"):
        solve(case, group_use="decide")


def test_class_that_looks_at_the_group(case):
    with pytest.raises(eh.InvalidInput, match=r"looks at the group.*Hint: choose group_use"):
        solve(case, hypotheses=eh.ScoreThresholds(per_group=True))


def test_a_group_without_negatives(case):
    label = np.where(case.sample_group == 1, 1, case.sample_label)
    with pytest.raises(
        eh.CannotEstimateRate, match=r"group 1 has \d+ people in the sample but 0 negatives"
    ):
        solve(case, sample=eh.LabelledSample(case.sample.features, case.sample.group, label))


def test_only_one_group(case):
    with pytest.raises(eh.CannotEstimateRate, match="only the group 0"):
        solve(
            case,
            sample=eh.LabelledSample(
                case.sample.features, np.zeros(len(case.sample), int), case.sample.label
            ),
        )


def test_other_number_of_columns(case):
    wide = eh.LabelledSample(
        np.c_[case.sample.features, case.sample.features], case.sample.group, case.sample.label
    )
    with pytest.raises(eh.InvalidInput, match=r"1 feature columns and the sample 2"):
        solve(case, sample=wide)


def test_nu_too_large_for_the_limit(case):
    with pytest.raises(eh.InvalidInput, match="nu < limit / 2"):
        solve(case, method="saddle-point", tolerance=0.03)


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
def test_infeasible_without_constants_is_proved(case, wrap):
    """Every hypothesis accepts group 1 only: gap 1 for each mixture. One call beyond the first
    proves it.
    """
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 1, 0, 1]), np.array([-1, -1, 1, 1])
    )
    problem = eh.CostSensitiveProblem(
        np.array([[0.0], [1.0], [2.0]]), None, np.zeros(3), np.array([1.0, -1.0, 1.0])
    )
    unfair = eh.FiniteClass.from_table(np.array([[0, 1, 0], [0, 1, 1]], bool))
    with pytest.raises(eh.Infeasible, match=r"at least 1 \(proved by oracle call 2\)") as caught:
        eh.solve_fair(
            problem, wrap(unfair), eh.FalsePositiveRate(), sample, 0.05, with_constants=False
        )
    assert caught.value.certificate == pytest.approx(1.0)
    assert (
        eh.solve_fair(problem, wrap(unfair), eh.FalsePositiveRate(), sample, 0.05).gaps[0]
        <= 0.05 + 1e-12
    )


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
def test_feasible_without_constants_is_found(case, wrap):
    """Two opposite hypotheses: only their mixture is fair."""
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 1, 0, 1]), np.array([-1, -1, 1, 1])
    )
    problem = eh.CostSensitiveProblem(
        np.array([[0.0], [1.0]]), None, np.zeros(2), np.array([-1.0, -3.0])
    )
    opposite = eh.FiniteClass.from_table(np.array([[0, 1], [1, 0]], bool))
    solution = eh.solve_fair(
        problem, wrap(opposite), eh.FalsePositiveRate(), sample, 0.1, with_constants=False
    )
    assert abs(solution.gaps[0]) <= 0.1 + 1e-12
    assert solution.cost == pytest.approx(-(0.55 * 3 + 0.45 * 1))
