"""The population that the rivals learn on."""

import numpy as np
import pytest

from evenhand import LabelledSample, Linear
from evenhand.environments import Replay


@pytest.fixture(scope="module")
def world():
    """600 people with three columns; the group moves a column that tells nothing about the
    outcome's cause.
    """
    rng = np.random.default_rng(5)
    group = rng.choice(["a", "b"], 600)
    quality = rng.normal(size=600)
    features = np.c_[
        quality + 0.8 * rng.normal(size=600) + 0.6 * (group == "a"), rng.normal(size=(600, 2))
    ]
    label = np.where(quality + 0.5 * rng.normal(size=600) > 0, 1, -1)
    return Replay(LabelledSample(features, group, label), hypotheses=Linear())
