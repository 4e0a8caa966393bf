"""None, NaN, pandas.NA and every table's own way to say "missing" mean one thing: the group is
unknown. Nobody is lost by it.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.play import WORLD, certified

from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog

WAYS = {
    "None": list,
    "NaN": lambda group: [float("nan") if g is None else g for g in group],
    "NaN as an object": lambda group: np.array(
        [np.nan if g is None else g for g in group], dtype=object
    ),
    "pandas.NA": lambda group: [pd.NA if g is None else g for g in group],
    "pandas: objects": lambda group: pd.Series(group, dtype=object),
    "pandas: category": lambda group: pd.Series(group, dtype="category"),
    "pandas: string": lambda group: pd.Series(group, dtype="string"),
    "pandas: Arrow": lambda group: pd.Series(group, dtype="string[pyarrow]"),
    "polars": pl.Series,
    "polars: category": lambda group: pl.Series(group, dtype=pl.Categorical),
    "all kinds": lambda group: [
        [None, float("nan"), pd.NA, np.float32("nan")][i % 4] if g is None else g
        for i, g in enumerate(group)
    ],
}


def people(rows, seed, *, unknown=7):
    """A sample, and the groups of which every seventh is unknown."""
    sample = WORLD.draw(rows, np.random.default_rng(seed))
    return sample, [None if i % unknown == 0 else g for i, g in enumerate(sample.group.tolist())]


def played(way, blocks=6):
    told = certified()
    for seed in range(blocks):
        sample, group = people(200, seed)
        decisions = told.decide(sample.features, way(group))
        accepted = np.flatnonzero(decisions.accept)
        told.observe(
            decisions.first_round + accepted,
            sample.label[accepted],
            group=way([group[i] for i in accepted]),
        )
        told.report_group(
            decisions.round[:20], way([None if i % 3 == 0 else sample.group[i] for i in range(20)])
        )
    sample = WORLD.draw(50, np.random.default_rng(99))
    told.decide(sample.features, sample.group)  # a clean call, at which earlier people were lost
    told.open_epoch()
    return told


@pytest.fixture(scope="module")
def plainly():
    return played(WAYS["None"])


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_of_saying_unknown_lead_to_the_same_run(way, plainly):
    told = played(WAYS[way])
    assert told.report == plainly.report
    assert told.certificate.to_json() == plainly.certificate.to_json()
    mine, theirs = (one.rounds.groups_of(slice(None)).tolist() for one in (told, plainly))
    assert list(map(str, mine)) == list(map(str, theirs))


def test_all_applicants_count_whether_the_group_is_known_or_not(plainly):
    closed = plainly.state.closed_to
    assert closed >= 800
    assert plainly.state.evidence.people == closed
    assert plainly.certificate.unknown_group > 50


def test_nobody_s_group_is_known():
    told = certified()
    for seed in range(3):
        sample = WORLD.draw(200, np.random.default_rng(seed))
        decisions = told.decide(sample.features, [float("nan")] * 200)
        told.observe(decisions.round, sample.label)
    told.open_epoch()
    assert told.state.evidence.people > 0
    assert told.learned_weight == 0


@pytest.mark.parametrize("way", WAYS)
def test_where_the_group_decides_it_must_be_known(way):
    told = certified(group_use="decide")
    with pytest.raises(InvalidInput):
        told.decide(WORLD.features[:3], WAYS[way](["a", None, "b"]))
    assert told.round == 0


@pytest.mark.parametrize("unknown", [None, float("nan"), pd.NA])
def test_one_person_at_a_time(unknown):
    told = certified()
    decision = told.decide(WORLD.features[:1], [unknown])[0]
    told.observe(decision.round, 1, group=unknown)
    told.report_group(decision.round, unknown)
    assert told.rounds.groups_of(slice(None)).tolist() == [None]
    told.report_group(decision.round, "a")
    assert told.rounds.groups_of(slice(None)).tolist() == ["a"]


def test_a_history_from_before_may_have_unknown_groups():
    told, other = certified(), certified()
    rows, one = np.arange(6.0)[:, None], np.ones(6)
    for way, taken in ((float("nan"), told), (None, other)):
        group = np.array(["a", "a", way, "b", "b", way], dtype=object)
        taken.warm_start(RoundLog(rows, group, one, 0 * one, 20 * one, 20 * one), audited=True)
        taken.decide(WORLD.features[np.zeros(101, int)], ["a"] * 101)
    assert told.report == other.report
    assert told.state.evidence.counts == {(g, y): 40.0 for g in "ab" for y in (1, -1)}
    deciding = certified(group_use="decide")
    with pytest.raises(InvalidInput):
        deciding.warm_start(RoundLog(rows, group, one, 0 * one, 20 * one, 20 * one), audited=True)
