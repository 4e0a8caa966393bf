"""The certified learner's figures: drawn from the numbers they are given, claiming no more."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import evenhand as eh
from evenhand.environments import lending
from evenhand.learners import FairOnGathered
from evenhand.report import (
    certified_figure,
    certified_run_figure,
    certified_runs,
    in_sample_figure,
    promise_cost_figure,
    save_figure,
)
from evenhand.report.certified_figures import WIDE, certified_panels, in_sample_points
from evenhand.report.drawing import inline_svg
from evenhand.simulate import Comparison, PromiseCost, compare

FPR, LIMIT = eh.FalsePositiveRate(), 0.08
COST = PromiseCost(
    limits=(0.05, 0.1),
    learner=(0.35, 0.33),
    low=(0.34, 0.32),
    high=(0.36, 0.34),
    optimum=(0.3, 0.28),
    unlimited=0.26,
    constant=0.41,
    rounds=8_000,
    seeds=(0, 1),
)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    world = lending()
    learners = {
        "fair-on-gathered": FairOnGathered(world.hypotheses, FPR, LIMIT),
        "certified": eh.CertifiedLearner(world.hypotheses, FPR, LIMIT, 0.05, horizon=8_000),
    }
    options = {"promise": LIMIT, "failure_probability": 0.05, "regret_gap": LIMIT}
    return compare(learners, world, 8_000, range(3), **options)


def test_the_certified_learner_is_found_by_what_it_carries(comparison):
    assert certified_runs(comparison).name == "certified"
    assert certified_runs(replace(comparison, learners=comparison.learners[:1])) is None


def test_the_figure_s_lines_are_the_trail_s(comparison):
    learner = certified_runs(comparison)
    axes = certified_figure(comparison, learner).axes
    assert len(axes) == 2
    tops = [float(np.max(line.get_ydata())) for line in axes[0].lines]
    certified = max(run.trail.certified.max() for run in learner.runs)
    assert certified == pytest.approx(max(top for top in tops if top != LIMIT))
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
        measured, true, rounds = in_sample_points(learner)
        trails = [run.trail for run in learner.runs]
        learned = sum(int(((t.weight > 0) & np.isfinite(t.in_sample)).sum()) for t in trails)
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


def test_one_run(comparison, tmp_path):
    trail = certified_runs(comparison).runs[0].trail
    save_figure(certified_run_figure(trail, LIMIT), tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().count("<path") > 20


def test_panels_become_well_formed_svg_without_fixed_colours(comparison):
    for i, panel in enumerate(certified_panels(comparison, certified_runs(comparison))):
        svg = inline_svg(panel, WIDE, f"x{i}")
        ElementTree.fromstring(svg)
        assert "var(--ink)" in svg
