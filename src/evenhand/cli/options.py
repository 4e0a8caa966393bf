"""Options that several commands share, and the problem that a table and its options describe."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass, Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES, Rate
from evenhand.hypotheses import CLASSES, ScoreThresholds
from evenhand.tables import READING, LabelledFrame, Misleading, Table, misleading, read_table
from evenhand.tables.column import DATES
from evenhand.words import (
    BoolArray,
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    LabelledSample,
    Prices,
)


class RegistryName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """The name of a registry's entry; names that other packages have added are known, too."""

    def __init__(self, known: Mapping[str, Any], metavar: str) -> None:
        self.known, self.name = known, metavar

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names that evenhand has itself."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The same name, if it stands for something."""
        try:
            self.known[value]
        except InvalidInput:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.known))}.", param, ctx)
        return value


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


class JsonTarget(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """ "-" for standard output, or a file that can be written."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The same, if it is one."""
        return value if value == "-" else JSON_FILE.convert(value, param, ctx)


RATE_NAME = RegistryName(RATES, "[fpr|fnr|selection]")
CLASS_NAME = RegistryName(CLASSES, "[stumps|thresholds|linear|tree|logistic|lightgbm]")
JSON_FILE, CSV_FILE = OutputFile(".json"), OutputFile(".csv")
PICTURE_FILE = OutputFile(".png", ".svg", ".pdf")
NATURAL, POSITIVE = click.IntRange(min=0), click.IntRange(min=1)
FOLDER = click.Path(file_okay=False, path_type=Path)


def option(names: str, text: str, kind: Any = None, **more: Any) -> click.Option:
    """An option of a command, with its help.

    names : "--limit", "--limit limits" where the parameter is called otherwise, and a word that is
    no lower-case name for the value: "--group COL".
    """
    words = names.split(" ")
    if not words[-1].islower():
        more["metavar"] = words.pop()
    return click.Option(words, type=kind, help=text, **more)


def flag(names: str, text: str, **more: Any) -> click.Option:
    """An option without a value."""
    return option(names, text, is_flag=True, **more)


JSON_OPTION = option(
    "--json document [FILE.JSON]",
    "Print all figures as one JSON document and nothing else; with a file, save them there.",
    JsonTarget(),
)
"""Every command has it; `evenhand.cli.show.emit` obeys it."""
UNSEEN = option(
    "--unseen",
    "What to do with a category that the policy has never seen: refuse the table, or let the "
    "person have none of the known ones.",
    click.Choice(("refuse", "ignore")),
    default="refuse",
)
FILE_OPTIONS = (
    option(
        "--missing A,B",
        "How a missing value is written.  [default: ?, na, n/a, nan, null, none, #n/a]",
    ),
    option(
        "--delimiter CHAR",
        "What separates the cells of a CSV; tab is a tab.  [default: what the lines show]",
    ),
    option(
        "--encoding NAME",
        "How the text is encoded, such as cp1252 or utf-16.  [default: UTF-8, or what a "
        "byte order mark says]",
    ),
    option(
        "--decimal",
        "What stands before decimals.  [default: what the columns show]",
        click.Choice((".", ",")),
    ),
    option(
        "--dates",
        "How dates like 3/4/2021 are written; text leaves dates alone. Dates become days "
        "since 1970-01-01.",
        click.Choice(DATES),
    ),
    flag("--no-header", "The first line is a person; the columns are called column1, column2, ..."),
    option("--skip-lines N", "Lines above the header.", NATURAL),
    option("--sheet NAME", "The sheet of an Excel file."),
)
"""How a file is written, where it does not show it; `file_reading` reads them."""
MEANING_OPTIONS = (
    option("--label COL", "Column with the outcome (was the loan repaid?)."),
    option(
        "--good VALUE",
        "The value of the label that is the good outcome. Default: 1 of 0/1 or -1/1.",
    ),
    option("--bad A,B", "The values that are bad outcomes, to be named where there are several."),
    option("--group COL", "Column with the group whose rates are compared; sex,race joins two."),
    option("--groups A,B", "Keep only the rows of these groups."),
    option(
        "--features A,B,C", "Columns that a decision may use. Default: all but label and group."
    ),
    option("--leave-out A,B", "Columns that a decision may not use."),
    option("--id COL", "Column that names people: not used, nobody occurs twice."),
    flag("--encode", "Turn text columns into one 0/1 column per value."),
    flag("--drop-missing", "Leave out rows with a missing value in a column that is used."),
    flag(
        "--drop-unlabelled",
        "Leave out people without a label, those who were rejected in the past.",
    ),
    *FILE_OPTIONS,
    option(
        "--fewest N",
        "People with each outcome that every group needs.  [default: 10; solve, frontier: 0]",
        NATURAL,
    ),
)
"""What the columns of a table mean; `column_meaning` reads them."""
TABLE_OPTIONS = (click.Argument(["data"], metavar="DATA"), *MEANING_OPTIONS)

SCORE = option("--score COL", "The score column for --class thresholds (high is good).")
GROUP_USE = option(
    "--group-use",
    "Whether the group is only measured, or may influence the decision.",
    click.Choice(("certify-only", "decide")),
    default="certify-only",
)
FALSE_ACCEPT, FALSE_REJECT = "Cost of accepting a bad outcome", "Cost of rejecting a good outcome"
PROBLEM_OPTIONS = (
    option(
        "--limit", "Largest allowed difference of the rate between groups.", float, default=0.05
    ),
    option("--class kind", "The rules to choose from.", CLASS_NAME, default="stumps"),
    SCORE,
    option("--price-false-accept X", f"{FALSE_ACCEPT}: a number or a column.", default="1"),
    option("--price-false-reject Y", f"{FALSE_REJECT}: a number or a column.", default="1"),
    GROUP_USE,
)
"""What is to be solved on a table."""
PRICE_OPTIONS = (
    option("--price-false-accept", f"{FALSE_ACCEPT}.", float, default=1.0),
    option("--price-false-reject", f"{FALSE_REJECT}.", float, default=1.0),
)
"""The prices where they are numbers."""
ONE_RATE = option(
    "--rate",
    "The rate whose gap is limited: false positive, false negative, selection.",
    RATE_NAME,
    default="fpr",
)
MANY_RATES = option(
    "--rate",
    "The rate to hold even; give it twice for equalised odds (--rate fpr --rate fnr).",
    RATE_NAME,
    multiple=True,
    default=("fpr",),
)

WRITTEN = ("delimiter", "encoding", "decimal", "dates", "skip_lines", "sheet")
PLAIN = ("label", "good", "group", "id", "encode", "drop_missing", "fewest", *WRITTEN)
LISTS = ("bad", "groups", "features", "leave_out", "missing")
FLAGS = ("drop_unlabelled", "no_header")
"""The options that say what the columns of a table mean; a `Description` has the same names."""


def split(text: str | None) -> tuple[str, ...]:
    """ "a, b" -> ("a", "b")."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def column_meaning(options: Mapping[str, Any]) -> Json:
    """What options say about the columns of a table, as `read_table` takes it."""
    given = {key: options.get(key) for key in PLAIN}
    given |= {key: split(options.get(key)) or None for key in LISTS}
    if options.get("missing") is not None:
        given["missing"] = split(options["missing"])  # --missing "": nothing is a missing value
    given["unlabelled"] = "drop" if options.get("drop_unlabelled") else None
    given["header"] = False if options.get("no_header") else None
    return {key: value for key, value in given.items() if value is not None}


def file_reading(options: Mapping[str, Any]) -> Json:
    """What options say about how a file is written, as `read_frame` takes it."""
    return {key: value for key, value in column_meaning(options).items() if key in READING}


def command_words(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """The words that set options to what they are, where that is not their default.

    defaults: what is left out, by the name of the option; None means nothing is.
    """
    words = []
    for name, default in defaults.items():
        flag, value = f"--{name.replace('_', '-')}", options[name]
        if value is True:
            words.append(flag)
        elif value is not None and value is not False and value != default:
            several: Sequence[Any] = value if isinstance(value, tuple | list) else (value,)
            for one in several:
                words += [flag, f"{one:g}" if isinstance(one, float) else str(one)]
    return words


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """What the user asked for: a table, what its columns mean (as `read_table` takes it), and what
    is to be solved on it, as typed.
    """

    data: str | Path
    meaning: Mapping[str, Any]
    rate: str | tuple[str, ...] = "fpr"
    limit: float = 0.05
    kind: str = "stumps"
    score: str | None = None
    price_false_accept: str = "1"
    price_false_reject: str = "1"
    group_use: str = "certify-only"
    holdout: float | None = None
    seed: int = 0
    fewest_by_default: int = 0
    """What `fewest` is by default: rates that are measured on the table itself need nobody."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "TableRequest":
        """The request that the options of a command make."""
        names = [entry.name for entry in fields(cls)]
        own = {name: options[name] for name in names if name in options}
        return cls(meaning=column_meaning(options), **own)

    def read(self, needed: tuple[str, ...]) -> LabelledFrame:
        """The table; thresholds cut one score column, other classes use any columns."""
        meaning = dict(self.meaning)
        if self.kind == "thresholds":
            if self.score is None or "features" in meaning:
                given = "--features was given" if "features" in meaning else "--score is missing"
                raise InvalidInput(
                    f"--class thresholds cuts one score column; {given}.",
                    hint="name it with --score COL, without --features.",
                )
            meaning["features"] = (self.score,)
        elif self.score:
            raise InvalidInput(
                f"--score {self.score} belongs to --class thresholds, but the class is {self.kind}."
            )
        usual = self.fewest_by_default
        frame = read_table(self.data, fewest_by_default=usual, needed=needed, **meaning)
        if self.score is not None and frame.frame[self.score].numbers is None:
            raise InvalidInput(
                f"--score {self.score} is a text column; thresholds cut a column of numbers.",
                hint="name another column, or choose --class stumps with --encode.",
            )
        return frame


@dataclass(frozen=True, eq=False)
class TableProblem:
    """A problem ready to be solved, with the names that let its answer be told in words."""

    source: str
    problem: CostSensitiveProblem
    sample: LabelledSample
    hypotheses: HypothesisClass
    kind: str
    rates: tuple[Rate, ...]
    limit: float
    group_use: GroupUse
    table: Table
    label: str
    good: str
    group: str
    prices: Mapping[str, str]
    priced: bool
    dropped: int
    missing: tuple[str, ...] | None = None
    """How a missing value is written in the table, where that is not the usual way."""
    warnings: tuple[Misleading, ...] = ()
    held: LabelledSample | None = None
    """People who were held out."""


def table_problem(options: Mapping[str, Any]) -> TableProblem:
    """Read the table and build the problem that options describe; every complaint about the input
    is made here.
    """
    request = TableRequest.of(options)
    names = (request.rate,) if isinstance(request.rate, str) else request.rate
    prices = {name: getattr(request, f"price_{name}") for name in ("false_accept", "false_reject")}
    costs: dict[str, float | FloatArray] = {}
    for name, price in prices.items():
        with contextlib.suppress(ValueError):  # the name of a column
            costs[name] = float(price)
    priced = any(costs.get(name) != 1.0 for name in prices)
    frame = request.read(tuple(price for name, price in prices.items() if name not in costs))
    table, held = frame.encoded(), None
    chosen: slice | BoolArray = slice(None)
    if request.holdout is not None:
        chosen = ~held_out(table.group, request.holdout, request.seed)
        table, held = table.rows(chosen), table.rows(~chosen).sample
    for name in prices.keys() - costs.keys():
        costs[name] = frame.frame.finite(prices[name])[chosen]
    sample = table.sample
    per_group = request.kind == "thresholds" and request.group_use == "decide"
    return TableProblem(
        source=Path(request.data).name,
        problem=Prices(**costs).problem(sample.features, sample.group, sample.label),
        sample=sample,
        hypotheses=ScoreThresholds(per_group=True) if per_group else CLASSES[request.kind](),
        kind=request.kind,
        rates=tuple(RATES[name] for name in dict.fromkeys(names)),
        limit=request.limit,
        group_use=cast(GroupUse, request.group_use.replace("-", "_")),
        table=table,
        label=frame.label_name,
        good=frame.good,
        group=frame.group_name,
        prices=prices,
        priced=priced,
        dropped=frame.dropped,
        missing=frame.missing,
        warnings=misleading(table, frame.group_name),
        held=held,
    )


def held_out(group: GroupArray, share: float, seed: int) -> BoolArray:
    """Which rows are held out: the same share of every group, drawn by `seed`."""
    if not 0 < share < 1:
        raise InvalidInput(f"--holdout is {share:g}; it lies between 0 and 1.", hint="0.3.")
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(group), dtype=bool)
    for value in dict.fromkeys(group.tolist()):
        rows = np.flatnonzero(group == value)
        taken = round(share * len(rows))
        if not 0 < taken < len(rows):
            raise InvalidInput(
                f"group {value!r} has {len(rows)} people; --holdout {share:g} leaves nobody on one "
                "side.",
                hint="leave the group out (--groups), or hold out another share.",
            )
        chosen[rng.permutation(rows)[:taken]] = True
    return chosen
