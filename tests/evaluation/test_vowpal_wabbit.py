"""Vowpal Wabbit's formats: what others write is read, what cannot be is named, and VW itself learns
from what is written here.
"""

import json

import pytest
from tests.evaluation.worlds import logged

from evenhand.errors import InvalidInput
from evenhand.evaluation import read_log, write_log

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
        ("\n", "has no lines"),
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
