"""Columns that tell the group or the outcome are found, others are not."""

from dataclasses import replace

import numpy as np

from evenhand.tables import Table, misleading
from evenhand.tables.misleading import TELLS_GROUP, share_told


def table(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    label = rng.choice([-1, 1], n)
    made = {name: make(rng, group, label) for name, make in columns.items()}
    return Table("toy", np.column_stack(list(made.values())), tuple(made), group, label)


def test_a_column_that_tells_the_group():
    found = misleading(
        table(
            race_a=lambda rng, group, label: (group == "a") * 1.0,
            noise=lambda rng, group, label: rng.normal(size=len(group)),
            hint=lambda rng, group, label: rng.normal(size=len(group)) + 0.3 * (group == "b"),
        ),
        "race",
    )
    assert [one.name for one in found] == ["race_a"]
    assert 0.5 < found[0].share < 0.7  # of log 3 it tells what a third of the people is
    assert "--leave-out race_a" in found[0].text


def test_a_column_that_tells_the_outcome():
    (one,) = misleading(
        table(late=lambda rng, group, label: label + rng.normal(0, 0.01, len(label)))
    )
    assert one.kind == "tells the outcome"


def test_a_handful():
    one = table(x=lambda rng, group, label: rng.normal(size=len(group)))
    group = one.group.copy()
    group[:3] = "d"
    found = misleading(Table("toy", one.features, one.names, group, one.label))
    assert [(w.kind, w.name) for w in found] == [("a handful", "d")]
    assert "3 people" in found[0].text
    assert "--groups" in found[0].text


def test_noise_is_not_said_to_tell():
    """200 columns of noise on 300 people; without the correction the share is biased upwards."""
    rng = np.random.default_rng(5)
    group = rng.choice(["a", "b"], 300)
    shares = [share_told(rng.normal(size=300), group) for _ in range(200)]
    assert max(shares) < TELLS_GROUP / 2
    assert np.mean(shares) < 0.02


def test_constant_columns_and_one_group():
    assert share_told(np.ones(50), np.array(["a", "b"] * 25)) == 0.0
    assert share_told(np.arange(50.0), np.array(["a"] * 50)) == 0.0


def test_the_way_out_names_the_column_of_the_file():
    made = table(proxy=lambda rng, group, label: (group == "a") * 1.0)
    encoded = replace(made, names=("area=North",), encoded={"area": ("area=North",)})
    (found,) = misleading(encoded)
    assert found.text.endswith("--leave-out area")
