"""A study gives the same table wherever and however often it was started, and computes nothing
twice. Tasks have keys that never change, and nonsense is refused before anything runs.
"""

import json
import os
import random
import signal
from importlib import import_module

import numpy as np
import pytest
from tests.without_clocks import PATIENCE

from evenhand.errors import InvalidInput
from evenhand.simulate.study import (
    Dask,
    Journal,
    Local,
    OptimumTask,
    Question,
    RunTask,
    Source,
    StudyPlan,
    play,
    source_of,
    study,
    unfinished,
    write_parquet,
)

MODULE = import_module("evenhand.simulate.study")


def small(**changes):
    told = {
        "learners": ("fair-on-gathered", "accept-all"),
        "seeds": 3,
        "rounds": 600,
        "kind": "stumps",
        **changes,
    }
    return StudyPlan((source_of("lending"),), **told)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The rows of an undisturbed study."""
    return study(small(), tmp_path_factory.mktemp("undisturbed"))


def test_rows_are_in_the_order_of_the_plan_and_say_what_was_measured(undisturbed):
    named = [(row["learner"], row["seed"]) for row in undisturbed.rows]
    assert named == [
        (learner, seed) for learner in ("fair-on-gathered", "accept-all") for seed in range(3)
    ]
    cell = undisturbed.of("lending", 0.05, "accept-all")
    assert cell.mean("regret_over_constant") == pytest.approx(1.0)
    assert cell.worst_gap == pytest.approx(0.0, abs=1e-12)
    assert cell.promised
    assert cell.mean("audit_share") == 1.0
    greedy = undisturbed.of("lending", 0.05, "fair-on-gathered")
    assert not greedy.promised
    row = greedy.rows[0]
    assert row["regret"] == pytest.approx(600 * (row["error"] - row["optimum"]))
    assert row["constant"] == pytest.approx(0.4275)
    assert row["curve_rounds"][-1] == 600


def test_the_paper_s_algorithm_takes_part_where_its_bound_holds(tmp_path):
    (row,) = study(small(learners=("two-phase",), seeds=1), tmp_path).rows
    assert row["promised"]
    assert row["worst_gap"] <= 0.05


def test_processes_change_nothing(undisturbed, tmp_path):
    assert study(small(), tmp_path, Local(2)).rows == undisturbed.rows


def test_a_second_start_computes_nothing(undisturbed, tmp_path, monkeypatch):
    first = study(small(), tmp_path)
    monkeypatch.setattr(MODULE, "play", lambda task: pytest.fail("computed twice"))
    assert study(small(), tmp_path).rows == first.rows == undisturbed.rows
    assert not unfinished(small(), tmp_path)


def test_a_larger_study_takes_over_what_is_there(undisturbed, tmp_path, monkeypatch):
    study(small(), tmp_path)
    asked = []
    monkeypatch.setattr(MODULE, "play", lambda task: asked.append(task) or play(task))
    more = study(small(seeds=4), tmp_path)
    assert sorted({task.seed for task in asked}) == [3]
    assert (
        more.of("lending", 0.05, "accept-all").rows[:3]
        == undisturbed.of("lending", 0.05, "accept-all").rows
    )


def test_killed_twenty_times_the_table_is_the_same(undisturbed, tmp_path):
    """Each life is a process of its own that is killed at its first or second task: when it begins,
    when its line is in the journal, or when a part of the line is. No life starts a task that the
    journal held."""
    chance, plan = random.Random(4), small(seeds=32, rounds=2_000)
    for life in range(20):
        known, begun = _known(tmp_path), tmp_path / f"begun.{life}"
        last, missing = chance.choice((1, 2)), chance.choice((None, 0, 1, 40))
        child = os.fork()
        if child == 0:
            _live(plan, tmp_path, begun, last, missing)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not known & set(begun.read_text().split())
    assert 0 < len(_known(tmp_path)) < 1 + 2 * 32, "the kills should have come in the middle"
    survivor = study(plan, tmp_path)
    clean = study(plan, tmp_path / "clean")
    assert survivor.rows == clean.rows
    write_parquet(survivor, tmp_path / "a.parquet")
    write_parquet(clean, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def _live(plan, folder, begun, last, missing):
    """The child: says which tasks it begins, and never returns to pytest. It dies at its task
    number `last`: at once if `missing` is None, otherwise with the line of that task in the journal
    but for its `missing` last bytes."""
    number, add = 0, Journal.add

    def begin(task):
        nonlocal number
        number += 1
        with begun.open("a") as told:
            told.write(task.key + "\n")
        if number == last and missing is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return play(task)

    def write(journal, *entry):
        add(journal, *entry)
        if number == last:
            os.truncate(journal.path, journal.path.stat().st_size - missing)
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        MODULE.play, Journal.add = begin, write
        study(plan, folder)
    finally:
        os._exit(0)


def _known(folder):
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {json.loads(line)["key"] for line in lines}


def test_a_half_written_line_is_dropped(undisturbed, tmp_path):
    study(small(), tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    again = study(small(), tmp_path)
    assert again.rows == undisturbed.rows
    assert len(path.read_text().splitlines()) == 7


def test_a_changed_journal_is_refused(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"key": 1}\n')
    with pytest.raises(InvalidInput, match=r"line 1 of .* is no entry"):
        study(small(), tmp_path)


def test_two_writers_are_refused(tmp_path):
    with (
        Journal(tmp_path / "journal.jsonl"),
        pytest.raises(InvalidInput, match="another process is writing"),
    ):
        study(small(), tmp_path)


def test_the_optimum_is_solved_once(undisturbed, tmp_path):
    study(small(), tmp_path)
    entries = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    optima = [entry for entry in entries if "policy" in entry["row"]]
    assert [entry["key"] for entry in optima] == [OptimumTask(small().questions[0]).key]


def test_the_table_is_parquet_without_times(undisturbed, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    write_parquet(undisturbed, tmp_path / "results.parquet")
    table = pyarrow.read_table(tmp_path / "results.parquet")
    assert table.num_rows == 6
    assert "seconds" not in table.column_names
    np.testing.assert_allclose(
        table["error"].to_pylist(), [row["error"] for row in undisturbed.rows]
    )


# Dask


def test_dask_gives_the_same_rows(undisturbed, tmp_path):
    pytest.importorskip("distributed")
    assert study(small(), tmp_path, Dask("local", 2, PATIENCE)).rows == undisturbed.rows


def test_a_killed_worker_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    plan, team, killed = small(seeds=16, rounds=3_000), Dask("local", 2, PATIENCE), []

    def kill_one(done, total):
        if not killed and done > 3:
            killed.append(next(iter(team.client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    disturbed = study(plan, tmp_path / "dask", team, kill_one)
    assert killed
    assert disturbed.rows == study(plan, tmp_path / "local").rows
    keys = [
        json.loads(line)["key"]
        for line in (tmp_path / "dask" / "journal.jsonl").read_text().splitlines()
    ]
    assert len(keys) == len(set(keys)) == 1 + 2 * 16


def test_a_scheduler_that_is_not_there(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(
        InvalidInput, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9.*dask scheduler"
    ):
        study(small(), tmp_path, Dask("tcp://127.0.0.1:9", timeout=1.0))


def test_no_processes_at_all():
    with pytest.raises(InvalidInput, match="at least one process"):
        Local(0)


# what is played


def test_keys_are_those_of_older_journals():
    """Journals hold these keys; with other keys everything would be computed again."""
    question = Question(Source("loans", digest="0123456789abcdef"), 0.05)
    assert OptimumTask(question).key == "33f94aa873921731da967336"
    assert RunTask(question, "certified", 3, 1000, 0.05).key == "66138526e9aa14edd3cd94b5"


def test_a_changed_table_is_another_one(tmp_path):
    from evenhand.tables import Description

    lines = [f"{i},{'ab'[i % 2]},{(i // 2) % 2}" for i in range(80)]
    path = tmp_path / "t.csv"
    path.write_text("x,g,y\n" + "\n".join(lines) + "\n")
    told = Description(path, "y", "g")
    first = source_of("t.csv", told)
    path.write_text("x,g,y\n" + "\n".join(["99,a,0", *lines[1:]]) + "\n")
    assert source_of("t.csv", told).digest != first.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ("oracle",)}, "no learner 'oracle'"),
        ({"learners": ()}, "at least one table"),
        ({"limits": (0.0,)}, "limit 0.0"),
        ({"rate": "tpr"}, "no rate 'tpr'"),
        ({"kind": "forest"}, "no class 'forest'"),
        (
            {"learners": ("two-phase",), "kind": "linear"},
            "'two-phase' cannot play 'linear'.*--class stumps",
        ),
    ],
)
def test_nonsense_is_refused_before_anything_runs(changes, message):
    with pytest.raises(InvalidInput, match=message):
        small(**changes)
