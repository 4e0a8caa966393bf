"""The figures say what the numbers say."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from evenhand.report import gap_figure, regret_and_gap_figure, regret_figure, save_figure, tradeoff_figure
from evenhand.report.runs import _apart, _steps, short_number
from evenhand.simulate import Comparison, LearnerRuns, RunRecord, Tradeoff


def record(seed: int, gaps: list[float], ends: list[int], slope: float = 0.1) -> RunRecord:
    rounds = np.array(ends)
    return RunRecord(
        seed, rounds, slope * rounds, np.array(gaps), np.zeros(len(ends)), rounds, ("x",) * len(ends), 0.1, 0, 0.0, True
    )


@pytest.fixture
def comparison() -> Comparison:
    fair = LearnerRuns("two-phase", {}, (record(0, [0.0, 0.1], [100, 1000]), record(1, [0.0, 0.12], [200, 1000])))
    unfair = LearnerRuns(
        "unconstrained", {}, (record(0, [0.2, 0.3], [500, 1000], -0.05), record(1, [0.1, 0.1], [500, 1000], -0.05))
    )
    idle = LearnerRuns("uniform", {}, (record(0, [0.0], [1000], 5.0), record(1, [0.0], [1000], 5.0)))
    return Comparison({}, 1000, (0, 1), 0.15, 0.05, 0.02, 0.1, (fair, unfair, idle))


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_regret_is_labelled_at_the_end_of_each_line(comparison):
    linear, logarithmic = regret_figure(comparison).axes
    assert texts(linear) == ["unconstrained", "two-phase", "uniform ↑ 5k"]
    assert {"two-phase", "uniform"} <= set(texts(logarithmic))
    assert "unconstrained" not in texts(logarithmic)


def test_learners_that_do_not_learn_do_not_set_the_scale(comparison):
    low, high = regret_figure(comparison).axes[0].get_ylim()
    assert -60 < low < -50
    assert 100 < high < 130


def test_gap_panels_show_every_run_the_worst_in_bold_and_the_promise(comparison):
    first, second, third = gap_figure(comparison).axes
    for axes in (first, second, third):
        assert any((np.asarray(line.get_ydata()) == 0.15).all() for line in axes.lines)
        assert axes.get_ylim() == first.get_ylim()
        assert "promise\n0.15" in texts(axes)
    assert len(second.lines) == 1 + 2 + 1
    bold = max(second.lines, key=lambda line: line.get_linewidth())
    assert max(bold.get_ydata()) == 0.3
    assert "above in 1 of 2 runs, 50% of rounds" in texts(second)
    assert "never above, worst 0.120 (2 runs)" in texts(first)


def test_steps_have_the_gap_of_every_round():
    x, y = _steps(record(0, [0.1, 0.3], [100, 1000]), 10.0)
    assert x.tolist() == [10, 100, 100, 1000]
    assert y.tolist() == [0.1, 0.1, 0.3, 0.3]


def test_one_learner_and_one_run(comparison):
    from dataclasses import replace

    one = replace(comparison, learners=(LearnerRuns("a", {}, comparison.learners[0].runs[:1]),), seeds=(0,))
    assert len(regret_and_gap_figure(one).axes) == 2
    short = replace(one, rounds=1, learners=(LearnerRuns("a", {}, (record(0, [0.0], [1]),)),))
    assert regret_figure(short).axes


def test_tradeoff_tells_the_slopes():
    powers = np.array([[t**-0.25 for t in (100, 1000)]])
    axes = tradeoff_figure(Tradeoff((0.25,), (100, 1000), (0,), 0.0, powers, 1 / powers**2, powers)).axes
    assert [a.get_legend().get_texts()[0].get_text() for a in axes] == [
        "\u03b1 = 0.25: slope \u22120.25 (theory \u22120.25)", "\u03b1 = 0.25: slope +0.50 (theory +0.50)"
    ]  # fmt: skip


def test_the_same_figure_is_the_same_file(comparison, tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(gap_figure(comparison), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_labels_move_apart_and_stay_in_the_frame():
    placed = _apart(np.array([0.0, 0.01, 0.02, 0.98, 1.0]), 0.07)
    assert (np.diff(placed) >= 0.0699).all()
    assert placed[0] >= 0
    assert placed[-1] <= 1
    assert _apart(np.array([0.2, 0.9]), 0.07).tolist() == [0.2, 0.9]
    assert len(_apart(np.zeros(0), 0.07)) == 0


def test_short_numbers():
    assert short_number(-1500) == "\u22121.5k"
    assert short_number(0.05) == "0.05"
