"""What is said of a record, as data: nothing here prints, draws, or knows a medium.

A record (`Measurement`, `TableCertification`, `LaunchPlan`, ...) holds the numbers that people
compute with. From each of them one function makes a `Result`: the same numbers in the order in
which a reader needs them, with their units. `evenhand.media` writes results, and never reads a
record. No text that is shown exists before, so that nothing can read a text as data.

`shown` is the one place that decides digits and signs. A verdict is computed from findings alone,
once; a result that claims something while its verdict is not "within" cannot be constructed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from evenhand.errors import InvalidInput
from evenhand.findings import Finding, Status, judge

Unit = Literal[
    "text",
    "count",
    "percent",
    "share",
    "difference",
    "ratio",
    "cost",
    "extra",
    "total",
    "weight",
    "status",
]
"""What a number is; it decides digits and signs. `extra` is a cost per person beyond
another one, `total` a sum of costs."""

EXIT_CODES: Mapping[Status, int] = {"within": 0, "above": 1, "not shown": 3}
"""What a command with --gate exits with; 2 is an error in the input."""


# cells


class Between(NamedTuple):
    """An interval, or the range that missing outcomes leave."""

    low: float
    high: float


class Amount(NamedTuple):
    """A number with its unit, where no column says it."""

    value: float | Between
    unit: Unit


Cell = str | bool | int | float | Between | Amount | None
"""What stands in a table: a number is a number, and becomes a text in a medium."""

DIGITS: Mapping[str, int] = {
    "share": 3,
    "difference": 3,
    "ratio": 3,
    "cost": 4,
    "extra": 4,
    "weight": 4,
}
SIGNED = frozenset({"difference", "extra"})
WORDS = frozenset({"text", "status"})
"""The units whose cells are words: flush left, and broken where they are long."""
LARGE = 1000
"""A cost or a bare number from here on is shown without decimals."""


def shown(value: Cell, unit: Unit = "text") -> str:
    """A cell in words: the digits and the sign of its unit, a true minus, and no minus zero.

    Parameters
    ----------
    value : str, bool, int, float, Between, Amount or None
        The cell; None is empty, and a number that is none is not determined.
    unit : str
        The unit of its column.

    Returns
    -------
    str
        What every medium shows.

    Examples
    --------
    >>> shown(0.25, "percent"), shown(-0.25, "difference"), shown(-0.00001, "share"), shown(1200)
    ('25.0%', '\u22120.250', '0.000', '1,200')
    >>> shown(Between(-0.1, 0.2), "difference"), shown(Between(0.5, 0.5), "share"), shown(None)
    ('\u22120.100 to +0.200', '0.500', '')
    """
    if value is None:
        return ""
    if isinstance(value, Amount):
        return shown(value.value, value.unit)
    if isinstance(value, Between):
        same = value.low == value.high
        return shown(value.low, unit) if same else " to ".join(shown(end, unit) for end in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return "ABOVE" if unit == "status" and value == "above" else value
    return _number(value, unit).replace("-", "\u2212")


def _number(value: float, unit: Unit) -> str:
    if isnan(value):
        return "not determined"
    if not isfinite(value):
        return "\u221e" if value > 0 else "-\u221e"
    if unit in ("count", "total") or isinstance(value, int):
        return f"{value:z,.0f}"
    if unit == "percent":
        return f"{value:z.1%}"
    sign = "+" if unit in SIGNED else ""
    if abs(value) >= LARGE and unit in ("text", "cost", "extra"):
        return f"{value:{sign},.0f}"
    if unit == "text":
        return f"{value:.6g}"
    return f"{value:{sign}z.{DIGITS[unit]}f}"


# tables


class Column(NamedTuple):
    """A column: its name in data, its head in words, and the unit of its cells."""

    key: str
    head: str
    unit: Unit = "text"


Taken = tuple[Column, Callable[[Any], Cell]]


def column(
    key: str, head: str = "", unit: Unit = "text", take: Callable[[Any], Cell] | None = None
) -> Taken:
    """A column, and how an item fills it: by its attribute of that name, unless `take` says more.

    >>> heading, fill = column("real", "whole", "count")
    >>> heading, fill(3)
    (Column(key='real', head='whole', unit='count'), 3)
    """
    return Column(key, head or key.replace("_", " "), unit), take or attrgetter(key)


@dataclass(frozen=True)
class Table:
    """Typed rows.

    Parameters
    ----------
    key : str
        Its name in data.
    title : str
        Its name in words.
    columns : tuple of Column
        The columns.
    rows : tuple of tuple
        The cells; those that matter most stand first where there are more than `most`.
    note : str
        What stands below.
    named : bool
        Whether it is a list of names with their values.
    parts : int
        So many of the first columns are headings of parts where people read; in data they are
        columns as all others.
    most : int
        So many rows of each part are shown to people; data has all.

    Examples
    --------
    >>> table = Table.of("sizes", "Sizes", [1 + 2j, 3 + 0j], column("real", "whole", "cost"))
    >>> table.rows, [one.head for one in table.columns]
    (((1.0,), (3.0,)), ['whole'])
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    named: bool = False
    parts: int = 0
    most: int = 24

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InvalidInput(f"a row of {self.key} has not {len(self.columns)} cells.")

    @classmethod
    def of(cls, key: str, title: str, items: Iterable[Any], *taken: Taken, **more: Any) -> "Table":
        """A row for each item; a column in which every cell is empty is left out.

        Parameters
        ----------
        key, title : str
            The table's names.
        items : iterable
            What the rows are about.
        *taken : column
            What `column` returned.
        **more
            Further fields of the table.

        Returns
        -------
        Table
            The table.
        """
        made = [tuple(take(item) for _, take in taken) for item in items]
        parts = more.get("parts", 0)
        used = [
            place
            for place in range(len(taken))
            if place < parts or any(row[place] not in (None, "") for row in made)
        ]
        rows = tuple(tuple(row[place] for place in used) for row in made)
        return cls(key, title, tuple(taken[place][0] for place in used), rows, **more)

    @classmethod
    def of_names(cls, key: str, title: str, values: Mapping[str, Cell], note: str = "") -> "Table":
        """Names with values; what is None or empty is left out.

        Parameters
        ----------
        key, title : str
            The table's names.
        values : mapping
            The names and values.
        note : str
            What stands below.

        Returns
        -------
        Table
            The table.
        """
        rows = tuple((name, value) for name, value in values.items() if value not in (None, ""))
        return cls(key, title, (Column("what", ""), Column("value", "")), rows, note, named=True)


def with_rows(*tables: Table) -> tuple[Table, ...]:
    """The tables that have rows."""
    return tuple(table for table in tables if table.rows)


# figures


class Bar(NamedTuple):
    """One interval of a figure; `value` is None where none is determined."""

    name: str
    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Intervals:
    """One line for each interval, top to bottom.

    Parameters
    ----------
    title, xlabel : str
        What is drawn, and of what.
    bars : tuple of Bar
        The intervals.
    limits : tuple of float
        What is allowed: dashed.
    rest : float
        Where nothing differs: 0 for differences, 1 for ratios.
    note : str
        The caption.
    most : int
        So many are drawn.
    """

    title: str
    xlabel: str
    bars: tuple[Bar, ...]
    limits: tuple[float, ...] = ()
    rest: float = 0.0
    note: str = "Dot: on these people. Line: where it lies in the population."
    most: int = 24


class Line(NamedTuple):
    """A line of a figure, with a band if it has one."""

    name: str
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True, eq=False)
class Curves:
    """Lines over one axis.

    Parameters
    ----------
    title, xlabel, ylabel : str
        What is drawn, over what.
    x : sequence of float
        The places.
    lines : tuple of Line
        The lines.
    limits : tuple of float
        What is allowed: dashed.
    note : str
        The caption.
    steps : bool
        Whether a value holds up to the next place.
    logarithmic : bool
        Whether the places are so far apart that their logarithms are shown.
    top : float or None
        Where the values end.
    """

    title: str
    xlabel: str
    ylabel: str
    x: Sequence[float]
    lines: tuple[Line, ...]
    limits: tuple[float, ...] = ()
    note: str = ""
    steps: bool = False
    logarithmic: bool = False
    top: float | None = None


class Point(NamedTuple):
    """A point of a figure, each way with an interval if there is one."""

    name: str
    x: float
    y: float
    across: tuple[float, float] | None = None
    along: tuple[float, float] | None = None


@dataclass(frozen=True)
class Points:
    """Points in a plane, such as gap against cost.

    Parameters
    ----------
    title, xlabel, ylabel : str
        What is drawn.
    points : tuple of Point
        The points, what they are compared with first; `across` is the interval of x, `along` that
        of y.
    joined : bool
        Whether a line leads from point to point.
    note : str
        The caption.
    faded : tuple of (x, y)
        Points in the background.
    excluded : tuple of (x, y)
        A line; left of it and below nothing is reachable.
    highest : float or None
        The largest y that is allowed: dashed.
    reached : tuple of (x, y)
        The vertices of a convex set; all of it is reached.
    """

    title: str
    xlabel: str
    ylabel: str
    points: tuple[Point, ...]
    joined: bool = False
    note: str = ""
    faded: tuple[tuple[float, float], ...] = ()
    excluded: tuple[tuple[float, float], ...] = ()
    highest: float | None = None
    reached: tuple[tuple[float, float], ...] = ()


Figure = Intervals | Curves | Points


# the verdict, and the whole


@dataclass(frozen=True)
class Verdict:
    """What findings say together; the headline of every medium, and the exit code of a gate.

    Parameters
    ----------
    findings : tuple of Finding
        What it rests on.
    delta : float or None
        The probability that a finding is wrong, if it is known.
    about : str
        Whom or what it is about, where that is not all that is shown.

    Examples
    --------
    >>> verdict = Verdict((Finding("gap FPR b minus a", 0.01, 0.04, 0.05),), 0.05)
    >>> verdict.status, verdict.exit_code, verdict.passed
    ('within', 0, True)
    >>> verdict.headline
    'Within what is allowed (at most 0.05).'
    """

    findings: tuple[Finding, ...]
    delta: float | None = None
    about: str = ""

    @property
    def status(self) -> Status:
        """Within, above, or not shown."""
        return judge(self.findings)

    @property
    def exit_code(self) -> int:
        """0 within, 1 above, 3 not shown."""
        return EXIT_CODES[self.status]

    @property
    def passed(self) -> bool:
        """Whether everything is shown to be within what is allowed."""
        return self.status == "within"

    @property
    def headline(self) -> str:
        """The verdict in one sentence, with the finding that is farthest beyond what is allowed,
        unless all is within.
        """
        deciding = [one for one in self.findings if one.status == self.status]
        worst = max(deciding, key=_beyond) if deciding and not self.passed else None
        beyond = "below" if worst is not None and worst.at_least else "above"
        if not self.findings:
            where = f"{self.about}: n" if self.about else "N"
            return f"{where}othing is compared, so that nothing is shown."
        said = {
            "within": "within what is allowed",
            "above": f"{beyond.upper()} what is allowed",
            "not shown": f"neither within nor {beyond} what is allowed is shown",
        }[self.status]
        if self.about:
            said = f"{self.about}: {said}"
        bounds = dict.fromkeys(map(allowed, self.findings))
        if bounds:
            said += f" ({', '.join(bounds)})"
        if worst is not None:
            said += f": {worst.what} lies between {worst.low:.4f} and {worst.high:.4f}"
        return f"{said[0].upper()}{said[1:]}."

    @property
    def table(self) -> Table:
        """The findings, a row for each."""
        sure = self.delta
        return Table.of(
            "findings",
            "Beside what is allowed",
            self.findings,
            column("what", "what"),
            column(
                "interval", "in the population", "share", lambda one: Between(one.low, one.high)
            ),
            column("allowed", "allowed", take=allowed),
            column("status", "status", "status"),
            note=""
            if sure is None
            else f"All of it holds at once with probability {1 - sure:.6g}.",
        )

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON.

        Returns
        -------
        dict
            Status, exit code, delta, and findings with their status.
        """
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "delta": self.delta,
            "about": self.about,
            "findings": [{**vars(one), "status": one.status} for one in self.findings],
        }


def _beyond(one: Finding) -> tuple[float, float]:
    """How far an interval lies beyond what is allowed: its nearer end, then its other one."""
    ends = (one.limit - one.high, one.limit - one.low)
    return ends if one.at_least else (one.low - one.limit, one.high - one.limit)


def allowed(one: Finding) -> str:
    """What a finding is compared with, in words."""
    return f"{'at least' if one.at_least else 'at most'} {one.limit:g}"


@dataclass(frozen=True, eq=False)
class Result:
    """All that is said of a record.

    Parameters
    ----------
    kind : str
        What it is, in a word for programs: "measurement".
    title : str
        What it is about.
    record : object
        The numbers.
    answer : tuple of str
        Sentences, the most important first.
    verdict : Verdict or None
        How the numbers stand to what is allowed, where somebody asked.
    claimed : tuple of Finding or None
        The findings behind a certified claim that the answer makes (none for a constant); None if
        nothing is certified.
    facts : mapping of str to cells
        The few numbers without which nobody should sign.
    tables : tuple of Table
        The figures behind the answer.
    figures : tuple of Intervals, Curves or Points
        Pictures, as data.
    policy : tuple of str
        The policy in words, line by line, if it is about one.
    beware : tuple of str
        What a reader could misread.
    assumptions : tuple of str
        What the answer rests on.
    read : tuple of str
        How the data was read.
    asked : mapping of str to cells
        What was asked: files, their SHA-256, settings.
    command : str
        What to type to make it again.

    Raises
    ------
    InvalidInput
        If something is claimed that its findings, or the verdict about it, do not show.

    Examples
    --------
    >>> far = Finding("gap", 0.0, 0.2, 0.1)
    >>> Result("certificate", "A policy", None, ("Certified.",), claimed=(far,))
    Traceback (most recent call last):
    ...
    evenhand.errors.InvalidInput: a claim is made of what is not shown: gap.
    """

    kind: str
    title: str
    record: object
    answer: tuple[str, ...] = ()
    verdict: Verdict | None = None
    claimed: tuple[Finding, ...] | None = None
    facts: Mapping[str, Cell] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    policy: tuple[str, ...] = ()
    beware: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    asked: Mapping[str, Cell] = field(default_factory=dict)
    command: str = ""

    def __post_init__(self) -> None:
        if self.claimed is None:
            return
        findings = list(self.claimed)
        if self.verdict is not None and not self.verdict.about:
            findings += self.verdict.findings
        for one in findings:
            if one.status != "within":
                raise InvalidInput(f"a claim is made of what is not shown: {one.what}.")

    def table(self, key: str) -> Table:
        """One of the tables.

        Parameters
        ----------
        key : str
            Its name.

        Returns
        -------
        Table
            The table.

        Raises
        ------
        InvalidInput
            If there is none of that name.
        """
        for one in self.tables:
            if one.key == key:
                return one
        known = ", ".join(repr(one.key) for one in self.tables)
        raise InvalidInput(f"there is no table {key!r}; there are {known}.", argument="table")
