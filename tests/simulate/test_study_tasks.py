"""Tasks have keys that never change, and nonsense is refused before anything runs."""

import pytest
from tests.simulate.test_study import small

from evenhand.errors import InvalidInput
from evenhand.simulate.study import OptimumTask, Question, RunTask, Source, source_of


def test_keys_are_those_of_older_journals():
    """Journals hold these keys; with other keys everything would be computed again."""
    question = Question(Source("loans", digest="0123456789abcdef"), 0.05)
    assert OptimumTask(question).key == "33f94aa873921731da967336"
    assert RunTask(question, "certified", 3, 1000, 0.05).key == "66138526e9aa14edd3cd94b5"


def test_a_changed_table_is_another_one(tmp_path):
    from evenhand.tables import Description

    lines = [f"{i},{'ab'[i % 2]},{(i // 2) % 2}" for i in range(80)]
    path = tmp_path / "t.csv"
    path.write_text("x,g,y\n" + "\n".join(lines) + "\n")
    told = Description(path, "y", "g")
    first = source_of("t.csv", told)
    path.write_text("x,g,y\n" + "\n".join(["99,a,0", *lines[1:]]) + "\n")
    assert source_of("t.csv", told).digest != first.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ("oracle",)}, "no learner 'oracle'"),
        ({"learners": ()}, "at least one table"),
        ({"limits": (0.0,)}, "limit 0.0"),
        ({"rate": "tpr"}, "no rate 'tpr'"),
        ({"kind": "forest"}, "no class 'forest'"),
        (
            {"learners": ("two-phase",), "kind": "linear"},
            "'two-phase' cannot play 'linear'.*--class stumps",
        ),
    ],
)
def test_nonsense_is_refused_before_anything_runs(changes, message):
    with pytest.raises(InvalidInput, match=message):
        small(**changes)
