"""--json and --out of every command: its result printed, or written in any medium."""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.messages import is_grave, note_text
from evenhand.cli.options import JSON_FILE, Function, OutputFile, command_line
from evenhand.cli.show import console
from evenhand.media import ENDINGS, document, lines, require_writers, save
from evenhand.result import Amount, Between, Cell, Result
from evenhand.tables import TABLES, Note, read_description

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.result import Verdict

FEW = 12
"""Names of a long list that are shown."""


@dataclass(frozen=True)
class Telling:
    """Where the user wants the answer: printed as text or as JSON, and in files."""

    printed_as_json: bool = False
    out: tuple[Path, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether a document is printed, and nothing else may be."""
        return self.printed_as_json

    def tell(
        self,
        result: Result,
        *,
        title: str,
        asked: Mapping[str, object],
        read: Sequence[str] = (),
        beware: Sequence[str] = (),
        notes: Sequence[Note] = (),
        saved: Path | None = None,
    ) -> None:
        """Print the result and write the files.

        asked: what was asked; what is None or empty was not. read: how the data was read, beside
        what the record says. notes: what was done to the rows on the way in; those about whom the
        figures are not about are no small print. saved: a policy that was written.
        """
        calm = [note_text(note) for note in notes if not is_grave(note)]
        grave = [note_text(note) for note in notes if is_grave(note)]
        told = replace(
            result,
            title=title,
            asked={name: as_cell(one) for name, one in asked.items() if not is_empty(one)},
            command=command_line(),
            read=(*read, *result.read, *calm),
            beware=(*grave, *beware, *result.beware),
        )
        if self.printed_as_json:
            click.echo(json.dumps(document(told), indent=1, allow_nan=False))
        else:
            print_result(told)
        for path in self.out:
            save(told, path)
        if not self.quiet:
            files = [*([] if saved is None else [saved]), *self.out]
            for path in files:
                click.echo(f"\nSaved: {path}")


def print_result(result: Result, out: "Console | None" = None) -> None:
    """A result on standard output."""
    from rich.text import Text

    out = console() if out is None else out
    for line in lines(result, min(out.width, 110)):
        out.print(Text(line.text, line.style), soft_wrap=True)


def telling_options(command: Function) -> Function:
    """--json and --out. Hands on `telling`: Telling."""

    @click.option(
        "--json",
        "printed_as_json",
        is_flag=True,
        help="Print all figures as one JSON document and nothing else.",
    )
    @click.option(
        "--out",
        metavar="FILE",
        type=OutputFile(*ENDINGS),
        multiple=True,
        help="Write the answer, as the ending says; repeat for several: .html (a page to hand "
        "over), .md (a model card), .json, .csv or .parquet (the first table), .xlsx (all tables), "
        ".svg, .png or .pdf (the figures).",
    )
    @functools.wraps(command)
    def with_telling(
        *args: Any, printed_as_json: bool, out: tuple[Path, ...], **options: Any
    ) -> None:
        for path in out:
            require_writers(path)
        command(*args, telling=Telling(printed_as_json, out), **options)

    return with_telling


def save_option(command: Function) -> Function:
    """--save. Hands on `saved`: the path of a policy file, or None."""
    return click.option(
        "--save",
        "saved",
        metavar="POLICY.JSON",
        type=JSON_FILE,
        help="Save the policy as plain JSON, to be applied, tested and certified.",
    )(command)


def leave(verdict: "Verdict | None") -> None:
    """End the command with the exit code of its gate, if there is one."""
    if verdict is not None:
        click.get_current_context().exit(verdict.exit_code)


def is_empty(value: object) -> bool:
    """Whether a setting was not given."""
    return value is None or (isinstance(value, str | tuple | list) and not value)


def as_cell(value: Any) -> Cell:
    """A setting as a cell: numbers stay numbers, lists become texts.

    >>> as_cell(("fpr", "fnr")), as_cell(0.05), as_cell(12_000)
    ('fpr, fnr', 0.05, 12000)
    """
    if isinstance(value, tuple | list) and not isinstance(value, Between | Amount):
        more = f" and {len(value) - FEW} more" if len(value) > FEW else ""
        return ", ".join(str(one) for one in value[:FEW]) + more
    return value if isinstance(value, str | bool | int | float | Between | Amount) else str(value)


def fingerprint(path: str | Path) -> str | None:
    """The SHA-256 of a file, by which a reader knows that it is the same; of a description (.toml)
    that of the rows it names; of a published table those of its files; None if it is neither.
    """
    if str(path) in TABLES:
        return ", ".join(file.sha256 for file in TABLES[str(path)].files) or None
    where = Path(path)
    if where.suffix.lower() == ".toml" and where.is_file():
        where = read_description(where).path
    if not where.is_file():
        return None
    with where.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
