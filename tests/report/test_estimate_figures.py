"""The figures of a plan and of an evaluation: drawn from the numbers they are given."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import evenhand as eh
from evenhand.evaluation import DecisionLog, Evaluation, evaluate
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.policies import Mixture
from evenhand.report import evaluation_figure, plan_figure, save_figure


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_the_plan_s_figure(limit, tmp_path):
    plan = eh.plan(
        limit=limit,
        group_shares={"a": 0.6, "b": 0.4},
        bad_rates={"a": 0.4, "b": 0.5},
        separation=1.5,
        horizon=20_000,
        runs=2,
    )
    figure = plan_figure(plan)
    weight, cost, audits = figure.axes
    assert weight.get_title(loc="left") == "How much of the learned policy is certified"
    feasible = sum(course.infeasible is None for course in plan.courses)
    assert len(cost.lines) == feasible + 1
    written = " ".join(text.get_text() for text in cost.texts)
    assert ("infeasible at this volume" in written) == (feasible < 3)
    written = " ".join(text.get_text() for text in audits.texts)
    assert f"{plan.audited.mean:,.0f} people" in written
    assert len(audits.lines) == 2  # who is accepted, and who by the audit coin
    save_figure(figure, tmp_path / "plan.png")


@pytest.fixture
def evaluation() -> Evaluation:
    """Accepting everybody, judged on a log in which a fair coin decided."""
    rng = np.random.default_rng(0)
    accept, label = rng.random(400) < 0.5, np.where(rng.random(400) < 0.7, 1, -1)
    log = DecisionLog.of(
        rng.normal(size=(400, 1)),
        accept,
        np.full(400, 0.5),
        np.where(accept, label, 0),
        group=["a", "b"] * 200,
    )
    rates = (eh.FalsePositiveRate(), eh.FalseNegativeRate())
    return evaluate(log, Mixture((ACCEPT_ALL,), (1.0,)), rates=rates, limit=0.08)


def test_an_evaluation_has_one_panel_per_gap_and_one_for_the_cost(evaluation):
    *gaps, loss = evaluation_figure(evaluation).axes
    assert [axes.get_ylabel() for axes in gaps] == [f"gap {gap.name}" for gap in evaluation.gaps]
    assert loss.get_ylabel() == "loss per person"
    assert loss.lines[0].get_ydata().tolist() == evaluation.course.loss[:, 0].tolist()
    for number, axes in enumerate(gaps):
        heights = [np.asarray(line.get_ydata()) for line in axes.lines]
        for limit in (-0.08, 0.08):
            assert any((height == limit).all() for height in heights)
        curve = evaluation.course.gaps[:, number, 0]
        assert any(np.array_equal(height, curve, equal_nan=True) for height in heights)
        assert [text.get_text() for text in axes.texts] == ["limit 0.08"]


def test_the_title_of_a_gap_is_its_verdict(evaluation):
    titles = {"within": "Within the limit", "above": "Above the limit"}
    for gap, axes in zip(evaluation.gaps, evaluation_figure(evaluation).axes, strict=False):
        assert axes.get_title(loc="left") == titles.get(gap.stands(0.08), "Not shown")


def test_the_plan_s_figure_says_what_is_lacking():
    plan = eh.plan(
        limit=0.002,
        group_shares={"a": 0.6, "b": 0.4},
        bad_rates={"a": 0.4, "b": 0.5},
        separation=1.5,
        horizon=2_000,
        runs=2,
    )
    assert plan.half.round is None
    (told,) = (text.get_text() for text in plan_figure(plan).axes[0].texts)
    assert told.replace("\n", " ") == f"half of the weight: {plan.half.describe()}"
