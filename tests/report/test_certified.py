"""The certified learner's figures and the plan's: drawn from the numbers they are given, and claiming no more."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import evenhand as eh
from evenhand.environments import lending
from evenhand.learners import FairOnGathered
from evenhand.report import (
    Report,
    certified_runs,
    in_sample_figure,
    page,
    plan_figure,
    promise_cost_figure,
    save_figure,
)
from evenhand.report.certified import WIDE, _points, certified_figure, certified_panels, is_certified, life_figure
from evenhand.report.runs import inline_svg
from evenhand.simulate import Comparison, PromiseCost, compare

FPR, LIMIT = eh.FalsePositiveRate(), 0.08


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    world = lending()
    learners = {
        "fair-on-gathered": FairOnGathered(world.hypotheses, FPR, LIMIT),
        "certified": eh.CertifiedLearner(world.hypotheses, FPR, LIMIT, 0.05, horizon=8_000),
    }
    return compare(learners, world, 8_000, range(3), promise=LIMIT, failure_probability=0.05, regret_gap=LIMIT)


COST = PromiseCost((0.05, 0.1), (0.35, 0.33), (0.34, 0.32), (0.36, 0.34), (0.3, 0.28), 0.26, 0.41, 8_000, (0, 1))


def test_the_certified_learner_is_found_by_what_it_carries(comparison):
    found = certified_runs(comparison)
    assert found.name == "certified"
    assert not is_certified(comparison.learners[0])
    assert certified_runs(replace(comparison, learners=comparison.learners[:1])) is None


def test_the_figure_s_lines_are_the_trail_s(comparison):
    learner = certified_runs(comparison)
    axes = certified_figure(comparison, learner).axes
    assert len(axes) == 2
    tops = [float(np.max(line.get_ydata())) for line in axes[0].lines]
    assert max(run.trail.certified.max() for run in learner.runs) == pytest.approx(max(t for t in tops if t != LIMIT))
    assert LIMIT in tops
    assert max(tops) <= LIMIT + 1e-9
    assert axes[0].get_ylim()[1] > LIMIT
    assert float(axes[1].lines[0].get_ydata()[-1]) == pytest.approx(
        np.mean([run.trail.weight[-1] for run in learner.runs])
    )


def test_in_sample_points_are_all_policies_that_learned(comparison):
    figure = in_sample_figure(comparison, certified_runs(comparison))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["fair-on-gathered", "certified"]
    for learner in comparison.learners:
        measured, true, rounds = _points(learner)
        learned = sum(int(((run.trail.weight > 0) & np.isfinite(run.trail.in_sample)).sum()) for run in learner.runs)
        assert len(measured) == len(true) == len(rounds) == learned


def test_what_looks_fair_and_is_not_is_told_with_its_share(comparison):
    figure = in_sample_figure(comparison, certified_runs(comparison))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert any(text.startswith("looks fair and is not in") for text in texts[0])
    assert "no policy that looks fair is above the limit" in texts[1]


def test_without_an_ordinary_learner_the_certified_one_stands_alone(comparison):
    alone = replace(comparison, learners=comparison.learners[1:])
    assert len(in_sample_figure(alone, certified_runs(alone)).axes) == 1


def test_the_cost_of_the_promise(tmp_path):
    figure = promise_cost_figure(COST)
    assert figure.axes[0].get_ylim()[1] > 100 * (COST.constant - COST.unlimited)
    save_figure(figure, tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 10_000


def test_one_life(comparison, tmp_path):
    save_figure(life_figure(certified_runs(comparison).runs[0].trail, LIMIT), tmp_path / "life.svg")
    assert (tmp_path / "life.svg").read_text().count("<path") > 20


def test_panels_become_well_formed_svg_without_fixed_colours(comparison):
    for i, draw in enumerate(certified_panels(comparison, certified_runs(comparison))):
        svg = inline_svg(draw, WIDE, f"x{i}")
        ElementTree.fromstring(svg)
        assert "var(--ink)" in svg


def test_the_page_has_the_certified_sections_when_there_is_a_certified_learner(comparison):
    report = Report(comparison, {}, {}, "false positive rate", "evenhand compare", "0", "results.json")
    text = page(replace(report, promise_cost=COST))
    assert "<h2>Certified at every round</h2>" in text
    assert "<h2>What the promise costs</h2>" in text
    assert "Gap on the gathered labels against the true gap" in text
    assert not any(word in text for word in ("unbiased", "bias-free", "guarantees fairness"))
    without = page(replace(report, comparison=replace(comparison, learners=comparison.learners[:1])))
    assert "Certified at every round" not in without
    assert "What the promise costs" not in without


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_the_plan_s_figure(limit, tmp_path):
    plan = eh.plan(
        limit=limit,
        group_shares={"a": 0.6, "b": 0.4},
        bad_rates={"a": 0.4, "b": 0.5},
        separation=1.5,
        horizon=20_000,
        lives=2,
    )
    figure = plan_figure(plan)
    weight, cost, audits = figure.axes
    assert weight.get_title(loc="left") == "How much of the learned policy is certified"
    feasible = sum(course.infeasible is None for course in plan.courses)
    assert len(cost.lines) == feasible + 1
    told = " ".join(text.get_text() for text in cost.texts)
    assert ("infeasible at this volume" in told) == (feasible < 3)
    assert f"{plan.audited.mean:,.0f} people" in audits.texts[0].get_text()
    save_figure(figure, tmp_path / "plan.png")


def test_the_plan_s_figure_says_what_is_lacking():
    plan = eh.plan(
        limit=0.002,
        group_shares={"a": 0.6, "b": 0.4},
        bad_rates={"a": 0.4, "b": 0.5},
        separation=1.5,
        horizon=2_000,
        lives=2,
    )
    assert plan.half.round is None
    (told,) = (text.get_text() for text in plan_figure(plan).axes[0].texts)
    assert told.replace("\n", " ") == f"Forecast: {plan.outlook[0]}"
