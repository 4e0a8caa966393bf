"""Options that several commands share: types of values, and groups of options as decorators.

A group of options is a decorator. Some groups hand their options on one by one; those of a file, of
the columns of a table and of JSON hand them on as one value, so that commands need not repeat them:

    @click.command("measure")
    @file_options                 # hands on reading: FileOptions
    @json_options                 # hands on document: "-", a path, or None
    def command(reading, document): ...
"""

import functools
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import rate_names
from evenhand.hypotheses import CLASSES
from evenhand.shares import Span, require_share
from evenhand.tables import number
from evenhand.tables.column import DATES

Function = Callable[..., None]
"""A function that becomes a command."""
Unseen = Literal["refuse", "ignore"]
"""What `unseen_option` hands on."""

# types of values


class OutputFile(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A path that can be written, which is known before any work is done."""

    name = "path"

    def __init__(self, *suffixes: str) -> None:
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, if it is one of a file with such a suffix in a folder that exists."""
        path = Path(value)
        folder = path.absolute().parent
        if path.suffix.lower() not in self.suffixes:
            self.fail(f"{path} must end in {' or '.join(self.suffixes)}.", param, ctx)
        if not folder.is_dir():
            self.fail(f"the folder {folder} does not exist; create it first.", param, ctx)
        if path.is_dir():
            self.fail(f"{path} is a folder; name a file.", param, ctx)
        return path


class CommaList(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """Texts with commas between them: "a, b" is ("a", "b")."""

    name = "list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The texts without blanks around them; empty ones are left out."""
        if isinstance(value, tuple):
            return value
        if ctx is not None and any(value in one.opts for one in ctx.command.params):
            self.fail(f"a value is missing before the option {value}.", param, ctx)
        return tuple(part.strip() for part in value.split(",") if part.strip())


class RateName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """The rates behind a name: fpr, or one of the field's, such as tpr or equalized_odds."""

    name = "rate"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names here, and the field's name for two of them."""
        return "[fpr|fnr|selection|equalised-odds]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names of the registered rates, one or several."""
        try:
            return rate_names(value)
        except InvalidInput as error:
            self.fail(f"{error.message} Hint: {error.hint}", param, ctx)


RATE_NAME = RateName()
CLASS_NAME = click.Choice(tuple(CLASSES))
JSON_FILE = OutputFile(".json")
CSV_FILE = OutputFile(".csv")
PICTURE_FILE = OutputFile(".png", ".svg", ".pdf")
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
COMMA_LIST = CommaList()


class Share(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A share of one, which is known to be one before any work is done."""

    name = "float"

    def __init__(self, span: Span) -> None:
        self.span = span

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; InvalidInput names the option if it does not lie in the span."""
        option = "share" if param is None else param.opts[0].lstrip("-").replace("-", "_")
        known = value
        if isinstance(value, str) and (read := number(value)) is not None:
            known = read
        return require_share(option, known, self.span)


NATURAL = click.IntRange(min=0)
POSITIVE = click.IntRange(min=1)


def command_line() -> str:
    """What the user typed, to be typed again for the same results."""
    return shlex.join(["evenhand", *sys.argv[1:]])


# JSON


def json_options(command: Function) -> Function:
    """--json and --json-file of every command that prints figures.

    Hands on `document`, which `evenhand.cli.show.emit` obeys: "-" for standard output, the path of
    a file, or None.
    """

    @click.option(
        "--json",
        "json_printed",
        is_flag=True,
        help="Print all figures as one JSON document and nothing else.",
    )
    @click.option(
        "--json-file",
        metavar="FILE.JSON",
        type=JSON_FILE,
        help="Save all figures as one JSON document; the text is printed as usual.",
    )
    @functools.wraps(command)
    def with_json(*args: Any, json_printed: bool, json_file: Path | None, **options: Any) -> None:
        if json_printed and json_file is not None:
            raise click.UsageError(
                "--json prints the document and --json-file saves it: give one of them."
            )
        document = "-" if json_printed else json_file
        command(*args, document=document, **options)

    return with_json


# tables


@dataclass(frozen=True)
class FileOptions:
    """How a file is written, as far as the user says it."""

    missing: tuple[str, ...] | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    no_header: bool = False
    skip_lines: int | None = None
    sheet: str | None = None

    def given(self) -> Json:
        """What the user says, as `read_frame` takes it."""
        reading = {
            "missing": self.missing,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "decimal": self.decimal,
            "dates": self.dates,
            "header": False if self.no_header else None,
            "skip_lines": self.skip_lines,
            "sheet": self.sheet,
        }
        return {name: value for name, value in reading.items() if value is not None}


def file_options(command: Function) -> Function:
    """How a file is written, where the file does not show it. Hands on `reading`: FileOptions."""

    @click.option(
        "--missing",
        metavar="A,B",
        type=COMMA_LIST,
        help="How a missing value is written.  [default: ?, na, n/a, nan, null, none, #n/a]",
    )
    @click.option(
        "--delimiter",
        metavar="CHAR",
        help="What separates the cells of a CSV; tab is a tab.  [default: what the lines show]",
    )
    @click.option(
        "--encoding",
        metavar="NAME",
        help="How the text is encoded, such as cp1252 or utf-16.  [default: UTF-8, or what a byte "
        "order mark says]",
    )
    @click.option(
        "--decimal",
        type=click.Choice((".", ",")),
        help="What stands before decimals.  [default: what the columns show]",
    )
    @click.option(
        "--dates",
        type=click.Choice(DATES),
        help="How dates like 3/4/2021 are written; text leaves dates alone. Dates become days "
        "since 1970-01-01.",
    )
    @click.option(
        "--no-header",
        is_flag=True,
        help="The first line is a person; the columns are called column1, column2, ...",
    )
    @click.option("--skip-lines", metavar="N", type=NATURAL, help="Lines above the header.")
    @click.option("--sheet", metavar="NAME", help="The sheet of an Excel file.")
    @functools.wraps(command)
    def with_file_options(
        *args: Any,
        missing: tuple[str, ...] | None,
        delimiter: str | None,
        encoding: str | None,
        decimal: str | None,
        dates: str | None,
        no_header: bool,
        skip_lines: int | None,
        sheet: str | None,
        **options: Any,
    ) -> None:
        reading = FileOptions(
            missing=missing,
            delimiter=delimiter,
            encoding=encoding,
            decimal=decimal,
            dates=dates,
            no_header=no_header,
            skip_lines=skip_lines,
            sheet=sheet,
        )
        command(*args, reading=reading, **options)

    return with_file_options


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of a table mean, as far as the user says it."""

    label: str | None = None
    good: str | None = None
    bad: tuple[str, ...] | None = None
    group: str | None = None
    groups: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    leave_out: tuple[str, ...] | None = None
    id: str | None = None
    encode: bool = False
    fill_missing: tuple[str, ...] | None = None
    drop_missing: bool = False
    drop_unlabelled: bool = False
    fewest: int | None = None
    reading: FileOptions = FileOptions()

    def given(self) -> Json:
        """What the user says, as `read_table` takes it."""
        meaning = {
            "label": self.label,
            "good": self.good,
            "bad": self.bad or None,
            "group": self.group,
            "groups": self.groups or None,
            "features": self.features or None,
            "leave_out": self.leave_out or None,
            "id": self.id,
            "encode": self.encode or None,
            "fill_missing": self.fill_missing or None,
            "drop_missing": self.drop_missing or None,
            "unlabelled": "drop" if self.drop_unlabelled else None,
            "fewest": self.fewest,
        }
        given = {name: value for name, value in meaning.items() if value is not None}
        return {**given, **self.reading.given()}


def column_options(command: Function) -> Function:
    """What the columns of a table mean, and how its file is written. Hands on `columns`:
    ColumnOptions.
    """

    @click.option("--label", metavar="COL", help="Column with the outcome (was the loan repaid?).")
    @click.option(
        "--good",
        metavar="A,B",
        help="The value of the label that is the good outcome, or several. Default: 1 of 0/1 or "
        "-1/1.",
    )
    @click.option(
        "--bad",
        metavar="A,B",
        type=COMMA_LIST,
        help="The values that are bad outcomes, to be named where there are several.",
    )
    @click.option(
        "--group",
        metavar="COL",
        help="Column with the group whose rates are compared; sex,race joins two.",
    )
    @click.option(
        "--groups", metavar="A,B", type=COMMA_LIST, help="Keep only the rows of these groups."
    )
    @click.option(
        "--features",
        metavar="A,B,C",
        type=COMMA_LIST,
        help="Columns that a decision may use. Default: all but label and group.",
    )
    @click.option(
        "--leave-out", metavar="A,B", type=COMMA_LIST, help="Columns that a decision may not use."
    )
    @click.option(
        "--id",
        metavar="COL",
        help="Identifier column: excluded from features; duplicates are an error.",
    )
    @click.option("--encode", is_flag=True, help="Turn text columns into one 0/1 column per value.")
    @click.option(
        "--fill-missing",
        metavar="A,B|all",
        type=COMMA_LIST,
        help="Fill in what these columns lack: the median of numbers, with a 0/1 column that marks "
        "where; for texts, and for the group, a value of its own. all: every feature, and the "
        "group; with --drop-missing, people without a group are left out instead.",
    )
    @click.option(
        "--drop-missing",
        is_flag=True,
        help="Leave out rows with a missing value in a column that is used.",
    )
    @click.option(
        "--drop-unlabelled",
        is_flag=True,
        help="Leave out people without a label, those who were rejected in the past.",
    )
    @click.option(
        "--fewest",
        metavar="N",
        type=NATURAL,
        help="Minimum number of people per group and outcome.  [default: 10; solve, frontier: 0]",
    )
    @file_options
    @functools.wraps(command)
    def with_column_options(
        *args: Any,
        label: str | None,
        good: str | None,
        bad: tuple[str, ...] | None,
        group: str | None,
        groups: tuple[str, ...] | None,
        features: tuple[str, ...] | None,
        leave_out: tuple[str, ...] | None,
        id: str | None,
        encode: bool,
        fill_missing: tuple[str, ...] | None,
        drop_missing: bool,
        drop_unlabelled: bool,
        fewest: int | None,
        reading: FileOptions,
        **options: Any,
    ) -> None:
        columns = ColumnOptions(
            label=label,
            good=good,
            bad=bad,
            group=group,
            groups=groups,
            features=features,
            leave_out=leave_out,
            id=id,
            encode=encode,
            fill_missing=fill_missing,
            drop_missing=drop_missing,
            drop_unlabelled=drop_unlabelled,
            fewest=fewest,
            reading=reading,
        )
        command(*args, columns=columns, **options)

    return with_column_options


# what is to be solved

score_option = click.option(
    "--score", metavar="COL", help="The score column for --class thresholds (high is good)."
)
group_use_option = click.option(
    "--group-use",
    type=click.Choice(("certify-only", "decide")),
    default="certify-only",
    help="Whether the group is only measured, or may influence the decision.",
)


def rates_option(
    default: tuple[str, ...] | None = ("fpr",),
    help: str = "The rate whose gap is limited; repeat for several. Also understood: "
    "demographic_parity, equalized_odds, tpr.",
) -> Callable[[Function], Function]:
    """--rate, as often as one likes. Hands on `rates`: the names of RATES, each once."""

    def each_once(
        _: click.Context, __: click.Parameter, found: tuple[tuple[str, ...], ...]
    ) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for names in found for name in names))

    return click.option(
        "--rate",
        "rates",
        type=RATE_NAME,
        multiple=True,
        default=default,
        callback=each_once,
        help=help,
    )


unseen_option = click.option(
    "--unseen",
    type=click.Choice(("refuse", "ignore")),
    default="refuse",
    help="What to do with a category that the policy has never seen: raise an error (refuse), or "
    "treat the person as having none of the known ones (ignore).",
)


def problem_options(command: Function) -> Function:
    """What is to be solved on a table; each option is handed on by its name."""
    limit = click.option(
        "--limit",
        type=Share("[0, 1]"),
        default=0.05,
        help="Largest difference between the rates of two groups; for a certificate, fixed "
        "beforehand.",
    )
    return limit(class_options(command))


def class_options(command: Function) -> Function:
    """The rules to choose from, and what errors cost; each option is handed on by its name."""
    options = [
        click.option(
            "--class", "kind", type=CLASS_NAME, default="stumps", help="The rules to choose from."
        ),
        score_option,
        click.option(
            "--price-false-accept",
            metavar="X",
            default="1",
            help="Cost of accepting a bad outcome: a number or a column.",
        ),
        click.option(
            "--price-false-reject",
            metavar="Y",
            default="1",
            help="Cost of rejecting a good outcome: a number or a column.",
        ),
        group_use_option,
    ]
    for option in reversed(options):  # the help begins with the option that is added last
        command = option(command)
    return command


def price_options(command: Function) -> Function:
    """The prices where they are numbers; each option is handed on by its name."""
    options = [
        click.option(
            "--price-false-accept",
            type=float,
            default=1.0,
            help="Cost of accepting a bad outcome.",
        ),
        click.option(
            "--price-false-reject",
            type=float,
            default=1.0,
            help="Cost of rejecting a good outcome.",
        ),
    ]
    for option in reversed(options):  # the help begins with the option that is added last
        command = option(command)
    return command
