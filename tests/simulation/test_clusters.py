"""Whatever backend of joblib does the work, the records are the same: two real workers of Dask, and
a backend that returns a whole call at once, as those of Ray and Spark do.
"""

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier
from tests.simulation.test_sweep import LIMIT, RATE, figures, tasks
from tests.tools import need

import evenhand as eh
from evenhand.cli import main
from evenhand.environments import lending
from evenhand.hypotheses.boosting import lightgbm_class
from evenhand.learners import FairOnGathered
from evenhand.simulation import sweep as sweeping
from evenhand.simulation.sweep import Journal, RunTask, sweep

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "clusters.md"


pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def two_workers():
    """The client of a cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**two) as cluster, distributed.Client(cluster) as client:
        yield client


def where(numbered):
    """Where a task was done, in the place of its result."""
    number, _ = numbered
    return number, os.getpid()


def finished(client):
    """How many tasks the workers have finished."""
    counted = client.run(lambda dask_worker: dask_worker.state.executed_count)
    return sum(counted.values())


def test_two_workers_of_dask_give_the_same_records(two_workers, monkeypatch):
    with parallel_config(backend="dask"):
        assert figures(sweep(tasks(), -1)) == figures(sweep(tasks()))
        monkeypatch.setattr(sweeping, "do_task", where)
        processes = set(sweep(tasks(seeds=8), -1))
    assert processes <= set(two_workers.run(os.getpid).values())


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(two_workers, tmp_path):
    asked = tasks(seeds=16, rounds=3_000)
    killed = []

    def kill_one(done):
        if not killed and done > 3:
            killed.append(next(iter(two_workers.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    path = tmp_path / "journal.jsonl"
    with parallel_config(backend="dask"), Journal(path) as journal:
        disturbed = sweep(asked, -1, journal, kill_one)
    assert killed
    assert figures(disturbed) == figures(sweep(asked))
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert sorted(keys) == sorted(task.key for task in asked)


def test_learners_with_boosted_trees_run_on_the_workers(two_workers):
    """Boosting itself needs nothing of a cluster: each run fits its trees where it is made."""
    need("libgomp")
    pytest.importorskip("lightgbm")
    learner = FairOnGathered(lightgbm_class(n_estimators=5), RATE, LIMIT)
    asked = [RunTask(learner, lending, 300, seed, LIMIT, LIMIT) for seed in range(2)]
    with parallel_config(backend="dask"):
        assert figures(sweep(asked, -1)) == figures(sweep(asked))


def test_a_forest_is_fitted_by_the_workers(two_workers):
    rng = np.random.default_rng(0)
    features, group = rng.normal(size=(400, 2)), rng.choice(["a", "b"], 400)
    label = np.where(features[:, 0] * features[:, 1] > 0, 1, -1)
    sample = eh.LabelledSample(features, group, label)
    problem = eh.CostSensitiveProblem(features, group, 1.0 * (label == 1), 1.0 * (label == -1))
    forest = eh.Estimator(RandomForestClassifier(10, n_jobs=-1, random_state=0, max_depth=3))
    alone = eh.solve_fair(problem, forest, RATE, sample, LIMIT, max_calls=3)
    before = finished(two_workers)
    with parallel_config(backend="dask"):
        shared = eh.solve_fair(problem, forest, RATE, sample, LIMIT, max_calls=3)
    assert finished(two_workers) >= before + 10  # trees
    assert shared.cost == alone.cost
    assert shared.gaps.tolist() == alone.gaps.tolist()


def test_a_backend_that_returns_a_whole_call_at_once(tmp_path, monkeypatch):
    """Its results come in blocks, and each block is in the journal before the next one begins."""
    sizes = []

    class Written(Journal):
        def add(self, key, result):
            super().add(key, result)
            sizes.append(len(self.results))

    monkeypatch.setattr(sweeping, "TASKS_PER_WORKER", 1)
    with parallel_config(backend="multiprocessing"), Written(tmp_path / "j.jsonl") as journal:
        found = sweep(tasks(), 2, journal)
    assert figures(found) == figures(sweep(tasks()))
    assert sizes == [1, 2, 3, 4, 5, 6]


def test_the_page_on_clusters_runs(two_workers, tmp_path, monkeypatch, capsys):
    """Its first block as it stands, but for the address; the command then computes nothing."""
    address = two_workers.scheduler.address
    block = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    exec(block.replace("tcp://scheduler:8786", address), {"__name__": "__main__"})
    assert len(re.findall(r"cost 0\.\d{3}, largest gap", capsys.readouterr().out)) == 2
    journal = tmp_path / "lending-study" / "journal.jsonl"
    before = journal.read_bytes()
    (command,) = re.findall(r"^    evenhand (study .*)$", PAGE.read_text(), flags=re.MULTILINE)
    monkeypatch.setattr(sweeping, "do_task", lambda task: pytest.fail("computed twice"))
    assert CliRunner().invoke(main, command.split(), catch_exceptions=False).exit_code == 0
    assert journal.read_bytes() == before
