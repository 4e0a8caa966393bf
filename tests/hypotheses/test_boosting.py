"""Boosted trees as classes, on one machine and on a Dask cluster of two workers."""

import sys

import numpy as np
import pytest
from tests.tools import need

from evenhand import CostSensitiveProblem, FalsePositiveRate, LabelledSample, solve_fair
from evenhand.errors import InvalidInput
from evenhand.hypotheses.boosting import DaskBoosting, lightgbm_class
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL


@pytest.fixture
def people():
    need("libgomp")
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2_000, 4))
    label = np.where(features[:, 0] * features[:, 1] > 0, 1, -1)
    return features, rng.choice(["a", "b"], 2_000), label


def error(rule, features, label):
    return float((rule.accepts(features) != (label == 1)).mean())


def test_lightgbm_finds_what_no_linear_rule_can(people):
    features, _, label = people
    oracle = lightgbm_class().bind(features, None)
    rule = oracle.best(-label.astype(float))
    assert error(rule, features, label) < 0.1
    again = oracle.best(-3.0 * label.astype(float))
    np.testing.assert_array_equal(rule.accepts(features), again.accepts(features))


def test_dask_trains_the_same_kind_of_rule_on_two_workers(people):
    distributed = pytest.importorskip("distributed")
    features, group, label = people
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**two) as cluster, distributed.Client(cluster) as client:
        boosting = DaskBoosting(client, partitions=4, settings={"n_estimators": 20})
        oracle = boosting.bind(features, None)
        rule = oracle.best(-label.astype(float))
        assert error(rule, features, label) < 0.15
        assert oracle.best(np.ones(2_000)) is REJECT_ALL
        assert oracle.best(-np.ones(2_000)) is ACCEPT_ALL
        problem = CostSensitiveProblem(
            features, group, (label == 1).astype(float), (label == -1).astype(float)
        )
        sample = LabelledSample(features, group, label)
        fair = solve_fair(problem, boosting, [FalsePositiveRate()], sample, 0.05, max_calls=3)
        assert np.abs(fair.gaps).max() <= 0.05 + 1e-9
        assert fair.cost / 2_000 < 0.2
    assert boosting.params["partitions"] == 4


def test_a_lightgbm_that_cannot_be_loaded_names_the_library(tmp_path, monkeypatch):
    """What a machine without OpenMP says."""
    (tmp_path / "lightgbm.py").write_text("raise OSError('libgomp.so.1: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lightgbm", raising=False)
    with pytest.raises(InvalidInput, match=r"libgomp\.so\.1") as refused:
        lightgbm_class().bind(np.zeros((4, 1)), None).best(np.array([1.0, -1.0, 1.0, -1.0]))
    assert "libgomp1" in refused.value.hint


def test_no_partitions_are_refused():
    with pytest.raises(InvalidInput, match="partitions"):
        DaskBoosting(None, 0)
