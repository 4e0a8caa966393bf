"""Every environment keeps the contract `Environment`."""

import json
import pickle

import numpy as np
import pytest

from evenhand import FalsePositiveRate
from evenhand.contracts import Environment
from evenhand.environments import (
    LowerBound,
    Replay,
    Scores,
    hard,
    lending,
    random_population,
    threshold_population,
)
from evenhand.hypotheses import ScoreThresholds
from evenhand.words import LabelledSample


def environments() -> list[Environment]:
    table = Scores().sample(300, np.random.default_rng(0))
    return [
        LowerBound(1, 0.05),
        LowerBound(2, 0.01),
        hard(1e5),
        lending(),
        random_population(0),
        threshold_population(),
        Scores(),
        Replay(table, hypotheses=ScoreThresholds()),
        Replay(table, hypotheses=ScoreThresholds(), streamed=True, seed=1),
    ]


@pytest.mark.parametrize("env", environments(), ids=repr)
def test_contract(env: Environment) -> None:
    fresh = env.fresh()
    sample = fresh.draw(50, np.random.default_rng(1))
    assert isinstance(sample, LabelledSample)
    assert len(sample) == 50
    assert np.array_equal(env.fresh().draw(50, np.random.default_rng(1)).features, sample.features)
    assert env.hypotheses is not None
    env.hypotheses.bind(sample.features, None)
    loss, policy = env.optimum(0.03)
    assert np.abs(env.gaps(policy, FalsePositiveRate())).max() <= 0.03 + 1e-9
    assert env.loss(policy) == pytest.approx(loss, abs=1e-9)
    assert loss <= env.optimum(0.0)[0] + 1e-12
    json.dumps(dict(env.params))
    assert pickle.loads(pickle.dumps(env)).loss(policy) == env.loss(policy)
