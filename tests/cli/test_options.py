"""What several commands share; the reader of tables itself is tested in tests/tables."""

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from evenhand.cli import COMMANDS, main
from evenhand.cli.options import (
    COMMA_LIST,
    JSON_FILE,
    RATE_NAME,
    ColumnOptions,
    FileOptions,
    column_options,
    command_line,
    file_options,
    json_options,
    rates_option,
)


def values_of(group, *words):
    """What a group of options hands on to its command; a usage error is raised."""
    handed_on = {}

    @click.command()
    @group
    def command(**values):
        handed_on.update(values)

    CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    return handed_on


def test_options_say_how_a_file_is_written():
    reading = values_of(file_options, "--missing", "-9, x", "--no-header", "--skip-lines", "0")
    assert reading == {"reading": FileOptions(missing=("-9", "x"), no_header=True, skip_lines=0)}
    assert reading["reading"].given() == {"missing": ("-9", "x"), "header": False, "skip_lines": 0}
    assert FileOptions().given() == {}
    assert FileOptions(missing=()).given() == {"missing": ()}  # no text means a missing value


def test_options_say_what_the_columns_mean():
    words = ("--label", "y", "--groups", "a, b", "--drop-unlabelled", "--delimiter", ";")
    columns = values_of(column_options, *words)["columns"]
    assert columns.given() == {
        "label": "y",
        "groups": ("a", "b"),
        "unlabelled": "drop",
        "delimiter": ";",
    }
    assert ColumnOptions().given() == {}


def test_json_is_printed_or_saved(tmp_path):
    path = tmp_path / "a.json"
    assert values_of(json_options) == {"document": None}
    assert values_of(json_options, "--json") == {"document": "-"}
    assert values_of(json_options, "--json-file", str(path)) == {"document": path}
    with pytest.raises(click.UsageError):
        values_of(json_options, "--json", "--json-file", str(path))


def test_a_list_has_commas_between_its_texts():
    assert COMMA_LIST.convert(" a, b,,c c ", None, None) == ("a", "b", "c c")
    assert COMMA_LIST.convert("", None, None) == ()
    assert COMMA_LIST.convert(("a,b",), None, None) == ("a,b",)


def test_a_path_must_be_writable_before_any_work_is_done(tmp_path):
    assert JSON_FILE.convert(str(tmp_path / "a.json"), None, None) == tmp_path / "a.json"
    (tmp_path / "folder.json").mkdir()
    for path, words in (
        (Path("a.txt"), r"\.json"),
        (tmp_path / "none" / "a.json", "exist"),
        (tmp_path / "folder.json", "folder"),
    ):
        with pytest.raises(click.BadParameter, match=words):
            JSON_FILE.convert(path, None, None)


def test_the_command_line_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/bin/evenhand", "study", "my loans.csv", "--seeds", "2"])
    assert command_line() == "evenhand study 'my loans.csv' --seeds 2"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ("fpr",)),
        (("--rate", "equalized_odds"), ("fpr", "fnr")),
        (("--rate", "Demographic Parity", "--rate", "tpr"), ("selection", "fnr")),
        (("--rate", "equalised-odds", "--rate", "fpr"), ("fpr", "fnr")),
    ],
)
def test_rates_have_the_names_of_the_field_and_each_counts_once(words, names):
    assert values_of(rates_option(), *words) == {"rates": names}


def test_a_mistyped_rate_names_the_nearest():
    with pytest.raises(click.BadParameter, match="Did you mean 'equalized-odds'"):
        values_of(rates_option(), "--rate", "equalized_ods")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_reads_its_rates_in_the_same_way(name):
    command = main.get_command(click.Context(main), name)
    for option in command.params:
        if "--rate" in option.opts:
            assert (option.type, option.name, option.multiple) == (RATE_NAME, "rates", True)
            context = click.Context(command)
            taken = option.process_value(context, ("equalized_odds", "fpr", "tnr"))
            assert taken == ("fpr", "fnr")
