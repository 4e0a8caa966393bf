"""Every format gives back what was written, bit for bit; what others write is read; what cannot be
is named. Vowpal Wabbit itself learns from what is written here.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.worlds import logged, same

from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation import DecisionLog, from_obp, read_log, to_obp, write_log
from evenhand.evaluation.log_files import FORMATS

FILES = ("log.parquet", "log.csv", "log.jsonl", "log.npz", "log.dsjson", "log.vw")


@pytest.fixture
def log():
    """Everything that is awkward: open labels, unknown groups, odd names, blanks, ids with marks, p
    that 1 - (1 - p) does not give back.
    """
    found, _ = logged(300, 7, open_share=0.1)
    group = np.where(
        np.arange(300) % 11 == 0, None, np.where(found.group == "a", "north & south", "b:|'x")
    )
    ids = [f"k {i}/ä|:&=" for i in range(300)]
    p = found.acceptance.copy()
    p[~found.accept] = np.where(np.arange((~found.accept).sum()) % 2, 0.1, p[~found.accept])
    features = found.features.copy()
    features[0], features[1] = 0.0, 1e-300
    names = ("score", "debt ratio: all|x", "größe")
    return DecisionLog.of(features, found.accept, p, found.label, group=group, names=names, id=ids)


@pytest.mark.parametrize("name", FILES)
def test_round_trip(log, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    write_log(log, tmp_path / name)
    assert same(read_log(tmp_path / name), log)
    assert (
        len({1 - (1 - p) == p for p in log.acceptance}) == 2
    )  # the log does hold such propensities


@pytest.mark.parametrize("name", FILES)
def test_a_plain_log_round_trips_too(tmp_path, name):
    plain, _ = logged(50, 1)
    write_log(plain, tmp_path / name)
    assert same(read_log(tmp_path / name), plain)


@pytest.mark.parametrize("name", FILES)
def test_rounds_and_times_round_trip(tmp_path, name):
    plain, _ = logged(50, 1)
    rounds = np.arange(50.0) + 7
    rounds[4] = np.nan
    timed = replace(plain, round=rounds, time=1.7e9 + np.arange(50) / 3)
    write_log(timed, tmp_path / name)
    assert same(read_log(tmp_path / name), timed)


def test_times_are_numbers_or_iso_8601(tmp_path):
    path = tmp_path / "log.csv"
    head = "accept,acceptance,label,x,time\n"
    path.write_text(head + "1,0.5,1,3,2026-01-31T00:00:00Z\n0,0.2,,4,2026-01-31 01:00:00\n")
    found = read_log(path)
    assert np.diff(found.time).tolist() == [3600.0]
    assert found.names == ("x",)
    path.write_text(head + "1,0.5,1,3,17\n0,0.2,,4,\n")
    np.testing.assert_array_equal(read_log(path).time, [17.0, np.nan])
    path.write_text(head + "1,0.5,1,3,yesterday\n0,0.2,,4,today\n")
    with pytest.raises(InvalidInput, match="'yesterday'"):
        read_log(path)


def test_the_order_of_the_service_is_seq_and_at(tmp_path):
    """Beside columns that are marked as features; elsewhere a column `at` is a feature."""
    path = tmp_path / "log.csv"
    path.write_text("seq,at,accept,acceptance,label,feature_x\n4,9,1,0.5,1,3\n8,8,0,0.2,,4\n")
    found = read_log(path)
    assert (found.round.tolist(), found.time.tolist()) == ([4.0, 8.0], [9.0, 8.0])
    assert found.ids == ["4", "8"]
    with pytest.raises(InvalidInput, match="row 2"):
        found.require_order()
    path.write_text("at,accept,acceptance,label\n9,1,0.5,1\n8,0,0.2,\n")
    assert read_log(path).names == ("at",)


def test_stamps_of_events_are_times_unless_they_count_rows(tmp_path):
    path = tmp_path / "log.dsjson"
    write_log(logged(5, 1)[0], path)
    assert read_log(path).ordered_by == ()
    lines = path.read_text().splitlines()
    path.write_text("\n".join(reversed(lines)))
    with pytest.raises(InvalidInput, match="row 2"):
        read_log(path).require_order()
    path.write_text(lines[0].replace("1970-01-01T00:00:00.000Z", "noon"))
    with pytest.raises(InvalidInput, match="noon"):
        read_log(path)


def test_a_group_called_na_is_a_group(tmp_path):
    found, _ = logged(20, 1)
    region = DecisionLog.of(
        found.features,
        found.accept,
        found.acceptance,
        found.label,
        group=np.where(found.group == "a", "NA", " b"),
    )
    for name in FILES:
        if name == "log.csv":
            with pytest.raises(InvalidInput, match="CSV"):
                write_log(region, tmp_path / name)
            assert not (tmp_path / name).exists()
        else:
            write_log(region, tmp_path / name)
            assert same(read_log(tmp_path / name), region)


def test_counts_live_in_our_own_formats(tmp_path):
    found, _ = logged(20, 1)
    counted = DecisionLog.of(
        found.features,
        found.accept,
        found.acceptance,
        found.label,
        group=found.group,
        count=np.arange(1, 21),
    )
    for name in FILES[:3]:
        write_log(counted, tmp_path / name)
        assert same(read_log(tmp_path / name), counted)
    for name in FILES[3:]:
        with pytest.raises(InvalidInput, match="counts"):
            write_log(counted, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_obp_s_dict():
    log, _ = logged(100, 2, open_share=0.2)
    feedback = to_obp(log)
    assert feedback["n_rounds"] == 100
    assert feedback["n_actions"] == 2
    assert np.array_equal(
        feedback["pscore"], np.where(log.accept, log.acceptance, 1 - log.acceptance)
    )
    assert np.isnan(feedback["reward"][log.open]).all()
    assert (feedback["reward"][~log.accept] == 0).all()
    bare = {
        key: feedback[key]
        for key in ("n_rounds", "n_actions", "context", "action", "position", "reward", "pscore")
    }
    found = from_obp({**bare, "position": None})
    assert np.allclose(found.acceptance, log.acceptance, atol=1e-15)
    assert np.array_equal(found.label, log.label)
    assert found.names == ("x0", "x1", "x2")
    with pytest.raises(InvalidInput, match="propensities"):
        from_obp({key: value for key, value in bare.items() if key != "pscore"})
    with pytest.raises(MissingColumn, match="reward"):
        from_obp({**bare, "reward": None})
    with pytest.raises(InvalidInput, match="3 actions"):
        from_obp({**bare, "n_actions": 3})
    with pytest.raises(InvalidInput, match="positions"):
        from_obp({**bare, "position": np.ones(100)})
    with pytest.raises(BadLabel, match=r"0.7"):
        from_obp(
            {**bare, "reward": np.where(np.arange(100) == 3, 0.7, 1.0), "action": np.ones(100)}
        )
    with pytest.raises(InvalidInput):
        from_obp({**feedback, "acceptance": log.acceptance * 0.9})


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, context=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInput, match="pickle"):
        read_log(path)
    path.write_text("nonsense")
    with pytest.raises(InvalidInput, match=r"\.npz"):
        read_log(path)


def test_unknown_formats(tmp_path):
    log, _ = logged(5, 1)
    with pytest.raises(InvalidInput, match=r"'\.xyz'"):
        write_log(log, tmp_path / "log.xyz")
    with pytest.raises(InvalidInput, match="'nope'"):
        write_log(log, tmp_path / "log.csv", "nope")
    with pytest.raises(InvalidInput):
        read_log(tmp_path / "missing.csv")
    write_log(log, tmp_path / "log.txt", "jsonl")
    assert same(read_log(tmp_path / "log.txt", "jsonl"), log)
    assert set(FORMATS) == {"parquet", "csv", "excel", "jsonl", "obp", "dsjson", "vw"}


# Vowpal Wabbit

EVENT = {
    "a": [1, 2],
    "p": [0.4, 0.6],
    "c": {"user": {"age": 30, "city": "x"}, "vip": True, "_multi": [{}, {}]},
    "_label_cost": 1,
    "_label_probability": 0.4,
    "_label_Action": 1,
}


def events(tmp_path, *changes):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps({**EVENT, **change}) + "\n" for change in changes))
    return path


def test_events_of_others(tmp_path):
    reject = {
        "a": [2, 1],
        "p": [0.6, 0.4],
        "_label_Action": 2,
        "_label_cost": 0,
        "_label_probability": 0.6,
    }
    found = read_log(events(tmp_path, {}, reject, {"c": {"user": {"age": 31, "city": "y"}}}))
    assert found.names == ("user^age", "user^city=x", "vip", "user^city=y")
    assert found.features.tolist() == [[30, 1, 1, 0], [30, 1, 1, 0], [31, 0, 0, 1]]
    assert found.accept.tolist() == [True, False, True]
    assert found.acceptance.tolist() == [0.4, 0.4, 0.4]
    assert found.label.tolist() == [-1, 0, -1]
    by_city = read_log(events(tmp_path, {}, reject), columns={"group": "user^city"})
    assert by_city.group.tolist() == ["x", "x"]
    assert by_city.names == ("user^age", "vip")
    rewards = read_log(events(tmp_path, {"_label_cost": -1}, {"_label_cost": 0}), good="-1")
    assert rewards.label.tolist() == [1, -1]
    bare = read_log(events(tmp_path, {"p": None, "a": None}))
    assert bare.acceptance.tolist() == [0.4]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([{"p": None, "_label_probability": None}], "event 1 holds no propensities"),
        ([{}, {"a": [3, 1], "_label_Action": 3}], "event 2 chose action 3"),
        ([{"p": [0.4, 0.3, 0.3]}], "it needs two of each"),
        (
            [{"_label_probability": 0.9}],
            "states 0.9 as the probability of its decision, but p says 0.4",
        ),
        ([{"c": {"x": {"tags": [1, 2]}}}], "feature 'tags' of event 1"),
        ([{"pdrop": 0.5}, {}], "thinned unevenly"),
        ([{}, {"_label_cost": -1}], "the accept in row 2 cost -1; a good outcome costs 0"),
        ([{"EventId": "k"}, {"EventId": "k"}], "id 'k' occurs"),
        ([{"p": [0.0, 1.0], "_label_probability": 0.0}], "row 1 was accepted with probability 0"),
        (
            [{"p": [1.5, -0.5], "_label_probability": 1.5}],
            "row 1 has the acceptance probability 1.5",
        ),
    ],
)
def test_bad_events_are_named(tmp_path, changes, words):
    with pytest.raises(InvalidInput) as caught:
        read_log(events(tmp_path, *changes))
    assert words in str(caught.value)


def test_broken_lines_are_named(tmp_path):
    path = tmp_path / "log.dsjson"
    for text, words in (
        ('{"a": 1}\nnope\n', "line 2 of"),
        ("[1]\n", "line 1 of"),
        ("\n", "lines"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=words):
            read_log(path)
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_log(path)


def test_cb_text_of_others(tmp_path):
    path = tmp_path / "log.vw"
    path.write_text(
        "1:0:0.5 |user age:30 vip |x score:2\n2:0.5:0.75 | score:1\n1:1:0.25 2.0 |x score:3\n"
    )
    found = read_log(path)
    assert found.names == ("user^age", "user^vip", "score")
    assert found.features.tolist() == [[30, 1, 2], [0, 0, 1], [0, 0, 3]]
    assert found.acceptance.tolist() == [0.5, 0.25, 0.25]
    assert found.label.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("|x score:1", "line 1 holds no propensities"),
        ("1:0 |x score:1", "line 1 holds no propensities"),
        ("3:0:0.5 |x score:1", "line 1 chose action 3"),
        ("1:0:half |x score:1", "line 1 holds 'half'"),
        ("1:0:0.5 |x score:much", "line 1 holds 'much'"),
        ("1:0:0.5 'accept=1&p=0.7 |x score:1", "0.7 in its tag and 0.5 in its label"),
        ("1:0:1.5 |x score:1", "row 1 has the acceptance probability 1.5"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, words):
    path = tmp_path / "log.vw"
    path.write_text(line + "\n")
    with pytest.raises(InvalidInput) as caught:
        read_log(path)
    assert words in str(caught.value)


def test_vw_itself_reads_and_learns_from_both(tmp_path):
    """VW parses every line, counts the examples, and learns to accept high scores and to reject low
    ones, which it would not by chance.

    The log is 4,000 rows; people above 1.5 in the first column repay in 80% of cases, people below
    -1 in 25%.
    """
    workspace = pytest.importorskip("vowpalwabbit").Workspace
    log, _ = logged(4000, 3, open_share=0.05)
    for name in ("log.dsjson", "log.vw"):
        write_log(log, tmp_path / name)
    options = {"log.dsjson": "--dsjson --cb_explore_adf --epsilon 0.1 -q xa", "log.vw": "--cb 2"}
    for name, kind in options.items():
        learnt = workspace(
            f"{kind} -d {tmp_path / name} -f {tmp_path / name}.model --random_seed 1 --quiet"
        )
        assert learnt.get_weighted_examples() == 4000
        learnt.finish()
    ready = workspace(f"-i {tmp_path / 'log.dsjson'}.model -t --quiet")
    bold, shy = (
        ready.predict([f"shared |x x0:{x} x1:0 x2:0", "|a accept", "|a reject"])
        for x in (2.5, -1.5)
    )
    assert bold[0] > 0.9 > 0.1 > shy[0]
    text = workspace(f"-i {tmp_path / 'log.vw'}.model -t --quiet")
    assert [text.predict(f"|x x0:{x} x1:0 x2:0") for x in (2.5, -1.5)] == [1, 2]


def test_what_vw_reads_is_what_was_written(tmp_path):
    """VW's own parser, line by line: action, cost and probability of the label, and the features'
    values.
    """
    workspace = pytest.importorskip("vowpalwabbit").Workspace
    log, _ = logged(60, 3, open_share=0.2)
    write_log(log, tmp_path / "log.vw")
    vw = workspace("--cb 2 --quiet")
    for row, line in enumerate((tmp_path / "log.vw").read_text().splitlines()):
        example = vw.parse(line)
        label = example.get_label(vw.get_label_type()) if not isinstance(example, list) else None
        costs = label.costs
        if log.open[row]:
            assert len(costs) == 0
        else:
            assert len(costs) == 1
            assert costs[0].label == (1 if log.accept[row] else 2)
            assert costs[0].probability == pytest.approx(log.propensity[row], rel=1e-6)
            assert costs[0].cost == (
                0.5 if not log.accept[row] else {1: 0.0, -1: 1.0}[log.label[row]]
            )
        values = sorted(example.feature_weight("x", i) for i in range(example.num_features_in("x")))
        assert values == pytest.approx(sorted(log.features[row]), rel=1e-6)
        vw.finish_example(example)
    vw.finish()
