"""The columns of a frame: their names, kinds, categories, and where a value may be missing.

A frame of pandas, polars or pyarrow is put in order by name, checked, and encoded once, at the
border, as one matrix of finite float64; everything inside works on such rows and compares them by
equality. What a column takes in the matrix:

    number      itself
    boolean     0 or 1
    category    its place in the categories of the schema: 0, 1, ...
    text        its bytes in UTF-8, six of them to each number

A missing value is `MISSING` (the first number of a text; the others are then 0). A text is its own
code: the schema holds no vocabulary that would have to grow, and no word of a person who is erased.
`Schema.frame` reads rows back, value by value, for models that look at columns by name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.canonical import canonical_digest
from evenhand.errors import InvalidInput, NotFinite, install_hint

__all__ = ["MISSING", "Column", "Schema", "is_frame"]

Kind = Literal["number", "boolean", "category", "text"]
Codes = NDArray[np.float64]

MISSING = -(2.0**60)
"""The code of a missing value, in every column; no number of a frame may be it."""
WHOLE = 2.0**53
"""Whole numbers beyond it are not all float64."""
PACKED = 6
"""Bytes of a text in one number: 48 bits, so that every code is a whole number below 2^53."""
LENGTH = 120
"""How many bytes a text may have, where neither the schema nor the texts say more."""

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "number": ("float64", "float32", *_INTEGERS),
    "boolean": ("bool", "boolean", "object"),
    "category": ("category",),
    "text": ("object", "str", "string"),
}
"""The types that a kind can have in a frame of pandas; the first one is the default."""


@dataclass(frozen=True)
class Column:
    """One column of a frame.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "category", "text"}
        What it holds. The values of a category are listed here; a text may be any.
    categories : tuple, optional
        The values of a category, all texts or all numbers, each named once.
    missing : bool, default False
        Whether a value may be missing.
    unseen : {"refuse", "missing"}, default "refuse"
        What becomes of a value that is none of the categories: the person is refused, or the value
        counts as missing.
    ordered : bool, default False
        Whether the categories stand in an order that models may use.
    length : int, default 120
        How many bytes a text may have in UTF-8; a longer one is refused, never cut.
    dtype : str, optional
        The type of the column in the frame of pandas that models are shown.

    Raises
    ------
    InvalidInput
        If the parts contradict each other.

    Examples
    --------
    >>> Column("city", "category", ("Oslo", "Rome"), missing=True).describe()
    'city (category of 2, may be missing)'
    """

    name: str
    kind: Kind = "number"
    categories: tuple[str | float, ...] = ()
    missing: bool = False
    unseen: Literal["refuse", "missing"] = "refuse"
    ordered: bool = False
    length: int = LENGTH
    dtype: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        name = cast(object, self.name)
        length = cast(object, self.length)  # whatever was given
        self._require(isinstance(name, str) and bool(name), "name", "a text")
        self._require(self.kind in _DTYPES, "kind", f"one of {', '.join(_DTYPES)}")
        self._require(self.unseen in ("refuse", "missing"), "unseen", '"refuse" or "missing"')
        for part in ("missing", "ordered"):
            self._require(isinstance(getattr(self, part), bool), part, "True or False")
        whole = isinstance(length, int) and not isinstance(length, bool) and length >= 1
        self._require(whole, "length", "a whole number of bytes, at least 1")
        named = bool(self.categories) == (self.kind == "category")
        self._require(named, "categories", "the list of values of a category, and of no other kind")
        texts = all(isinstance(value, str) for value in self.categories)
        numbers = all(_is_number(value) and math.isfinite(value) for value in self.categories)
        distinct = len(set(self.categories)) == len(self.categories)
        requirement = "all texts or all finite numbers, each named once"
        self._require((texts or numbers) and distinct, "categories", requirement)
        if self.unseen == "missing":
            self._require(self.kind == "category", "unseen", '"refuse", unless it is a category')
            object.__setattr__(self, "missing", True)
        types = _DTYPES[self.kind]
        dtype = self.dtype
        if dtype is None:
            dtype = "boolean" if self.kind == "boolean" and self.missing else types[0]
        self._require(dtype in types, "dtype", f"one of {', '.join(types)} in a {self.kind}")
        if self.missing and dtype in _INTEGERS:
            dtype = "float64"
        elif self.missing and dtype == "bool":
            dtype = "boolean"
        object.__setattr__(self, "dtype", dtype)

    def _require(self, kept: bool, part: str, requirement: str) -> None:
        if not kept:
            value = repr(getattr(self, part))
            raise InvalidInput(
                f"{part} of the column {self.name!r} is {value}",
                requirement=f"it is {requirement}",
                argument=part,
                column=self.name,
                value=value,
            )

    @property
    def width(self) -> int:
        """How many numbers of the matrix it takes."""
        return math.ceil(self.length / PACKED) if self.kind == "text" else 1

    @property
    def plain(self) -> bool:
        """Whether its codes are numbers that a rule may compare: numbers and truth values, none of
        them missing.
        """
        return self.kind in ("number", "boolean") and not self.missing

    def describe(self) -> str:
        """The column in words.

        Returns
        -------
        str
            For example "age (number)".
        """
        kind = f"category of {len(self.categories)}" if self.kind == "category" else self.kind
        return f"{self.name} ({kind}{', may be missing' if self.missing else ''})"

    def to_json(self) -> dict[str, Any]:
        """The column as plain JSON; what is as by default is left out.

        Returns
        -------
        dict
            `Schema.from_json` reads it back.
        """
        written: dict[str, Any] = {"name": self.name, "kind": self.kind, "dtype": self.dtype}
        if self.kind == "category":
            written["categories"] = list(self.categories)
        if self.kind == "text":
            written["length"] = self.length
        usual = {"missing": False, "unseen": "refuse", "ordered": False}
        return written | {
            name: getattr(self, name)
            for name, value in usual.items()
            if getattr(self, name) != value
        }

    def encode(self, values: Any) -> Codes:
        """The codes of values.

        Parameters
        ----------
        values : array of numbers, or sequence
            One value per row; None, NaN and pandas.NA are missing.

        Returns
        -------
        array, shape (rows, width)
            Finite numbers.

        Raises
        ------
        InvalidInput
            If a value is of another kind, missing where none may be, or unseen. The message names
            the row.
        """
        if self.kind == "number" and isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            return self._numbers(values)
        given = values.tolist() if isinstance(values, np.ndarray) else list(values)
        kinds = set(map(type, given))
        if not kinds <= {*_TYPES[self.kind], type(None)}:  # NaN and pandas.NA, or something wrong
            given = [None if _is_missing(value) else value for value in given]
            for row, value in enumerate(given):
                if value is not None and not self._takes(value):
                    raise self._wrong(row, value, _REQUIREMENTS[self.kind])
        if self.kind == "number":
            for row, value in enumerate(given):
                if isinstance(value, int) and abs(value) > WHOLE:
                    raise self._wrong(row, value, _FLOAT, _AS_TEXT)
            return self._numbers(np.array([math.nan if v is None else float(v) for v in given]))
        distinct = {value: place for place, value in enumerate(dict.fromkeys(given))}
        table = np.zeros((len(distinct), self.width))
        for place, value in enumerate(distinct):
            table[place] = self._code(given, value)
        codes = table[[distinct[value] for value in given]]
        self._require_present(codes)
        return codes

    def _takes(self, value: object) -> bool:
        """Whether a value is of the kind of the column; a category of another kind is unseen."""
        if self.kind == "text":
            return isinstance(value, str)
        if self.kind == "boolean":
            return isinstance(value, bool | np.bool_)
        if self.kind == "number":
            return _is_number(value)
        return isinstance(value, str) or _is_number(value)

    def _numbers(self, given: NDArray[Any]) -> Codes:
        if (
            given.dtype.kind in "iu"
            and given.size
            and not -WHOLE <= given.min() <= given.max() <= WHOLE
        ):
            row = int(np.argmax(np.abs(given.astype(np.float64))))
            raise self._wrong(row, given[row], _FLOAT, _AS_TEXT)
        values = given.astype(np.float64)
        if self.dtype == "float32":
            with np.errstate(over="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        gaps = np.isnan(values)
        wrong = np.isinf(values) | (values == MISSING)
        if wrong.any():
            row = int(np.argmax(wrong))
            requirement = "a number is finite"
            if values[row] == MISSING:
                requirement += " and not the code of a missing value"
            raise NotFinite(
                f"the column {self.name!r} is {given[row].item()} in row {row}",
                requirement=requirement,
                hint="leave the person out, or mark the value as missing.",
                column=self.name,
                row=row,
                value=str(given[row].item()),
            )
        if self.dtype in _INTEGERS:
            kind = np.iinfo(self.dtype)
            broken = ~gaps & (
                (values != np.floor(values)) | (values < kind.min) | (values > kind.max)
            )
            if broken.any():
                row = int(np.argmax(broken))
                hint = f'give the schema: schema.changed({self.name!r}, dtype="float64").'
                raise self._wrong(row, given[row], f"a whole number of type {self.dtype}", hint)
        codes = np.where(gaps, MISSING, values + 0.0)[:, np.newaxis]
        self._require_present(codes)
        return codes

    def _code(self, given: list[Any], value: Any) -> float | list[float]:
        """The code of one value; `given` shows the row for an error."""
        if value is None:
            return [MISSING, *[0.0] * (self.width - 1)]
        if self.kind == "boolean":
            return float(value)
        if self.kind == "category":
            code = self._places.get(value)
            if code is None and self.unseen == "missing":
                return MISSING
            if code is None:
                listed = ", ".join(map(repr, self.categories[:8]))
                more = ", ..." if len(self.categories) > 8 else ""
                hint = f'schema.changed({self.name!r}, unseen="missing") lets it count as missing.'
                raise self._wrong(given.index(value), value, f"one of {listed}{more}", hint)
            return code
        written: bytes = value.encode(errors="surrogatepass")
        requirement = ""
        hint = ""
        if written != value.encode(errors="replace"):
            requirement = "a text that UTF-8 can write"
        elif b"\0" in written:
            requirement = "a text without the character NUL"
        elif len(written) > self.length:
            requirement = f"a text of at most {self.length} bytes, and this one has {len(written)}"
            hint = f"schema.changed({self.name!r}, length={2 * len(written)}) lets it in."
        if requirement:
            raise self._wrong(given.index(value), value, requirement, hint)
        padded = written.ljust(PACKED * self.width, b"\0")
        starts = range(0, len(padded), PACKED)
        return [float(int.from_bytes(padded[at : at + PACKED], "big")) for at in starts]

    @cached_property
    def _places(self) -> dict[str | float, float]:
        return {value: float(place) for place, value in enumerate(self.categories)}

    def _require_present(self, codes: Codes) -> None:
        gaps = codes[:, 0] == MISSING
        if not self.missing and gaps.any():
            row = int(np.argmax(gaps))
            raise NotFinite(
                f"the column {self.name!r} is missing in row {row}",
                requirement="the schema allows no missing value there",
                hint=f"fill it in before, or allow it: schema.changed({self.name!r}, "
                "missing=True), if the model can deal with it.",
                column=self.name,
                row=row,
                value="missing",
            )

    def _wrong(self, row: int, value: object, requirement: str, hint: str = "") -> InvalidInput:
        written = repr(value.item() if isinstance(value, np.generic) else value)
        shown = written if len(written) <= 60 else written[:57] + "..."
        return InvalidInput(
            f"the column {self.name!r} is {shown} in row {row}",
            requirement=f"it must be {requirement}",
            hint=hint or None,
            column=self.name,
            row=row,
            value=shown,
        )

    def require_codes(self, codes: Codes) -> None:
        """Refuse numbers that `encode` cannot have made.

        Parameters
        ----------
        codes : array, shape (rows, width)
            Finite numbers.

        Raises
        ------
        InvalidInput
            If a number is no code of this column.
        """
        self._require_present(codes)
        if self.kind == "number":
            return
        top = {"boolean": 1, "category": len(self.categories) - 1, "text": 2 ** (8 * PACKED) - 1}
        known = (codes >= 0) & (codes <= top[self.kind]) & (codes == np.floor(codes))
        known[:, 0] |= codes[:, 0] == MISSING
        if not known.all():
            row, place = (int(i) for i in np.argwhere(~known)[0])
            raise InvalidInput(
                f"the column {self.name!r} has the code {codes[row, place]:g} in row {row}, which "
                f"stands for no {self.kind}.",
                hint="an array has no names: pass a frame, or what schema.encode(frame) returns.",
            )

    def values(self, codes: Codes, missing: object) -> list[object]:
        """The values of codes, which `require_codes` has let pass.

        Parameters
        ----------
        codes : array, shape (rows, width)
            The codes.
        missing : object
            What stands for a missing value.

        Returns
        -------
        list
            One value per row.
        """
        gaps = (codes[:, 0] == MISSING).tolist()
        if self.kind == "text":
            present = np.where(codes == MISSING, 0.0, codes)
            parts = present.astype(">u8").view(np.uint8).reshape(len(codes), self.width, 8)
            rows = np.ascontiguousarray(parts[:, :, 8 - PACKED :]).reshape(len(codes), -1)
            texts = [row.tobytes().rstrip(b"\0").decode() for row in rows]
            return [missing if gap else text for gap, text in zip(gaps, texts, strict=True)]
        numbers = codes[:, 0].tolist()
        read: Callable[[float], object] = float
        if self.kind == "boolean":
            read = bool
        elif self.kind == "category":
            read = lambda code: self.categories[int(code)]  # noqa: E731
        elif self.dtype in _INTEGERS:
            read = int
        return [missing if gap else read(code) for gap, code in zip(gaps, numbers, strict=True)]


_TYPES: Mapping[str, tuple[type, ...]] = {
    "number": (int, float),
    "boolean": (bool,),
    "category": (str, int),
    "text": (str,),
}
_REQUIREMENTS: Mapping[str, str] = {
    "number": "a number",
    "boolean": "True or False",
    "category": "one of its categories",
    "text": "a text",
}
_FLOAT = "a number that float64 can hold"
_AS_TEXT = "a number that names something is a text: cast the column to text."


@dataclass(frozen=True)
class Schema:
    """The columns of the people's features, in order.

    Parameters
    ----------
    columns : tuple of Column
        At least one; each name once. A text alone stands for a column of numbers.

    Raises
    ------
    InvalidInput
        If there is no column, or a name stands twice.

    See Also
    --------
    Schema.of : What a frame shows.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"income": [30.5, None], "city": ["Oslo", "Rome"]})
    >>> schema = Schema.of(people)
    >>> schema.describe()
    'income (number, may be missing), city (text)'
    >>> rows = schema.encode(people[["city", "income"]])  # put in order by name
    >>> schema.frame(rows).equals(people)
    True
    >>> schema.encode(people.rename(columns={"income": "Income"}))
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: the frame has no column 'income'; it has 'Income', ...
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        listed: tuple[Any, ...] = tuple(self.columns)
        given = tuple(Column(one) if isinstance(one, str) else one for one in listed)
        object.__setattr__(self, "columns", given)
        if not given or not all(isinstance(one, Column) for one in given):
            raise InvalidInput(
                f"the columns of a schema are {given!r}; it needs at least one Column.",
                hint='Schema((Column("age"), Column("city", "text"))), or Schema.of(frame).',
            )
        _require_distinct([column.name for column in given], "the schema")

    @classmethod
    def of(cls, frame: object) -> "Schema":
        """What a frame shows of its columns.

        Parameters
        ----------
        frame : frame of pandas, polars or pyarrow
            Some people; all kinds of values should occur in it.

        Returns
        -------
        Schema
            Numbers, truth values, categories and texts by the types of the columns; a value may be
            missing where one is missing in the frame. A text may be four times as long as the
            longest one in the frame, and 120 bytes in any case.

        Raises
        ------
        InvalidInput
            If a column is of no such kind (dates, lists, a mixture), or has no value at all.

        Examples
        --------
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [31, 40], "owner": [True, None]})
        >>> Schema.of(people).describe()
        'age (number), owner (boolean, may be missing)'
        """
        named = _narwhals_frame(frame)
        return cls(tuple(_column_of(name, named[name]) for name in named.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def width(self) -> int:
        """How many columns the matrix has."""
        return sum(column.width for column in self.columns)

    @cached_property
    def places(self) -> Mapping[str, slice]:
        """Which columns of the matrix belong to a column of the frame."""
        places = {}
        start = 0
        for column in self.columns:
            places[column.name] = slice(start, start + column.width)
            start += column.width
        return places

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """A name for each column of the matrix: that of the column it belongs to."""
        return tuple(column.name for column in self.columns for _ in range(column.width))

    @cached_property
    def plain(self) -> bool:
        """Whether every code is a number that a rule may compare: then the matrix is what the frame
        holds.
        """
        return all(column.plain for column in self.columns)

    @cached_property
    def sha256(self) -> str:
        """The hash of its canonical JSON, by which certificates name it."""
        return canonical_digest(self.to_json())

    def __getitem__(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidInput(
            f"the schema has no column {name!r}; it has {', '.join(map(repr, self.names))}."
        )

    def changed(self, name: str, **parts: Any) -> "Schema":
        """The schema with one column changed.

        Parameters
        ----------
        name : str
            The column.
        **parts
            Parts of `Column` with their new values.

        Returns
        -------
        Schema
            Another schema.

        Examples
        --------
        >>> Schema(("age", "income")).changed("income", missing=True).describe()
        'age (number), income (number, may be missing)'
        """
        known = {one.name for one in fields(Column)}
        if unknown := sorted(parts.keys() - known):
            raise InvalidInput(
                f"a column has no {', '.join(unknown)}; it has {', '.join(sorted(known))}."
            )
        old = self[name]
        if "kind" in parts and parts["kind"] != old.kind:
            parts.setdefault("dtype", None)
        new = replace(old, **parts)
        return Schema(tuple(new if column is old else column for column in self.columns))

    def encode(self, people: Any) -> Codes:
        """The rows of people.

        Parameters
        ----------
        people : frame, sequence of mappings, or array
            A frame of pandas, polars or pyarrow, in which columns are found by name, in any order;
            one mapping per person; or an array of rows that are encoded already.

        Returns
        -------
        array, shape (people, width)
            Finite numbers.

        Raises
        ------
        InvalidInput
            If a column is missing or unknown, or a value is of another kind.

        Examples
        --------
        >>> schema = Schema((Column("age"), Column("smokes", "boolean", missing=True)))
        >>> schema.encode([{"smokes": True, "age": 31}, {"smokes": None, "age": 40}])
        array([[ 3.1000000e+01,  1.0000000e+00],
               [ 4.0000000e+01, -1.1529215e+18]])
        """
        if is_frame(people):
            frame = _narwhals_frame(people)
            self._require_names(frame.columns, "the frame")
            columns = [_cells(frame[name]) for name in self.names]
        elif (
            isinstance(people, Sequence)
            and len(people) > 0
            and all(isinstance(one, Mapping) for one in people)
        ):
            for row, person in enumerate(people):
                self._require_names(list(person), f"the person in row {row}")
            columns = [[person[name] for person in people] for name in self.names]
        else:
            return self.checked(people)
        parts = [column.encode(v) for column, v in zip(self.columns, columns, strict=True)]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def checked(self, rows: ArrayLike) -> Codes:
        """Check rows that are encoded already.

        An array has no names, so that its columns must stand in the order of the schema.

        Parameters
        ----------
        rows : array_like, shape (rows, width)
            What `encode` returned.

        Returns
        -------
        array, shape (rows, width)
            The same numbers.

        Raises
        ------
        InvalidInput
            If the width is another one, or a number is no code of its column.
        """
        try:
            codes = np.ascontiguousarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"features cannot be read as numbers ({error}).",
                hint=f"pass a frame with the columns {', '.join(self.names)}.",
            ) from error
        if codes.ndim != 2 or codes.shape[1] != self.width:
            raise InvalidInput(
                f"features has shape {codes.shape}; people have the columns {self.describe()}, "
                f"which take {self.width} numbers each.",
                hint="pass a frame with these columns, or what schema.encode(frame) returns.",
            )
        if not np.isfinite(codes).all():
            row, place = (int(i) for i in np.argwhere(~np.isfinite(codes))[0])
            raise NotFinite(
                f"features contains {codes[row, place]} at {(row, place)}; every entry must be a "
                "finite number.",
                hint="pass a frame: missing values are allowed where the schema says so.",
            )
        for column in self.columns if not self.plain else ():
            column.require_codes(codes[:, self.places[column.name]])
        return codes

    def frame(self, rows: ArrayLike) -> Any:
        """The people of rows as a frame of pandas: names, types and categories as they were.

        A missing value is NaN (pandas.NA in a column of type "boolean" or "string").

        Parameters
        ----------
        rows : array_like, shape (rows, width)
            What `encode` returned.

        Returns
        -------
        pandas.DataFrame
            One row per person.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError:
            raise InvalidInput(
                "models that look at columns by name are shown a frame of pandas, which is not "
                "installed.",
                hint=install_hint("models"),
            ) from None
        codes = self.checked(rows)
        columns = {}
        for column in self.columns:
            own = codes[:, self.places[column.name]]
            if column.kind == "category":
                places = np.where(own[:, 0] == MISSING, -1, own[:, 0]).astype(np.int64)
                columns[column.name] = pd.Categorical.from_codes(
                    places, categories=list(column.categories), ordered=column.ordered
                )
            elif column.kind == "number":
                numbers = np.where(own[:, 0] == MISSING, np.nan, own[:, 0])
                columns[column.name] = numbers.astype(column.dtype)
            elif column.dtype == "object" or (column.dtype == "str" and pd.__version__ < "3"):
                array = np.empty(len(own), dtype=object)
                array[:] = column.values(own, math.nan)
                columns[column.name] = pd.Series(array, dtype=object)
            else:
                columns[column.name] = pd.array(column.values(own, None), dtype=column.dtype)
        return pd.DataFrame(columns)

    def records(self, rows: ArrayLike) -> list[dict[str, Any]]:
        """The people of rows as plain values.

        Numbers, texts, True, False, and None where a value is missing.

        Parameters
        ----------
        rows : array_like, shape (rows, width)
            What `encode` returned.

        Returns
        -------
        list of dict
            One mapping per person; JSON can hold it, and `encode` takes it back.
        """
        codes = self.checked(rows)
        columns = [
            column.values(codes[:, self.places[column.name]], None) for column in self.columns
        ]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def require_plain(self, what: str) -> None:
        """Refuse columns that are no numbers, or may be missing.

        Parameters
        ----------
        what : str
            Who compares numbers: "Stumps".

        Raises
        ------
        InvalidInput
            With the way out.
        """
        other = [column.describe() for column in self.columns if not column.plain]
        if other:
            raise InvalidInput(
                f"{what} compares numbers, but the people have the columns {', '.join(other)}.",
                hint="evenhand.Estimator(pipeline) takes a scikit-learn pipeline that encodes "
                "categories and texts (OneHotEncoder) and imputes missing values (SimpleImputer); "
                "or leave these columns out.",
            )

    def describe(self) -> str:
        """The columns in words.

        Returns
        -------
        str
            "age (number), city (text)".
        """
        return ", ".join(column.describe() for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """The schema as plain JSON.

        Returns
        -------
        dict
            `from_json` reads it back.
        """
        return {"columns": [column.to_json() for column in self.columns]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Schema":
        """Read what `to_json` wrote.

        Parameters
        ----------
        data : dict
            As it was written.

        Returns
        -------
        Schema
            The same schema.

        Raises
        ------
        InvalidInput
            If it is malformed.

        Examples
        --------
        >>> schema = Schema((Column("age"), Column("city", "text")))
        >>> Schema.from_json(schema.to_json()) == schema
        True
        """
        try:
            return cls(tuple(Column(**column) for column in data["columns"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"a stored schema is malformed: {error}.") from error

    def _require_names(self, given: Sequence[str], what: str) -> None:
        _require_distinct(given, what)
        have = set(given)
        need = set(self.names)
        listed = ", ".join(map(repr, given[:12])) + (", ..." if len(given) > 12 else "")
        for name in self.names:
            if name not in have:
                near = get_close_matches(name, sorted(have - need), 1, 0.6)
                renamed = f" Was {near[0]!r} renamed? Then rename it back." if near else ""
                raise InvalidInput(
                    f"{what} has no column {name!r}; it has {listed}.",
                    hint=f"the columns are {', '.join(self.names)}, in any order.{renamed}",
                )
        if extra := [name for name in given if name not in need]:
            raise InvalidInput(
                f"{what} has the column {extra[0]!r}, which was not there when the schema was "
                f"made; the columns are {', '.join(self.names)}.",
                hint="leave it out: frame[list(schema.names)].",
            )


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of pandas, polars or pyarrow whose columns have names.

    A frame of pandas whose names are numbers (0, 1, ...) has none: it is an array.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        Whether columns can be found by name.

    Examples
    --------
    >>> import pandas as pd
    >>> is_frame(pd.DataFrame({"age": [31]})), is_frame(pd.DataFrame([[31]])), is_frame([[31]])
    (True, False, False)
    """
    if isinstance(value, np.ndarray | list | tuple):
        return False
    from narwhals.dependencies import is_into_dataframe, is_polars_lazyframe

    if is_polars_lazyframe(value):
        raise InvalidInput(
            "the frame is a LazyFrame, which holds no people yet.", hint=".collect()"
        )
    if not is_into_dataframe(value):
        return False
    names = _names(value)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise InvalidInput(
            f"the frame has the column names {', '.join(map(repr, names[:12]))}; some are texts "
            "and some are not.",
            hint="frame.columns = [str(name) for name in frame.columns].",
        )
    return bool(texts) and all(texts)


def _names(frame: Any) -> list[Any]:
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _require_distinct(names: Sequence[object], what: str) -> None:
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise InvalidInput(
            f"{what} has two columns of the name {twice[0]!r}.", hint="rename one of them."
        )


def _narwhals_frame(given: object) -> Any:
    import narwhals

    if not is_frame(given):
        raise InvalidInput(
            f"a schema is read off a frame with named columns, and not off a "
            f"{type(given).__name__}.",
            hint="pass a frame of pandas, polars or pyarrow.",
        )
    _require_distinct(_names(given), "the frame")
    return narwhals.from_native(given, eager_only=True)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas.NA."""
    if value is None:
        return True
    if isinstance(value, str | bool | int):
        return False
    try:
        other = value != value
    except (TypeError, ValueError):
        return False
    return other is value or other is True or (isinstance(other, np.bool_) and bool(other))


def _cells(series: Any) -> Any:
    """The values of a series of narwhals: numbers without gaps as an array, all others as a list
    with None where a value is missing.
    """
    import narwhals as nw

    kind = series.dtype
    if kind.is_integer() or kind.is_float():
        if not series.is_null().any():
            return series.to_numpy()
        if kind.is_float():
            return series.to_numpy().astype(np.float64)
    if kind.is_temporal() or kind.is_nested() or kind.is_decimal() or kind == nw.Binary:
        raise InvalidInput(
            f"the column {series.name!r} is of type {kind}; a column holds numbers, truth values, "
            "categories or texts.",
            hint="turn a date into a number (days since ...), and a decimal into a float.",
        )
    return series.to_list()


def _column_of(name: str, series: Any) -> Column:
    """What one series shows."""
    import narwhals as nw

    kind = series.dtype
    cells = _cells(series)
    if isinstance(cells, np.ndarray):
        gaps = bool(np.isnan(cells).any()) if cells.dtype.kind == "f" else False
        known = str(kind).lower() in _DTYPES["number"]
        return Column(name, missing=gaps, dtype=str(kind).lower() if known else None)
    values = [value for value in cells if not _is_missing(value)]
    gaps = len(values) < len(cells)
    if isinstance(kind, nw.Categorical | nw.Enum):
        return _category_of(name, series, values, gaps)
    native = str(getattr(series.to_native(), "dtype", ""))
    if kind.is_integer():
        return Column(name, missing=gaps)
    if not values:
        raise InvalidInput(
            f"the column {name!r} has no value at all, so that its kind is not known.",
            hint="leave it out, or write the schema yourself: Schema((Column(...), ...)).",
        )
    if all(isinstance(value, bool | np.bool_) for value in values):
        dtype = "object" if native == "object" else "boolean" if native == "boolean" else None
        return Column(name, "boolean", missing=gaps, dtype=dtype)
    if all(_is_number(value) for value in values):
        return Column(name, missing=gaps)
    if all(isinstance(value, str) for value in values):
        longest = max(len(value.encode(errors="replace")) for value in values)
        dtype = "object" if native == "object" else "string" if native == "string" else "str"
        return Column(name, "text", missing=gaps, length=max(LENGTH, 4 * longest), dtype=dtype)
    kinds = sorted({type(value).__name__ for value in values})
    raise InvalidInput(
        f"the column {name!r} holds values of the types {', '.join(kinds)}; a column holds "
        "numbers, truth values, categories or texts.",
        hint="make them all of one kind, for example with frame[name].astype(str).",
    )


def _category_of(name: str, series: Any, values: list[Any], gaps: bool) -> Column:
    """A category with the values that its type lists; where it lists none of its own (the
    categories of polars are open), with those that occur, in order.
    """
    native = series.to_native()
    ordered = False
    if hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        listed = native.cat.categories.tolist()
        ordered = bool(native.cat.ordered)
    elif hasattr(series.dtype, "categories"):  # an Enum
        listed = list(series.dtype.categories)
    elif hasattr(native, "unify_dictionaries"):  # pyarrow
        chunks = native.unify_dictionaries().chunks
        listed = chunks[0].dictionary.to_pylist() if chunks else []
    else:
        listed = sorted(set(values))
    if not listed:
        raise InvalidInput(
            f"the column {name!r} has no categories.", hint="leave it out, or list its values."
        )
    return Column(name, "category", tuple(listed), missing=gaps, ordered=ordered)
