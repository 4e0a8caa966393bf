"""Errors, notes and warnings of the library as lines of the command line.

The library names Python arguments ("leave_out"); a user of the command line needs the option of
that name ("--leave-out").
"""

from collections.abc import Collection
from shlex import quote
from typing import TYPE_CHECKING

import click

from evenhand.errors import EvenhandError, InvalidInput, SeveralErrors

if TYPE_CHECKING:
    from evenhand.tables import DataWarning, Note

OTHER_NAMES = {
    "unlabelled": "--drop-unlabelled",
    "header": "--no-header",
    "accept_at_most": "--capacity",
    "accept_at_least": "--floor",
    "candidates": "--incumbent",
    "ceilings": "--ceiling",
}
"""The options that are not called as their argument."""
TAKES_COLUMN = ("--leave-out", "--id", "--fill-missing")
"""The options whose value is the column that a message is about."""


def option_of(argument: str, column: str | None = None) -> str:
    """The option that sets an argument, with the column as its value if it takes one."""
    option = OTHER_NAMES.get(argument, "--" + argument.replace("_", "-"))
    if column is not None and option in TAKES_COLUMN:
        return f"{option} {quote(column)}"
    return option


def options_of(command: click.Command) -> set[str]:
    """The options that a command knows; for a group of commands those of all of them."""
    names = {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }
    if isinstance(command, click.Group):
        for one in command.commands.values():
            names |= options_of(one)
    return names


def error_text(error: EvenhandError, known: Collection[str] = ()) -> str:
    """What is wrong, the hint, and the options that the error is about.

    known: the options of the command that was called; no others are shown.
    """
    if isinstance(error, SeveralErrors):
        parts = (error_text(one, known) for one in error.errors)
        numbered = [f"{place}. {part}" for place, part in enumerate(parts, 1)]
        return "\n".join([error.message, *numbered])
    lines = [error.sentence]
    if error.hint is not None:
        lines.append(f"Hint: {error.hint}")
    concerned = [error.argument] if error.argument is not None else []
    column = error.column if isinstance(error, InvalidInput) else None
    options = [
        option_of(argument, column)
        for argument in dict.fromkeys([*concerned, *error.remedies])
        if option_of(argument) in known
    ]
    if options:
        lines.append(f"Option{'s' * (len(options) > 1)}: {', '.join(options)}")
    return "\n".join(lines)


def note_text(note: "Note") -> str:
    """A note with the options that change what it says."""
    options = [option_of(argument, note.column) for argument in note.remedies]
    return f"{note} ({', '.join(options)})" if options else str(note)


def note_line(note: "Note") -> str:
    """A note as commands print it: whom the figures are not about is no small print."""
    word = "WARNING" if is_grave(note) else "note"
    return f"  {word}: {note_text(note)}"


def is_grave(note: "Note") -> bool:
    """Whether a note says whom the figures are not about, or what nobody may overlook."""
    grave = ("many left out", "people without a label", "sensitive reason", "no reason")
    return note.kind in grave


def warning_text(warning: "DataWarning") -> str:
    """A warning about a table with the option that helps."""
    return f"{warning.text} ({option_of(warning.argument, warning.name)})"
