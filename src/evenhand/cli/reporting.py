"""--report: a page to hand over, or a model card, as `evenhand.report.write_report` writes it."""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import Function, OutputFile, command_line
from evenhand.tables import TABLES, read_description

if TYPE_CHECKING:
    from evenhand.result import Verdict

FEW = 12
"""Names of a long list that a page shows."""


def report_option(command: Function) -> Function:
    """--report of every command whose answer is handed over. Hands on `page`: Path or None."""

    @click.option(
        "--report",
        "page",
        metavar="PAGE.HTML",
        type=OutputFile(".html", ".md"),
        help="Write one page to hand over, with the answer first: .html prints on A4 and needs no "
        "network, .md is a model card in the form of skops.",
    )
    @functools.wraps(command)
    def with_report(*args: Any, page: Path | None, **options: Any) -> None:
        if page is not None:
            from evenhand.report.handover import require_writers

            require_writers(page)
        command(*args, page=page, **options)

    return with_report


def write_page(
    page: Path | None,
    record: object,
    *,
    title: str,
    asked: Mapping[str, object],
    verdict: "Verdict | None" = None,
    policy: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    quiet: bool = False,
) -> None:
    """Obey --report. `asked`: what was asked; what is None or empty was not. `quiet`: a document is
    printed, and nothing else.
    """
    if page is None:
        return
    from evenhand.report import write_report

    given = {name: value for name, value in asked.items() if value not in (None, "", (), [])}
    write_report(
        record,
        page,
        title=title,
        asked={name: as_text(value) for name, value in given.items()},
        verdict=verdict,
        policy=policy,
        columns=columns,
        command=command_line(),
    )
    if not quiet:
        click.echo(f"\nReport: {page}")


def as_text(value: object) -> str:
    """A setting in words.

    >>> as_text(("fpr", "fnr")), as_text(0.05), as_text(12_000)
    ('fpr, fnr', '0.05', '12,000')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        more = f" and {len(value) - FEW} more" if len(value) > FEW else ""
        return ", ".join(map(as_text, value[:FEW])) + more
    return str(value)


def fingerprint(path: str | Path) -> str | None:
    """The SHA-256 of a file, by which a reader knows that it is the same; of a description (.toml)
    that of the rows it names; of a table by name those of its files; None if it is neither.
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
