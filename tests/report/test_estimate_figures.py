"""The figures of a plan and of an evaluation: drawn from the numbers they are given."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import evenhand as eh
from evenhand.evaluation import DecisionLog, Evaluation, evaluate
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.policies import Mixture
from evenhand.report import evaluation_figure


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
