"""Boosted trees as a class."""

import sys

import numpy as np
import pytest
from tests.tools import need

from evenhand.errors import InvalidInput
from evenhand.hypotheses.boosting import lightgbm_class


@pytest.fixture
def people():
    need("libgomp")
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2_000, 4))
    label = np.where(features[:, 0] * features[:, 1] > 0, 1, -1)
    return features, label


def error(rule, features, label):
    return float((rule.accepts(features) != (label == 1)).mean())


def test_lightgbm_finds_what_no_linear_rule_can(people):
    features, label = people
    oracle = lightgbm_class().bind(features, None)
    rule = oracle.best(-label.astype(float))
    assert error(rule, features, label) < 0.1
    again = oracle.best(-3.0 * label.astype(float))
    np.testing.assert_array_equal(rule.accepts(features), again.accepts(features))


def test_a_lightgbm_that_cannot_be_loaded_names_the_library(tmp_path, monkeypatch):
    """What a machine without OpenMP says."""
    (tmp_path / "lightgbm.py").write_text("raise OSError('libgomp.so.1: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lightgbm", raising=False)
    with pytest.raises(InvalidInput, match=r"libgomp\.so\.1") as refused:
        lightgbm_class().bind(np.zeros((4, 1)), None).best(np.array([1.0, -1.0, 1.0, -1.0]))
    assert "libgomp1" in refused.value.hint
