import numpy as np
import pytest

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch, MissingColumn
from evenhand.evaluation import DecisionLog, read_log

X = np.arange(4.0)[:, None]


def log(accept=(1, 1, 0, 0), p=(0.5, 0.5, 0.5, 0.5), label=(1, -1, 0, 0), **more):
    return DecisionLog.of(X, np.array(accept, dtype=bool), p, label, **more)


def test_what_is_given_is_kept():
    found = log(
        group=["a", None, float("nan"), 7], id=["k", "l", "m", "n"], names=["score"], count=2
    )
    assert found.group.tolist() == ["a", None, None, "7"]
    assert found.groups == ("7", "a")
    assert found.people == 8
    assert found.open.tolist() == [False] * 4
    assert found.propensity.tolist() == [0.5] * 4
    assert log(label=(1, np.nan, 0, 0)).open.tolist() == [False, True, False, False]
    assert log().ids == ["1", "2", "3", "4"]
    assert found.without_first(3).ids == ["n"]
    assert log().without_first(1).ids == ["2", "3", "4"]


def test_labels_of_the_rejected_are_dropped_and_that_is_said():
    found = log(label=(1, -1, 1, -1))
    assert found.label.tolist() == [1, -1, 0, 0]
    assert "2 labels of rejected people are not used" in found.notes[0]
    with pytest.raises(BadLabel, match="row 3 is 1"):
        DecisionLog(
            X,
            found.accept,
            found.acceptance,
            np.array([1, -1, 1, 0]),
            found.group,
            ("x",),
            np.ones(4),
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": (0.5, np.nan, 0.5, 0.5)}, "row 2 has no acceptance probability"),
        ({"p": (0.5, 0.5, 1.5, 0.5)}, "row 3 has the acceptance probability 1.5 (1 such rows)"),
        ({"p": (0.5, 0.5, -0.1, 0.5)}, "row 3 has the acceptance probability -0.1"),
        ({"p": (0.0, 0.5, 0.5, 0.5)}, "row 1 was accepted with probability 0"),
        ({"p": (0.5, 0.5, 1.0, 0.5)}, "row 3 was rejected though accepted with probability 1"),
        ({"label": (1, 3, 0, 0)}, "label contains 1, 3"),
        ({"id": ["a", "b", "c", "a"]}, "id 'a' occurs in row 1 and in row 4"),
        ({"count": (1, 0, 1, 1)}, "row 2 stands for 0 decisions"),
        ({"names": ["x", "y"]}, "each needs a name of its own"),
    ],
)
def test_impossible_rows_are_named(change, words):
    with pytest.raises(InvalidInput) as caught:
        log(**change)
    assert words in str(caught.value)


def test_a_certain_rejection_may_be_logged_but_supports_nothing():
    found = log(p=(0.5, 0.5, 0.0, 0.0))
    with pytest.raises(InvalidInput, match=r"row 3 .*2 such rows"):
        found.require_support()


def test_lengths_and_emptiness():
    with pytest.raises(LengthMismatch, match="accept"):
        log(accept=(1, 0))
    with pytest.raises(LengthMismatch, match="group"):
        log(group=["a"])
    with pytest.raises(InvalidInput, match="rows"):
        DecisionLog.of(np.zeros((0, 1)), [], [], [])
    with pytest.raises(InvalidInput, match="row"):
        log().without_first(4)


def test_columns_with_other_names_and_text_labels(tmp_path):
    path = tmp_path / "bank.csv"
    path.write_text(
        "nr,sex,granted,chance,repaid,income,age\n1,f,yes,0.5,paid,10,30\n2,m,no,0.25,,11,40\n"
        "3,m,yes,0.5,lost,12,50\n4,,yes,0.5,,13,60\n"
    )
    roles = {
        "id": "nr",
        "group": "sex",
        "accept": "granted",
        "acceptance": "chance",
        "label": "repaid",
    }
    found = read_log(path, columns=roles, good="paid", features=["income"])
    assert found.names == ("income",)
    assert found.label.tolist() == [1, 0, -1, 0]
    assert found.group.tolist() == ["f", "m", "m", None]
    assert found.open.tolist() == [False, False, False, True]
    assert read_log(path, columns=roles, good="paid").names == ("income", "age")
    with pytest.raises(BadLabel, match="lost, paid"):
        read_log(path, columns=roles)
    with pytest.raises(BadLabel, match="'x'"):
        read_log(path, columns=roles, good="x")
    with pytest.raises(MissingColumn, match="accept and label"):
        read_log(path)
    with pytest.raises(MissingColumn, match="'no'"):
        read_log(path, columns={**roles, "group": "no"}, good="paid")
    with pytest.raises(MissingColumn, match="'wealth'"):
        read_log(path, columns=roles, good="paid", features=["wealth"])
    with pytest.raises(InvalidInput, match="'colour'"):
        read_log(path, columns={"colour": "x"})


def test_propensity_is_that_of_the_decision_taken(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("accept,propensity,label,x\n1,0.7,1,0\n0,0.7,,1\n1,0.2,0,2\n")
    found = read_log(path)
    assert found.acceptance.tolist() == [0.7, pytest.approx(0.3), 0.2]
    assert found.label.tolist() == [1, 0, -1]


HISTORIC = "accept,label,group,x\n1,1,a,0\n0,,b,1\n"


def test_historic_decisions_are_refused_and_the_message_says_why_and_what_to_do(tmp_path):
    path = tmp_path / "historic.csv"
    for text in (HISTORIC, "accept,acceptance,label,x\n1,,1,0\n0,,,1\n"):
        path.write_text(text)
        with pytest.raises(InvalidInput) as caught:
            read_log(path)
        told = str(caught.value)
        assert "holds no propensities" in told
        assert "may have seen what the log does not hold" in told
        assert "record with every decision the probability" in told
        assert "accept a small share at random" in told
        assert "evenhand plan" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("accept,acceptance,label,x\n1,0.5,1,0\n1,,1,1\n", "row 2 has no acceptance probability"),
        (
            "accept,acceptance,label,x\n1,0.5,1,0\n1,1.2,1,1\n",
            "row 2 has the acceptance probability 1.2",
        ),
        (
            "accept,acceptance,label,x\n1,0.5,1,0\n1,0,1,1\n",
            "row 2 was accepted with probability 0",
        ),
        ("accept,acceptance,label,x\n1,0.5,1,0\n1,half,1,1\n", "acceptance is 'half' in row 2"),
        (
            "accept,acceptance,label,x\n1,0.5,1,0\nmaybe,0.5,1,1\n",
            "the decision in row 2 is 'maybe'",
        ),
        ("accept,acceptance,label,x\n1,0.5,1,0\n1,0.5,0,1\n1,0.5,-1,1\n", "-1, 0, 1"),
        ("accept,acceptance,label,x\n1,0.5,1,red\n1,0.5,0,1\n", "x is 'red' in row 1"),
        ("accept,acceptance,label,x\n1,0.5,1,\n1,0.5,0,1\n", "x is missing in row 1"),
        (
            "id,accept,acceptance,label,x\nk,1,0.5,1,3\nk,1,0.5,0,1\n",
            "id 'k' occurs in row 1 and in row 2",
        ),
    ],
)
def test_bad_rows_are_named(tmp_path, text, words):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_log(path)
    assert words in str(caught.value)


def test_labels_of_the_rejected_are_ignored_with_a_note(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("accept,acceptance,label,x\n1,0.5,1,0\n0,0.5,0,1\n0,0.5,1,1\n")
    found = read_log(path)
    assert found.label.tolist() == [1, 0, 0]
    assert "2 labels of rejected people are not used" in found.notes[0]


def test_a_csv_may_be_separated_and_marked_otherwise(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("accept;acceptance;label;group;x\n1;0.5;1;none;3\n0;0.5;-99;b;4\n")
    log = read_log(path, missing=["-99"])
    assert log.group.tolist() == ["none", "b"]
    assert log.label.tolist() == [1, 0]
    assert read_log(path, delimiter=";").group.tolist() == [None, "b"]


def test_true_and_false_are_numbers_of_a_feature(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"accept": true, "acceptance": 0.5, "label": 1, "vip": true}\n')
    assert read_log(path).features.tolist() == [[1.0]]


def test_a_log_shows_its_size_and_not_its_rows():
    log = DecisionLog.of(np.zeros((900, 1)), [True, False] * 450, [0.5] * 900, [1, 0] * 450)
    assert (
        repr(log) == "<DecisionLog 'the log': 900 rows, 450 accepted; features: x0; groups: none>"
    )
