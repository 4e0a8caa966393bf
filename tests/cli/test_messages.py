"""Arguments of the library are shown as options that the command has."""

import click
import pytest
from click.testing import CliRunner

from evenhand.cli import COMMANDS, LazyCommands, main
from evenhand.cli.messages import error_text, note_line, note_text, option_of, options_of
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.tables import Note


@pytest.mark.parametrize(
    ("argument", "column", "option"),
    [
        ("label", None, "--label"),
        ("leave_out", None, "--leave-out"),
        ("leave_out", "first name", "--leave-out 'first name'"),
        ("label", "repaid", "--label"),
        ("unlabelled", None, "--drop-unlabelled"),
        ("header", None, "--no-header"),
    ],
)
def test_the_option_of_an_argument(argument, column, option):
    assert option_of(argument, column) == option


def test_an_error_shows_the_hint_and_the_options_that_the_command_has():
    error = InvalidInput(
        "age is missing",
        requirement="it is needed",
        hint="fill it in.",
        argument="drop_missing",
        remedies=("leave_out", "drop_missing", "unseen"),
        column="age",
    )
    known = ["--leave-out", "--drop-missing"]
    assert error_text(error, known).splitlines() == [
        "age is missing; it is needed.",
        "Hint: fill it in.",
        "Options: --drop-missing, --leave-out age",
    ]
    assert "Option" not in error_text(error)
    assert error_text(EvenhandError("no.")) == "no."


def test_a_note_shows_its_options():
    note = Note("identifier", "'id' may name people", "id", ("id", "leave_out"))
    assert note_text(note) == "'id' may name people (--id id, --leave-out id)"
    assert note_text(Note("encoded", "a")) == "a"


def test_every_argument_that_a_description_has_is_an_option_of_solve():
    """What `read_table` raises an error about can be mended on the command line."""
    group = main
    assert isinstance(group, LazyCommands)
    known = options_of(group.get_command(click.Context(group), "solve"))
    arguments = ("label", "good", "bad", "group", "groups", "features", "leave_out", "id", "encode")
    more = ("drop_missing", "unlabelled", "delimiter", "encoding", "decimal", "dates", "header")
    rest = ("skip_lines", "sheet", "missing", "fewest")
    for argument in (*arguments, *more, *rest):
        assert option_of(argument) in known, argument
    assert "solve" in COMMANDS


def test_a_command_in_a_group_shows_its_options(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("x,g,y\n1,a,yes\n2,b,no\n")
    words = ["data", "show", str(path), "--label", "y", "--group", "g"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "Option: --good" in done.stderr


@pytest.mark.parametrize("folder", ["tables", "schema.py", "words.py", "hypotheses"])
def test_the_library_names_no_option(folder):
    """Outside of the command line no text mentions an option of evenhand."""
    from pathlib import Path

    import evenhand

    root = Path(evenhand.__file__).parent / folder
    known = options_of(main.get_command(click.Context(main), "solve")) - {"--help"}
    for path in [root] if root.suffix else sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert [option for option in known if f"{option} " in text or f"{option}." in text] == []


def test_who_is_left_out_in_large_numbers_is_said_loudly():
    assert note_line(Note("many left out", "30 of 100 rows")) == "  WARNING: 30 of 100 rows"
    assert note_line(Note("missing values", "3 rows")) == "  note: 3 rows"
