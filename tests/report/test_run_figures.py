"""The figures of runs: drawn from the numbers they are given, and claiming no more than these."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tests.report.toys import study

from evenhand.report import (
    gap_figure,
    regret_and_gap_figure,
    regret_figure,
    save_figure,
    tradeoff_figure,
)
from evenhand.report.drawing import draw_panels
from evenhand.report.run_figures import PANEL, study_panels
from evenhand.simulate import Comparison, LearnerRuns, RunRecord, Tradeoff


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
        True,
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
    return Comparison({}, 1000, (0, 1), 0.15, 0.05, 0.02, 0.1, learners)


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


def test_gap_panels_show_every_run_the_worst_in_bold_and_the_promise(played):
    first, second, third = gap_figure(played).axes
    for axes in (first, second, third):
        assert any((np.asarray(line.get_ydata()) == 0.15).all() for line in axes.lines)
        assert axes.get_ylim() == first.get_ylim()
        assert "promise\n0.15" in texts(axes)
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


def test_tradeoff_tells_the_slopes():
    powers = np.array([[t**-0.25 for t in (100, 1000)]])
    measured = Tradeoff((0.25,), (100, 1000), (0,), 0.0, powers, 1 / powers**2, powers)
    axes = tradeoff_figure(measured).axes
    assert [a.get_legend().get_texts()[0].get_text() for a in axes] == [
        "\u03b1 = 0.25: slope \u22120.25 (theory \u22120.25)",
        "\u03b1 = 0.25: slope +0.50 (theory +0.50)",
    ]


def test_the_same_figure_is_the_same_file(played, tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(gap_figure(played), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_study_shows_the_worst_run_and_the_mean_cost():
    cells = study().cells
    gap, cost = draw_panels(study_panels(cells, 0.05), 2, PANEL).axes
    worst = {line.get_label(): max(line.get_ydata()) for line in gap.lines}
    assert worst["unconstrained"] == 0.26
    assert worst["certified"] == 0.03
    assert any((np.asarray(line.get_ydata()) == 0.05).all() for line in gap.lines)
    mean = (100 * 0.25 + 400 * 0.2 + 500 * 0.19) / 1000
    assert cost.lines[0].get_ydata()[-1] == pytest.approx(mean)
    assert texts(cost) == ["better constant", "best fair policy in hindsight"]
