"""What several commands share; the reader of tables itself is tested in tests/tables."""

from pathlib import Path

import click
import pytest

from evenhand.cli.options import (
    CLASS_NAME,
    JSON_FILE,
    column_meaning,
    command_words,
    option,
    table_problem,
)
from evenhand.errors import InvalidInput


def test_options_say_what_the_columns_mean():
    options = {"label": "y", "groups": "a, b", "missing": None, "drop_unlabelled": True, "seed": 1}
    assert column_meaning(options) == {"label": "y", "groups": ("a", "b"), "unlabelled": "drop"}


def test_an_option_names_its_parameter_and_its_value():
    one = option("--column columns ROLE=COL", "A column.", multiple=True)
    assert (one.opts, one.name, one.metavar) == (["--column"], "columns", "ROLE=COL")
    two = option("--limit", "A limit.", float, default=0.05)
    assert (two.name, two.metavar, two.default, two.help) == ("limit", None, 0.05, "A limit.")


def test_a_name_must_be_in_its_registry():
    assert CLASS_NAME.convert("stumps", None, None) == "stumps"
    with pytest.raises(click.BadParameter, match=r"'forest' is not one of 'stumps'"):
        CLASS_NAME.convert("forest", None, None)


def test_a_path_must_be_writable_before_any_work_is_done(tmp_path):
    assert JSON_FILE.convert(str(tmp_path / "a.json"), None, None) == tmp_path / "a.json"
    (tmp_path / "folder.json").mkdir()
    for path, words in (
        (Path("a.txt"), "must end in .json"),
        (tmp_path / "none" / "a.json", "does not exist; create it first"),
        (tmp_path / "folder.json", "is a folder; name a file"),
    ):
        with pytest.raises(click.BadParameter, match=words):
            JSON_FILE.convert(path, None, None)


def test_the_words_of_a_command_leave_out_what_is_the_default():
    options = {"rate": "fpr", "limit": (0.1, 0.0), "delta": 0.0, "encode": True, "good": None}
    defaults = {"rate": "fpr", "limit": None, "delta": 0.05, "encode": False, "good": None}
    words = ["--limit", "0.1", "--limit", "0", "--delta", "0", "--encode"]
    assert command_words(options, defaults) == words


def test_a_table_and_its_options_become_a_problem(lending):
    options = {"data": lending, "label": "repaid", "good": "yes", "group": "group"}
    task = table_problem({**options, "rate": ("fpr", "fnr", "fpr")})
    assert [rate.symbol for rate in task.rates] == ["FPR", "FNR"]
    assert (task.source, len(task.sample), task.priced) == ("lending.csv", 1200, False)
    with pytest.raises(InvalidInput, match="belongs to --class thresholds"):
        table_problem({**options, "score": "income"})
    with pytest.raises(InvalidInput, match="--score is missing"):
        table_problem({**options, "kind": "thresholds"})
    both = {**options, "kind": "thresholds", "score": "income", "features": "income"}
    with pytest.raises(InvalidInput, match="--features was given"):
        table_problem(both)
