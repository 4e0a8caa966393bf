"""The figures of runs: drawn from the numbers they are given, and claiming no more than these."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.toys import study

import evenhand as eh
from evenhand.environments import lending
from evenhand.learners import FairOnGathered
from evenhand.media.drawing import draw_panels, inline_svg
from evenhand.report import (
    certified_figure,
    certified_run_figure,
    certified_runs,
    gap_figure,
    in_sample_figure,
    regret_and_gap_figure,
    regret_figure,
    save_figure,
)
from evenhand.report.run_figures import (
    PANEL,
    WIDE,
    certified_panels,
    in_sample_points,
    study_panels,
)
from evenhand.simulation import Comparison, LearnerRuns, RunRecord, compare


def record(seed: int, gaps: list[float], ends: list[int], slope: float = 0.1) -> RunRecord:
    rounds = np.array(ends)
    return RunRecord(
        seed,
        rounds,
        slope * rounds,
        np.array(gaps),
        np.zeros(len(ends)),
        rounds,
        ("x",) * len(ends),
        0.1,
        0,
        0.0,
        constant=0.2,
        guaranteed=True,
        learned=np.zeros(len(ends)),
        audit=np.zeros(len(ends)),
    )


@pytest.fixture
def played() -> Comparison:
    fair = (record(0, [0.0, 0.1], [100, 1000]), record(1, [0.0, 0.12], [200, 1000]))
    unfair = (
        record(0, [0.2, 0.3], [500, 1000], -0.05),
        record(1, [0.1, 0.1], [500, 1000], -0.05),
    )
    idle = (record(0, [0.0], [1000], 5.0), record(1, [0.0], [1000], 5.0))
    runs = {"two-phase": fair, "unconstrained": unfair, "uniform": idle}
    learners = tuple(LearnerRuns(name, {}, records) for name, records in runs.items())
    return Comparison({}, 1000, (0, 1), 0.15, 0.05, 0.02, 0.1, 0.2, learners)


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_regret_is_labelled_at_the_end_of_each_line(played):
    linear, logarithmic = regret_figure(played).axes
    assert texts(linear) == ["unconstrained", "two-phase", "uniform ↑ 5k"]
    assert {"two-phase", "uniform"} <= set(texts(logarithmic))
    assert "unconstrained" not in texts(logarithmic)


def test_learners_that_do_not_learn_do_not_set_the_scale(played):
    low, high = regret_figure(played).axes[0].get_ylim()
    assert -60 < low < -50
    assert 100 < high < 130


def test_gap_panels_show_every_run_the_worst_in_bold_and_the_limit(played):
    first, second, third = gap_figure(played).axes
    for axes in (first, second, third):
        assert any((np.asarray(line.get_ydata()) == 0.15).all() for line in axes.lines)
        assert axes.get_ylim() == first.get_ylim()
        assert "limit\n0.15" in texts(axes)
    assert len(second.lines) == 1 + 2 + 1
    bold = max(second.lines, key=lambda line: line.get_linewidth())
    assert max(bold.get_ydata()) == 0.3
    assert "above in 1 of 2 runs, 50% of rounds" in texts(second)
    assert "never above, worst 0.120 (2 runs)" in texts(first)


def test_one_learner_and_one_run(played):
    one = replace(played, learners=(LearnerRuns("a", {}, played.learners[0].runs[:1]),), seeds=(0,))
    assert len(regret_and_gap_figure(one).axes) == 2
    short = replace(one, rounds=1, learners=(LearnerRuns("a", {}, (record(0, [0.0], [1]),)),))
    assert regret_figure(short).axes


@pytest.mark.slow
def test_the_same_figure_is_the_same_file(played, tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(gap_figure(played), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_study_shows_the_worst_run_and_the_mean_cost():
    (comparison,) = study().comparisons
    gap, cost = draw_panels(study_panels(comparison), 2, PANEL).axes
    worst = {line.get_label(): max(line.get_ydata()) for line in gap.lines}
    assert worst["unconstrained"] == 0.26
    assert worst["certified"] == 0.03
    assert any((np.asarray(line.get_ydata()) == 0.05).all() for line in gap.lines)
    mean = (30 * 0.25 + 470 * 0.2 + 500 * 0.19) / 1000
    assert cost.lines[0].get_ydata()[-1] == pytest.approx(mean)
    assert texts(cost) == ["better constant", "best fair policy in hindsight"]


FPR, LIMIT = eh.FalsePositiveRate(), 0.08


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    world = lending()
    learners = {
        "fair-on-gathered": FairOnGathered(world.hypotheses, FPR, LIMIT),
        "certified": eh.CertifiedLearner(world.hypotheses, FPR, LIMIT, 0.05, horizon=8_000),
    }
    options = {"limit": LIMIT, "delta": 0.05, "regret_gap": LIMIT}
    return compare(learners, world, 8_000, range(3), **options)


def test_the_certified_learner_is_found_by_what_it_carries(comparison):
    assert certified_runs(comparison).name == "certified"
    assert certified_runs(replace(comparison, learners=comparison.learners[:1])) is None


def test_the_figure_s_lines_are_the_record_s(comparison):
    learner = certified_runs(comparison)
    axes = certified_figure(comparison, learner).axes
    assert len(axes) == 2
    tops = [float(np.max(line.get_ydata())) for line in axes[0].lines]
    certified = max(run.certified.max() for run in learner.runs)
    assert certified == pytest.approx(max(top for top in tops if top != LIMIT))
    assert LIMIT in tops
    assert max(tops) <= LIMIT + 1e-9
    assert axes[0].get_ylim()[1] > LIMIT
    assert float(axes[1].lines[0].get_ydata()[-1]) == pytest.approx(
        np.mean([run.learned[-1] for run in learner.runs])
    )


def test_in_sample_points_are_all_policies_that_learned(comparison):
    figure = in_sample_figure(comparison, certified_runs(comparison))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["fair-on-gathered", "certified"]
    for learner in comparison.learners:
        measured, true, rounds = in_sample_points(learner)
        learned = sum(
            int(((run.learned > 0) & np.isfinite(run.in_sample)).sum()) for run in learner.runs
        )
        assert len(measured) == len(true) == len(rounds) == learned


def test_what_looks_fair_and_is_not_is_reported_with_its_share(comparison):
    figure = in_sample_figure(comparison, certified_runs(comparison))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert any(text.startswith("looks fair and is not in") for text in texts[0])
    assert "no policy that looks fair is above the limit" in texts[1]


def test_without_an_ordinary_learner_the_certified_one_stands_alone(comparison):
    alone = replace(comparison, learners=comparison.learners[1:])
    assert len(in_sample_figure(alone, certified_runs(alone)).axes) == 1


def test_one_run(comparison, tmp_path):
    run = certified_runs(comparison).runs[0]
    save_figure(certified_run_figure(run, LIMIT), tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().count("<path") > 20


def test_panels_become_well_formed_svg_without_fixed_colours(comparison):
    for i, panel in enumerate(certified_panels(comparison, certified_runs(comparison))):
        svg = inline_svg(panel, WIDE, f"x{i}")
        ElementTree.fromstring(svg)
        assert "var(--ink)" in svg
