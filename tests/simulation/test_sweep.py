"""A sweep gives the same records wherever and however often it was started, and computes nothing
twice.
"""

import json
import os
import random
import signal

import numpy as np
import pytest

from evenhand.environments import lending
from evenhand.errors import InvalidInput
from evenhand.fairness import FalsePositiveRate
from evenhand.learners import AcceptAll, FairOnGathered
from evenhand.simulation import sweep as sweeping
from evenhand.simulation.sweep import Journal, OptimumTask, RunTask, do_task, sweep
from evenhand.words import Prices

RATE = FalsePositiveRate()
LIMIT = 0.1
KILLED_SWEEPS = 20


def tasks(seeds=3, rounds=600):
    """Runs of two learners on a population that is made where they run."""
    world = lending()
    learners = {
        "fair": FairOnGathered(world.hypotheses, RATE, LIMIT),
        "all": AcceptAll(),
    }
    return [
        RunTask(learner, lending, rounds, seed, LIMIT, LIMIT, key=f"{name} {seed}")
        for name, learner in learners.items()
        for seed in range(seeds)
    ]


def figures(records):
    """The records as JSON, without their times, which are no result."""
    documents = [record.to_json() for record in records]
    for document in documents:
        del document["seconds"]
    return documents


@pytest.fixture(scope="module")
def undisturbed():
    """The records of a sweep without a journal, in this process."""
    return figures(sweep(tasks()))


def test_the_population_may_be_made_where_the_run_is_made(undisturbed):
    world = lending()
    task = tasks()[0]
    here = RunTask(task.learner, world, 600, 0, LIMIT, LIMIT)
    assert figures(sweep([here])) == undisturbed[:1]


def test_nothing_to_do():
    assert sweep([]) == ()


def test_processes_change_nothing(undisturbed):
    assert figures(sweep(tasks(), 2)) == undisturbed


def test_all_cores_may_be_asked_for(undisturbed):
    assert figures(sweep(tasks(), -1)) == undisturbed


def test_no_processes_at_all():
    with pytest.raises(InvalidInput, match="process"):
        sweep(tasks(), 0)


def test_a_second_start_computes_nothing(undisturbed, tmp_path, monkeypatch):
    with Journal(tmp_path / "journal.jsonl") as journal:
        first = sweep(tasks(), journal=journal)
    monkeypatch.setattr(sweeping, "do_task", lambda task: pytest.fail("computed twice"))
    with Journal(tmp_path / "journal.jsonl") as journal:
        again = sweep(tasks(), journal=journal)
    assert figures(again) == figures(first) == undisturbed
    assert [run.seconds for run in again] == [run.seconds for run in first]


def test_progress_counts_what_the_journal_holds(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        sweep(tasks()[:2], journal=journal)
        counted = []
        sweep(tasks(), journal=journal, progress=counted.append)
    assert counted == [3, 4, 5, 6]


def test_an_optimum_comes_back_from_the_journal(tmp_path):
    task = OptimumTask(lending, LIMIT, (RATE,), Prices(), key="the optimum")
    with Journal(tmp_path / "journal.jsonl") as journal:
        (first,) = sweep([task], journal=journal)
    with Journal(tmp_path / "journal.jsonl") as journal:
        (again,) = sweep([task], journal=journal)
    loss, policy = lending().optimum(LIMIT, RATE)
    assert first.loss == again.loss == loss
    assert first.policy == again.policy == policy


# killed sweeps


def test_killed_twenty_times_the_records_are_the_same(tmp_path):
    """Each sweep is a process of its own that is killed at its first or second task: when the task
    begins, when its line is in the journal, or when a part of the line is. No sweep starts a task
    that the journal held.
    """
    chance = random.Random(4)
    asked = tasks(seeds=32, rounds=2_000)
    path = tmp_path / "journal.jsonl"
    for number in range(KILLED_SWEEPS):
        known = _known(path)
        begun = tmp_path / f"begun.{number}"
        last = chance.choice((1, 2))
        missing = chance.choice((None, 0, 1, 40))
        child = os.fork()
        if child == 0:
            _sweep_until_killed(asked, path, begun, last, missing)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not known & set(begun.read_text().splitlines())
    assert 0 < len(_known(path)) < len(asked), "the kills should have come in the middle"
    with Journal(path) as journal:
        survivor = sweep(asked, journal=journal)
    assert figures(survivor) == figures(sweep(asked))


def _sweep_until_killed(asked, path, begun, last, missing):
    """The child: writes which tasks it begins, and never returns to pytest. It dies at its task
    number `last`: at once if `missing` is None, otherwise with the line of that task in the journal
    but for its `missing` last bytes.
    """
    number = 0
    add = Journal.add

    def begin(numbered):
        nonlocal number
        number += 1
        with begun.open("a") as file:
            file.write(numbered[1].key + "\n")
        if number == last and missing is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return do_task(numbered)

    def write(journal, *entry):
        add(journal, *entry)
        if number == last:
            os.truncate(journal.path, journal.path.stat().st_size - missing)
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sweeping.do_task = begin
        Journal.add = write
        with Journal(path) as journal:
            sweep(asked, journal=journal)
    finally:
        os._exit(0)


def _known(path):
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {json.loads(line)["key"] for line in lines}


def test_a_half_written_line_is_dropped(undisturbed, tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        sweep(tasks(), journal=journal)
    path.write_bytes(path.read_bytes()[:-40])
    with Journal(path) as journal:
        assert len(journal.results) == 5
        assert figures(sweep(tasks(), journal=journal)) == undisturbed
    assert len(path.read_text().splitlines()) == 6


def test_a_changed_journal_is_an_error(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"key": 1}\n')
    with (
        pytest.raises(InvalidInput, match="line 1"),
        Journal(tmp_path / "journal.jsonl"),
    ):
        pass


def test_two_writers_are_an_error(tmp_path):
    with (
        Journal(tmp_path / "journal.jsonl"),
        pytest.raises(InvalidInput, match="process"),
        Journal(tmp_path / "journal.jsonl"),
    ):
        pass


def test_regret_is_measured_against_the_optimum_that_is_given():
    task = tasks()[0]
    (run,) = sweep([RunTask(task.learner, lending, 600, 0, LIMIT, LIMIT, optimum=0.2)])
    assert run.optimum == 0.2
    assert run.regret[-1] == pytest.approx(600 * (run.cost - 0.2))
    assert np.isfinite(run.regret).all()
