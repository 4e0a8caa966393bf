"""How numbers are written in a column: plainly, as money, in percent, with a decimal comma, as yes
and no, or as dates.

A column has one notation, which all its values must follow; what can be read in two ways is left
alone, with the doubt in words and the option that settles it. Nothing is decided cell by cell.

    '$51,000'  '1.234,50'  '(300)'     numbers
    '45%'                              numbers, 0.45
    'Yes' 'n ' 'TRUE'                  1 and 0
    '2021-03-04'  '4 Mar 2021'         days since 1970-01-01
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, cast

from evenhand.errors import InvalidInput

TRUE = frozenset({"true", "yes", "y", "t", "1", "1.0"})
FALSE = frozenset({"false", "no", "n", "f", "0", "0.0"})
"""The words of yes and no, in small letters."""
DATES = ("day-first", "month-first", "text")
"""What may be said about dates; without it only those are read that can be read in one way."""
CODES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|INR|CNY|BRL|ZAR|MXN|PLN|CZK|HUF"
SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
"""The currency that a sign stands for; a dollar or a yen of another country has its code."""
MINUS, GAPS = "\u2212", " '\u2019\u00a0\u2009\u202f"
"""The minus sign of print, and what may stand between thousands besides points and commas."""
EPOCH = datetime(1970, 1, 1)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

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
_NAMED = re.compile(rf"(\d{{1,2}})[. -]+([A-Za-z]{{3,9}})\.?,?[ -]+(\d{{4}}){_TIME}")
_NAMED_US = re.compile(rf"([A-Za-z]{{3,9}})\.?\s+(\d{{1,2}}),?\s+(\d{{4}}){_TIME}")


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
    decimal: Literal[".", ","] = "."
    percent: bool = False
    order: Literal["year-first", "day-first", "month-first"] = "year-first"
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

    def to_json(self) -> dict[str, Any]:
        """Write it as plain JSON.

        Returns
        -------
        dict
            The fields; without a unit if there is none.
        """
        written = asdict(self)
        return written if self.unit is not None else {k: written[k] for k in written if k != "unit"}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Notation":
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
            whole, last = self.digits[: self.digits.rindex(marks[-1])], marks[-1]
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
        elif (match := _NAMED.fullmatch(text) or _NAMED_US.fullmatch(text)) is not None:
            one, two, year, *clock = match.groups()
            day, name = (one, two) if one[0].isdigit() else (two, one)
            month = str(MONTHS.index(name[:3].lower()) + 1)
        else:
            return None
        hour, minute, second_, half = int(clock[0] or 0), int(clock[1] or 0), clock[2], clock[3]
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
) -> Notation | str | None:
    """Find out how the numbers of a column are written.

    Parameters
    ----------
    texts : iterable of str
        The distinct values that are not missing.
    decimal : {".", ","}, optional
        What --decimal says.
    dates : {"day-first", "month-first", "text"}, optional
        What --dates says.
    guess : {".", ","}, optional
        The decimal mark to take if the column itself does not tell it, because other columns or
        the commas between the cells show it; without it 51,000 is doubtful.

    Returns
    -------
    Notation, str or None
        The notation; or the doubt in words, with the option that settles it; None for a text.

    Examples
    --------
    >>> find_notation(["$51,000", "$800"]).value("$51,000")
    51000.0
    >>> find_notation(["51,000", "48,500"])
    "'51,000' may be 51000 or 51; say --decimal . or --decimal ,"
    >>> find_notation(["3/4/2021", "5/6/2021"])
    "'3/4/2021' may be 3 April or 4 March; say --dates day-first or --dates month-first"
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
    """Tell the currency of an amount.

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
) -> Notation | str | None:
    marks = {part.mark for part in parts}
    percents, units = {part.percent for part in parts}, {part.unit for part in parts} - {None}
    if len(percents) > 1:
        return "some values have a percent sign and some have none; write all in one way"
    if len(units) > 1:
        return f"the amounts are in {' and '.join(sorted(map(str, units)))}; convert them first"
    sure = marks & {".", ","}
    if len(sure) > 1:
        return "some decimals stand after a point and some after a comma; write all in one way"
    mark = decimal or next(iter(sure), None) or guess or None
    english, doubtful = units & {"$", "£", "USD", "GBP"}, marks & {"?.", "?,"}
    if mark is None and doubtful and not english and (units or doubtful != {"?."}):
        example = next(v for v, part in zip(values, parts, strict=True) if part.mark in doubtful)
        amount = cast(Amount, _amount(example.strip()))
        readings = (amount.number(".") or 0.0, amount.number(",") or 0.0)
        whole, small = max(readings, key=abs), min(readings, key=abs)
        return f"{example!r} may be {whole:g} or {small:g}; say --decimal . or --decimal ,"
    unit = next(iter(units), None)
    chosen = Notation("number", cast(Any, mark or "."), percents == {True}, unit=currency(unit))
    wrong = [v for v in values if chosen.value(v) is None]
    if wrong:
        return f"{wrong[0]!r} does not fit --decimal {mark}; write all in one way"
    return chosen


def _date_notation(values: list[str], dates: str | None) -> Notation | str | None:
    if all(_days(value, "year-first") is not None for value in values):
        return Notation("date")
    fits = {
        order: all(_days(value, order) is not None for value in values)
        for order in ("day-first", "month-first")
    }
    if not any(fits.values()):
        return None
    if dates is not None:
        if fits[dates]:
            return Notation("date", order=cast(Any, dates))
        wrong = next(value for value in values if _days(value, dates) is None)
        return f"{wrong!r} is no date with --dates {dates}"
    ordered = [match for value in values if (match := _ORDERED.fullmatch(value.strip()))]
    short = next((match[0] for match in ordered if len(match[4]) == 2), None)
    if short is not None:
        return (
            f"{short!r} does not say its century; say --dates day-first or --dates month-first, "
            "and 69 to 99 are taken for 1969 to 1999"
        )
    if all(match[2] == "." for match in ordered) and fits["day-first"]:
        return Notation("date", order="day-first")  # nobody writes the month first with points
    if all(fits.values()):
        first, second = int(ordered[0][1]), int(ordered[0][3])
        one, two = (date(2000, month, 1).strftime("%B") for month in (second, first))
        return (
            f"{ordered[0][0]!r} may be {first} {one} or {second} {two}; "
            "say --dates day-first or --dates month-first"
        )
    return Notation("date", order="day-first" if fits["day-first"] else "month-first")
