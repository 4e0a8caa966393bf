"""A study is one sweep over tables: its rows say what was measured, its keys name what they follow
from, and wrong plans are errors before anything runs.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.simulation import sweep as sweeping
from evenhand.simulation.study import Source, StudyPlan, source_of, study, write_parquet
from evenhand.simulation.sweep import Optimum, do_task


def small(**changes):
    settings = {
        "learners": ("fair-on-gathered", "accept-all"),
        "seeds": 3,
        "rounds": 600,
        "kind": "stumps",
        **changes,
    }
    return StudyPlan((source_of("lending"),), **settings)


def rows(plan: StudyPlan, folder: Path, *arguments) -> list:
    return list(study(plan, folder, *arguments).rows())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The results of an undisturbed study."""
    return study(small(), tmp_path_factory.mktemp("undisturbed"))


def test_rows_are_in_the_order_of_the_plan_and_say_what_was_measured(undisturbed):
    found = list(undisturbed.rows())
    named = [(row["learner"], row["seed"]) for row in found]
    assert named == [
        (learner, seed) for learner in ("fair-on-gathered", "accept-all") for seed in range(3)
    ]
    row = found[0]
    assert row["regret"] == pytest.approx(600 * (row["cost"] - row["optimum"]))
    assert row["constant"] == pytest.approx(0.4275)
    assert row["curve_rounds"][-1] == 600


def test_one_comparison_for_each_table_and_limit(undisturbed):
    (compared,) = undisturbed.comparisons
    assert compared.environment["environment"] == "lending"
    assert compared.limit == 0.05
    greedy, constant = compared.summaries
    assert not greedy.guaranteed
    assert constant.guaranteed
    assert constant.regret_over_constant == pytest.approx(1.0)
    assert constant.worst_gap == pytest.approx(0.0, abs=1e-12)
    assert constant.audit_share == 1.0


def test_the_paper_s_algorithm_takes_part_where_its_bound_holds(tmp_path):
    (row,) = rows(small(learners=("two-phase",), seeds=1), tmp_path)
    assert row["guaranteed"]
    assert row["worst_gap"] <= 0.05


def test_processes_change_nothing(undisturbed, tmp_path):
    assert rows(small(), tmp_path, 2) == list(undisturbed.rows())


def test_a_larger_study_takes_over_what_is_there(undisturbed, tmp_path, monkeypatch):
    study(small(), tmp_path)
    asked = []
    monkeypatch.setattr(
        sweeping, "do_task", lambda numbered: asked.append(numbered[1]) or do_task(numbered)
    )
    more = rows(small(seeds=4), tmp_path)
    assert [task.seed for task in asked] == [3, 3]
    assert [row for row in more if row["seed"] < 3] == list(undisturbed.rows())


def test_progress_counts_to_the_size_of_the_plan(tmp_path):
    counted = []
    study(small(), tmp_path, progress=counted.append)
    assert counted == list(range(1, small().size + 1))
    again = []
    study(small(seeds=4), tmp_path, progress=again.append)
    assert again == [8, 9]


def test_the_optimum_is_solved_once(tmp_path):
    study(small(), tmp_path)
    entries = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    optima = [entry["key"] for entry in entries if "policy" in entry["result"]]
    assert optima == [task.key for task in small().optima()]


def test_the_table_is_parquet_without_times(undisturbed, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    write_parquet(undisturbed, tmp_path / "results.parquet")
    table = pyarrow.read_table(tmp_path / "results.parquet")
    assert table.num_rows == 6
    assert "seconds" not in table.column_names
    np.testing.assert_allclose(
        table["cost"].to_pylist(), [row["cost"] for row in undisturbed.rows()]
    )


def test_a_stopped_study_writes_the_same_table(undisturbed, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    study(small(seeds=1), tmp_path)
    write_parquet(study(small(), tmp_path), tmp_path / "a.parquet")
    write_parquet(undisturbed, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


# the plan


def test_keys_do_not_change():
    """Journals hold these keys; with other keys everything would be computed again."""
    plan = StudyPlan((Source("loans", digest="0123456789abcdef"),), ("certified",), rounds=1000)
    assert [task.key for task in plan.optima()] == ["a0d7724d8c2e7440b4fa51c7"]
    assert plan.runs([Optimum(0.1, None)])[3].key == "74a5f2f16cfcf83039d5fb89"


def test_every_setting_is_in_the_key():
    """Would catch: a result that is taken for another one's."""
    plans = [
        small(),
        small(limits=(0.1,)),
        small(rounds=601),
        small(rates=("fnr",)),
        small(kind="thresholds"),
        small(delta=0.1),
        small(false_accept=2.0),
        small(false_reject=2.0),
        small(first_seed=3),
        small(learners=("uniform", "certified")),
    ]
    keys = [task.key for plan in plans for task in plan.runs([Optimum(0.1, None)])]
    assert len(set(keys)) == len(keys)


def test_a_changed_table_is_another_one(tmp_path):
    from evenhand.tables import Description

    lines = [f"{i},{'ab'[i % 2]},{(i // 2) % 2}" for i in range(80)]
    path = tmp_path / "t.csv"
    path.write_text("x,g,y\n" + "\n".join(lines) + "\n")
    described = Description(path, "y", "g")
    first = source_of("t.csv", described)
    path.write_text("x,g,y\n" + "\n".join(["99,a,0", *lines[1:]]) + "\n")
    assert source_of("t.csv", described).digest != first.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ("oracle",)}, "'oracle'"),
        ({"learners": ()}, "at least one"),
        ({"learners": ("uniform", "uniform")}, "'uniform'"),
        ({"limits": (0.0,)}, "limit is 0.0"),
        ({"rates": ("tprr",)}, "'tprr'"),
        ({"kind": "forest"}, "'forest'"),
        (
            {"learners": ("two-phase",), "kind": "linear"},
            "'two-phase'.*'linear'.*'stumps'",
        ),
    ],
)
def test_a_wrong_plan_is_an_error_before_anything_runs(changes, message):
    with pytest.raises(InvalidInput, match=message):
        small(**changes)


def test_a_plan_takes_the_names_of_the_field():
    plan = small(rates=("equalized_odds",), learners=("fair-on-gathered",))
    (learner,) = plan.made_learners(0.05).values()
    assert [rate.symbol for rate in learner.rates] == ["FPR", "FNR"]
    (task,) = plan.optima()
    assert task.rates == tuple(learner.rates)
