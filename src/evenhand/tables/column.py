"""One column of a table: what its cells say, where a value is missing, and how its numbers are
written: plainly, as money, in percent, with a decimal comma, as yes and no, or as dates.

A column has one notation, which all its values must follow; what can be read in two ways is left
alone, with the ambiguity in words and the argument that settles it. Nothing is decided cell by
cell.

    '$51,000'  '1.234,50'  '(300)'     numbers
    '45%'                              numbers, 0.45
    'Yes' 'n ' 'TRUE'                  1 and 0
    '2021-03-04'  '4.3.2021'           days since 1970-01-01
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import compress, islice
from types import NoneType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray

DecimalMark = Literal[".", ","]
DateOrder = Literal["year-first", "day-first", "month-first"]
Cells = Sequence[Any] | NDArray[Any]
FEW = 5
"""Cells of a column that its `repr` shows at most."""
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "#n/a"})
"""How a missing value is written, in any case. Every reader of evenhand uses this set; an empty
cell is always missing."""
TRUE = frozenset({"true", "yes", "y", "t", "1", "1.0"})
FALSE = frozenset({"false", "no", "n", "f", "0", "0.0"})
"""The words of yes and no, in small letters."""
DATES = ("day-first", "month-first", "text")
"""What may be said about dates; without it only those are read that can be read in one way."""
CODES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|INR|CNY|BRL|ZAR|MXN|PLN|CZK|HUF"
SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
"""The currency that a sign stands for; a dollar or a yen of another country has its code."""
MINUS = "\u2212"
GAPS = " '\u2019\u00a0\u2009\u202f"
"""The minus sign of print, and what may stand between thousands besides points and commas."""
EPOCH = datetime(1970, 1, 1)

_AMOUNT = re.compile(
    rf"(?P<sign>[-+{MINUS}(])?\s*(?P<before>[$€£¥₹]|{CODES})?\s*(?P<inner>[-+{MINUS}])?"
    rf"(?P<digits>\d[\d.,{GAPS}]*|[.,]\d+)(?P<exponent>[eE][-+]?\d+)?"
    rf"\s*(?P<after>[$€£¥₹%]|{CODES})?\s*(?P<closed>\))?"
)
_THOUSANDS = re.compile(rf"\d{{1,3}}([.,{GAPS}])\d{{3}}(\1\d{{3}})*")
_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([AaPp][Mm])?)?"
_ORDERED = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_TIME}")
_SLASHED = re.compile(rf"(\d{{4}})([/.-])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_NAMED = re.compile(
    rf"(?:\d{{1,2}}[. -]+{_MONTH}|{_MONTH}\s+\d{{1,2}}),?[ -]+\d{{4}}{_TIME}", re.IGNORECASE
)


def number(text: str) -> float | None:
    """Read a number.

    Parameters
    ----------
    text : str
        What stands in a cell.

    Returns
    -------
    float or None
        The number, or None if the text is none.

    Examples
    --------
    >>> number("1e3"), number("many")
    (1000.0, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def same_value(text: str, other: str) -> bool:
    """Whether two cells say the same: equal texts, or equal numbers.

    Parameters
    ----------
    text, other : str
        What stands in the two cells.

    Returns
    -------
    bool
        Whether they are the same value.

    Examples
    --------
    >>> same_value("1", "1.0"), same_value("yes", "Yes")
    (True, False)
    """
    return text == other or (number(text) is not None and number(text) == number(other))


def listed(values: Iterable[str], most: int = 6) -> str:
    """Name the first values of a list in a message.

    Parameters
    ----------
    values : iterable of str
        All of them.
    most : int
        How many are named.

    Returns
    -------
    str
        The values with commas between them, and dots where some are left out.

    Examples
    --------
    >>> listed("abcd", 2)
    'a, b, ...'
    """
    every = list(values)
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "")


@dataclass(frozen=True)
class Notation:
    """One way of writing numbers.

    Parameters
    ----------
    kind : {"number", "flag", "date"}
        Numbers, yes and no, or dates.
    decimal : {".", ","}
        What stands before the decimals of a number.
    percent : bool
        Whether numbers are written in percent.
    order : {"year-first", "day-first", "month-first"}
        How dates are written.
    unit : str, optional
        The currency of amounts of money, as its code where that is known.

    Examples
    --------
    >>> Notation("number").value("$51,000.50"), Notation("number", decimal=",").value("3,5")
    (51000.5, 3.5)
    >>> Notation("number", percent=True).value("45%"), Notation("flag").value("Yes ")
    (0.45, 1.0)
    >>> Notation("date").value("2021-03-04"), Notation("date").value("tomorrow")
    (18690.0, None)
    """

    kind: Literal["number", "flag", "date"]
    decimal: DecimalMark = "."
    percent: bool = False
    order: DateOrder = "year-first"
    unit: str | None = None

    def value(self, text: str) -> float | None:
        """Read one cell.

        Parameters
        ----------
        text : str
            What stands in it.

        Returns
        -------
        float or None
            The number; None if the cell is not written in this way.
        """
        if self.kind == "flag":
            word = text.strip().lower()
            return 1.0 if word in TRUE else 0.0 if word in FALSE else None
        if self.kind == "date":
            return _days(text.strip(), self.order)
        part = _amount(text.strip())
        if part is None or part.percent != self.percent:
            return None
        return part.number(self.decimal)

    def to_json(self) -> Json:
        """Write it as plain JSON.

        Returns
        -------
        dict
            The fields; without a unit if there is none.
        """
        written = asdict(self)
        return written if self.unit is not None else {k: written[k] for k in written if k != "unit"}

    @classmethod
    def from_json(cls, document: Params) -> "Notation":
        """Read it back.

        Parameters
        ----------
        document : mapping
            What `to_json` wrote.

        Returns
        -------
        Notation
            The same notation.
        """
        known = {
            "kind": ("number", "flag", "date"),
            "decimal": (".", ","),
            "percent": (True, False),
        }
        known["order"] = ("year-first", "day-first", "month-first")
        for key, value in document.items():
            if key == "unit" and isinstance(value, str):
                continue
            if key not in known or value not in known[key]:
                raise InvalidInput(f"a notation has no {key} = {value!r}.")
        return cls(**document)


PLAIN = Notation("number")


@dataclass(frozen=True)
class Amount:
    """A number as it is written: its sign, its digits with all marks, and its unit."""

    negative: bool
    digits: str
    exponent: str
    unit: str | None
    percent: bool

    @property
    def mark(self) -> str:
        """The decimal mark: "." or ",", "" if there is none, "?," or "?." if one mark may be the
        decimal one or that of thousands, "!" if the digits are no number.
        """
        marks = re.sub(r"[^.,]", "", self.digits)
        grouped = re.fullmatch(rf"\d{{1,3}}(?:[.,{GAPS}]\d{{3}})+(?:[.,]\d+)?", self.digits)
        if not marks:
            spaced = re.search(r"\D", self.digits)
            return "!" if spaced and not grouped else ""
        if len(set(marks)) == 2:
            whole = self.digits[: self.digits.rindex(marks[-1])]
            last = marks[-1]
            return last if last not in whole and _THOUSANDS.fullmatch(whole) else "!"
        if len(marks) > 1:
            return {",": ".", ".": ","}[marks[0]] if _THOUSANDS.fullmatch(self.digits) else "!"
        whole, _, rest = self.digits.partition(marks)
        if re.search(r"\D", rest) or (re.search(r"\D", whole) and not _THOUSANDS.fullmatch(whole)):
            return "!"
        doubtful = len(rest) == 3 and re.fullmatch(r"[1-9]\d{0,2}", whole) and not self.exponent
        return f"?{marks}" if doubtful else marks

    def number(self, decimal: str) -> float | None:
        """The value, if `decimal` is the decimal mark."""
        mark = self.mark
        if mark == "!" or (mark in (".", ",") and mark != decimal):
            return None
        other = "," if decimal == "." else "."
        if other in self.digits and not re.fullmatch(
            r"\d{1,3}(\D\d{3})+", self.digits.partition(decimal)[0]
        ):
            return None
        kept = re.sub(rf"[^\d{re.escape(decimal)}]", "", self.digits).replace(decimal, ".")
        value = float(kept + self.exponent) * (-1.0 if self.negative else 1.0)
        return value / 100.0 if self.percent else value


def _amount(text: str) -> Amount | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["sign"] == "(") != (match["closed"] is not None):
        return None
    if (match["before"] and match["after"]) or (match["sign"] and match["inner"]):
        return None
    after = match["after"]
    percent = after == "%"
    minus = match["sign"] in ("-", MINUS, "(") or match["inner"] in ("-", MINUS)
    unit = match["before"] or (None if percent else after)
    return Amount(minus, match["digits"].strip(), match["exponent"] or "", unit, percent)


def _days(text: str, order: str) -> float | None:
    """Days since 1970-01-01 and the part of a day; None if `text` is no date in that order."""
    try:
        if _ISO.fullmatch(text):
            read = datetime.fromisoformat(text)
            read = read.astimezone(UTC).replace(tzinfo=None) if read.tzinfo else read
            return (read - EPOCH) / timedelta(days=1)
        if (match := _SLASHED.fullmatch(text)) is not None:
            year, _, month, day, *clock = match.groups()
        elif (match := _ORDERED.fullmatch(text)) is not None:
            if order == "year-first":
                return None
            first, _, second, year, *clock = match.groups()
            day, month = (first, second) if order == "day-first" else (second, first)
            if len(year) == 2:  # as POSIX has it
                year = f"{'19' if int(year) > 68 else '20'}{year}"
        else:
            return None
        hour = int(clock[0] or 0)
        minute = int(clock[1] or 0)
        second_ = clock[2]
        half = clock[3]
        if half:
            hour = hour % 12 + (12 if half.lower() == "pm" else 0)
        read = datetime(int(year), int(month), int(day), hour, minute, int(second_ or 0))
    except ValueError:
        return None
    return (read - EPOCH) / timedelta(days=1)


def days_of(cell: date) -> float:
    """Days since 1970-01-01 of a date or a time that another library has read.

    Parameters
    ----------
    cell : date or datetime
        The date.

    Returns
    -------
    float
        The days, with the part of the day.

    Examples
    --------
    >>> days_of(date(1970, 1, 3)), days_of(datetime(1970, 1, 1, 12))
    (2.0, 0.5)
    """
    if isinstance(cell, datetime):
        naive = cell.astimezone(UTC).replace(tzinfo=None) if cell.tzinfo else cell
        return (naive - EPOCH) / timedelta(days=1)
    return float((cell - EPOCH.date()).days)


def find_notation(
    texts: Iterable[str], decimal: str | None = None, dates: str | None = None, guess: str = ""
) -> "Notation | Ambiguity | None":
    """Find out how the numbers of a column are written.

    Parameters
    ----------
    texts : iterable of str
        The distinct values that are not missing.
    decimal : {".", ","}, optional
        What stands before decimals, where the user says so.
    dates : {"day-first", "month-first", "text"}, optional
        How dates are written, where the user says so.
    guess : {".", ","}, optional
        The decimal mark to take if the column itself does not show it, because other columns or
        the commas between the cells show it; without it 51,000 is ambiguous.

    Returns
    -------
    Notation, Ambiguity or None
        The notation; or why it cannot be known, with the argument that settles it; None for a text.

    Examples
    --------
    >>> find_notation(["$51,000", "$800"]).value("$51,000")
    51000.0
    >>> find_notation(["51,000", "48,500"])
    Ambiguity(text="'51,000' may be 51000 or 51: decimal is '.' or ','", argument='decimal')
    >>> find_notation(["3/4/2021", "5/6/2021"]).argument
    'dates'
    >>> find_notation(["red", "7"]) is None
    True
    """
    values = list(texts)
    if not values:
        return None
    words = {value.strip().lower() for value in values}
    if words <= TRUE | FALSE and words & TRUE and words & FALSE:
        return Notation("flag")
    parts = [_amount(value.strip()) for value in values]
    if all(part is not None and part.mark != "!" for part in parts):
        return _number_notation(cast(list[Amount], parts), values, decimal, guess)
    return None if dates == "text" else _date_notation(values, dates)


def currency(unit: str | None) -> str | None:
    """Give the code of a currency that is written by its sign.

    Parameters
    ----------
    unit : str or None
        What stands before or after an amount.

    Returns
    -------
    str or None
        The code, or the unit itself where it is none of the known signs.

    Examples
    --------
    >>> currency("$"), currency("CHF"), currency(None)
    ('USD', 'CHF', None)
    """
    return None if unit is None else SIGNS.get(unit, unit.upper())


def unit_of(text: str) -> str | None:
    """Return the currency of an amount.

    Parameters
    ----------
    text : str
        A cell.

    Returns
    -------
    str or None
        Its currency; None if it has none or is no amount.

    Examples
    --------
    >>> unit_of("$51,000"), unit_of("51 EUR"), unit_of("51")
    ('USD', 'EUR', None)
    """
    amount = _amount(text.strip())
    return None if amount is None else currency(amount.unit)


def _number_notation(
    parts: list[Amount], values: list[str], decimal: str | None, guess: str
) -> "Notation | Ambiguity | None":
    marks = {part.mark for part in parts}
    percents = {part.percent for part in parts}
    units = {part.unit for part in parts} - {None}
    if len(percents) > 1:
        return Ambiguity("some values have a percent sign and some have none; write all in one way")
    if len(units) > 1:
        several = " and ".join(sorted(map(str, units)))
        return Ambiguity(f"the amounts are in {several}; convert them first")
    sure = marks & {".", ","}
    if len(sure) > 1:
        return Ambiguity(
            "some decimals stand after a point and some after a comma; write all in one way"
        )
    mark = decimal or next(iter(sure), None) or guess or None
    english = units & {"$", "£", "USD", "GBP"}
    unclear = marks & {"?.", "?,"}
    if mark is None and unclear and not english and (units or unclear != {"?."}):
        example = next(v for v, part in zip(values, parts, strict=True) if part.mark in unclear)
        amount = cast(Amount, _amount(example.strip()))
        readings = (amount.number(".") or 0.0, amount.number(",") or 0.0)
        whole = max(readings, key=abs)
        small = min(readings, key=abs)
        return Ambiguity(
            f"{example!r} may be {whole:g} or {small:g}: decimal is '.' or ','", "decimal"
        )
    unit = next(iter(units), None)
    chosen = Notation(
        "number", cast(DecimalMark, mark or "."), percents == {True}, unit=currency(unit)
    )
    wrong = [v for v in values if chosen.value(v) is None]
    if wrong:
        return Ambiguity(
            f"{wrong[0]!r} does not fit the decimal mark {mark!r}; write all in one way", "decimal"
        )
    return chosen


def _date_notation(values: list[str], dates: str | None) -> "Notation | Ambiguity | None":
    if all(_days(value, "year-first") is not None for value in values):
        return Notation("date")
    named = [value for value in values if _NAMED.fullmatch(value.strip())]
    others = [value for value in values if value not in named]
    fits = {
        order: all(_days(value, order) is not None for value in others)
        for order in ("day-first", "month-first")
    }
    if named and any(fits.values()):
        return Ambiguity(
            f"{named[0]!r} is a date with the month in words, which is not read; write 2021-03-04"
        )
    if not any(fits.values()):
        return None
    if dates is not None:
        if fits[dates]:
            return Notation("date", order=cast(DateOrder, dates))
        wrong = next(value for value in values if _days(value, dates) is None)
        return Ambiguity(f"{wrong!r} is no date where dates are {dates}", "dates")
    ordered = [match for value in values if (match := _ORDERED.fullmatch(value.strip()))]
    short = next((match[0] for match in ordered if len(match[4]) == 2), None)
    if short is not None:
        return Ambiguity(
            f"{short!r} does not say its century: dates are day-first or month-first; 69 to 99 "
            "are then taken for 1969 to 1999",
            "dates",
        )
    if all(match[2] == "." for match in ordered) and fits["day-first"]:
        return Notation("date", order="day-first")  # nobody writes the month first with points
    if all(fits.values()):
        first = int(ordered[0][1])
        second = int(ordered[0][3])
        one, two = (date(2000, month, 1).strftime("%B") for month in (second, first))
        return Ambiguity(
            f"{ordered[0][0]!r} may be {first} {one} or {second} {two}: "
            "dates are day-first or month-first",
            "dates",
        )
    return Notation("date", order="day-first" if fits["day-first"] else "month-first")


@dataclass(frozen=True)
class Ambiguity:
    """Why numbers or dates that a column seems to hold cannot be read.

    Parameters
    ----------
    text : str
        The reason, for people.
    argument : str, optional
        The argument of `read_frame` that settles it: "decimal" or "dates".

    Examples
    --------
    >>> find_notation(["51,000", "48,500"]).argument
    'decimal'
    """

    text: str
    argument: str | None = None


@dataclass(frozen=True)
class NumberFormat:
    """What is known about how the numbers of a file are written.

    Parameters
    ----------
    decimal : {".", ","}, optional
        What stands before decimals, where the user says so.
    dates : {"day-first", "month-first", "text"}, optional
        How dates are written, where the user says so.
    guess : {".", ","}, optional
        The decimal mark that other columns of the file show.
    fixed : Notation, optional
        The notation of this column, where a policy has fixed it.

    Examples
    --------
    >>> comma = NumberFormat(decimal=",")
    >>> TableColumn(("51,000", "800"), number_format=comma).numbers.tolist()
    [51.0, 800.0]
    """

    decimal: str | None = None
    dates: str | None = None
    guess: str = ""
    fixed: Notation | None = None


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column: its cells as the source holds them, read as texts or as numbers.

    Parameters
    ----------
    cells : sequence
        Texts, numbers, dates, or None; an array of numbers is kept as it is.
    markers : frozenset of str
        The texts, in small letters, that mean that a value is missing.
    number_format : NumberFormat, optional
        How numbers may be written beyond the plain way; by default in the plain way only.

    Examples
    --------
    >>> income = TableColumn(("10", "NA", "12.5"))
    >>> income.kind, income.numbers.tolist(), income.texts
    ('number', [10.0, nan, 12.5], ('10', None, '12.5'))
    >>> TableColumn(("red", "7")).kind
    'category'
    """

    cells: Cells
    markers: frozenset[str] = MISSING
    number_format: NumberFormat | None = None

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        return f"<TableColumn {self.kind}, {len(self):,} cells: {self.first_values()}>"

    def first_values(self) -> str:
        """The first few cells, for messages.

        Returns
        -------
        str
            With commas between them, and dots where there are more.
        """
        cells = self.cells[:FEW]
        few = cells.tolist() if isinstance(cells, np.ndarray) else cells
        texts = [cell.decode() if isinstance(cell, bytes) else str(cell) for cell in few]
        shown = ["missing" if text.strip().lower() in self.markers else text for text in texts]
        return ", ".join(shown) + (", ..." if len(self) > FEW else "")

    @property
    def _is_bytes(self) -> bool:
        """Whether the cells are the ASCII texts of a long table, as an array of bytes."""
        return isinstance(self.cells, np.ndarray) and self.cells.dtype.kind == "S"

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """The cells as texts, None where a value is missing."""
        cells = self.cells.tolist() if isinstance(self.cells, np.ndarray) else self.cells
        markers = self.markers
        if self._is_bytes:
            value: dict[bytes, str | None] = {}
            for cell in set(cells):
                text = cell.decode()
                value[cell] = None if text.lower() in markers else text
            return tuple(map(value.__getitem__, cells))  # equal cells share one text

        def text_of(cell: object) -> str | None:
            if cell is None or cell != cell:
                return None
            if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
                cell = int(cell)  # other libraries make 1.0 of 1
            read = str(cell).strip()
            return None if read.lower() in markers else read

        return tuple(map(text_of, cells))

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The cells as numbers, NaN where a value is missing; None for a category."""
        return self._read[0]

    @property
    def notation(self) -> Notation | None:
        """How the numbers are written; None for a category."""
        return self._read[1] if isinstance(self._read[1], Notation) else None

    @property
    def currency(self) -> str | None:
        """The currency of amounts of money; None if they have none, or several."""
        if self.notation is not None:
            return self.notation.unit
        units = {unit_of(text) for text in set(self.texts) if text is not None} - {None}
        return units.pop() if len(units) == 1 else None

    @property
    def ambiguity(self) -> Ambiguity | None:
        """Why numbers or dates that the column seems to hold are not read."""
        return self._read[1] if isinstance(self._read[1], Ambiguity) else None

    @cached_property
    def _read(self) -> tuple[FloatArray | None, Notation | Ambiguity | None]:
        """The numbers, and their notation or the reason why it cannot be known."""
        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind in "iuf":
            return self.cells.astype(np.float64), PLAIN
        known_format = self.number_format
        kinds: set[type] = {bytes} if self._is_bytes else set(map(type, self.cells))
        if kinds - {NoneType} and all(issubclass(kind, date | NoneType) for kind in kinds):
            days = [np.nan if c is None or c != c else days_of(c) for c in self.cells]
            return np.array(days, dtype=np.float64), Notation("date")
        if known_format is None or (
            (known_format.fixed or PLAIN) == PLAIN
            and "," not in (known_format.decimal or known_format.guess)
        ):
            plain = self._plain(kinds)
            if plain is not None:
                return plain, PLAIN
        if known_format is None:
            return None, None
        distinct = set(self.texts) - {None}
        known = sorted(text for text in distinct if text is not None)
        found = known_format.fixed or find_notation(
            known, known_format.decimal, known_format.dates, known_format.guess
        )
        if not isinstance(found, Notation):
            return None, found
        value: dict[str | None, float | None] = {text: found.value(text) for text in known}
        value[None] = np.nan
        strange = [text for text, read in value.items() if read is None]
        if strange:
            return None, Ambiguity(f"{strange[0]!r} is not written like the other values")
        return np.array([value[text] for text in self.texts], dtype=np.float64), found

    def _plain(self, kinds: set[type]) -> FloatArray | None:
        """The numbers if all are written plainly."""
        if self._is_bytes:
            cells = np.asarray(self.cells)
            if self.missing.any():
                cells = np.where(self.missing, b"nan", cells)
            try:
                return cells.astype(np.float64)
            except ValueError:
                return None
        # none of the usual markers is a number, so that most columns can be read at once
        if self.markers <= MISSING and (kinds == {str} or kinds <= {int, float, NoneType}):
            try:
                return np.array([np.nan if c is None else float(c) for c in self.cells])
            except ValueError:
                pass  # a category, or a value is missing
        try:
            read = [np.nan if text is None else float(text) for text in self.texts]
        except ValueError:
            return None
        return np.array(read, dtype=np.float64)

    @property
    def kind(self) -> Literal["number", "category"]:
        """ "number" if every value that is not missing is a number, else "category"."""
        return "category" if self.numbers is None else "number"

    @cached_property
    def missing(self) -> BoolArray:
        """Where a value is missing."""
        if self._is_bytes:
            return _missing_bytes(np.asarray(self.cells), self.markers)
        if isinstance(self.cells, np.ndarray) and self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([text is None for text in self.texts], dtype=bool)

    def where(self, rows: BoolArray) -> "TableColumn":
        """Keep some rows.

        Parameters
        ----------
        rows : array of bool
            Which rows are kept.

        Returns
        -------
        TableColumn
            The column of these rows.
        """
        kept = (
            self.cells[rows]
            if isinstance(self.cells, np.ndarray)
            else tuple(compress(self.cells, rows.tolist()))
        )
        return TableColumn(kept, self.markers, self.number_format)


def _missing_bytes(cells: NDArray[np.bytes_], markers: frozenset[str]) -> BoolArray:
    """Where one of many ASCII cells is a marker, in any case."""
    names = [marker.encode() for marker in markers if marker.isascii()]
    # Few cells begin like a marker; only those are put into small letters, which takes long. An
    # empty cell begins with a zero byte.
    begins = np.zeros(256, dtype=bool)
    for name in names:
        first = name[:1] or b"\0"
        begins[ord(first.lower())] = True
        begins[ord(first.upper())] = True
    letters = np.ascontiguousarray(cells).view(np.uint8).reshape(len(cells), -1)
    missing = begins[letters[:, 0]]
    missing[missing] = np.isin(np.char.lower(cells[missing]), names)
    return missing


def with_one_mark(columns: dict[str, TableColumn], known: NumberFormat) -> dict[str, TableColumn]:
    """The columns of a file, read with the decimal mark that some of them show: 51.000 is 51000
    where others have 3,5.
    """
    if known.decimal is not None:
        return columns
    shown = set()
    for column in columns.values():
        if isinstance(column.cells, np.ndarray) and column.cells.dtype.kind in "iufb":
            continue
        if column.notation is PLAIN or TableColumn(column.cells, column.markers).kind == "number":
            continue
        distinct = [text for text in islice(dict.fromkeys(column.texts), 1000) if text]
        if any("," in text for text in distinct):
            found = find_notation(distinct, dates="text")
            if isinstance(found, Notation) and found.kind == "number":
                shown.add(found.decimal)
    if shown != {","}:
        return columns
    guessed = replace(known, guess=",")
    return {name: replace(column, number_format=guessed) for name, column in columns.items()}
