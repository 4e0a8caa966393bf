"""How results show themselves: as a table in a notebook, as a frame, as a picture, in one line, as
plain JSON.

A result says what its columns are and how it is drawn; everything else is here. pandas, polars and
matplotlib are imported where they are used.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from html import escape
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from evenhand.errors import EvenhandError, InvalidInput, NotSerialisable, install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS_SHOWN = 8
"""A notebook shows so many rows of a longer table, from both of its ends."""

INK = "#117733"
LIMIT = "#c4400c"
BAND = "#cfe8d6"
"""Colours of lines, of limits, and of bands."""

FEW = 3
SHORT = 160
"""Values of a long array or sequence that are shown in one line, and the length up to which a
sequence of a few records is shown whole."""

FrameLibrary = Literal["pandas", "polars"]
Cell = str | float | None
"""What stands in a table that is shown; whole numbers and truth values count as numbers."""


def counted(number: float, one: str = "person", many: str = "people") -> str:
    """Say a number of people, or of other things, in words.

    Parameters
    ----------
    number : float
        How many.
    one, many : str
        The noun.

    Returns
    -------
    str
        The number and the noun.

    Examples
    --------
    >>> counted(1), counted(1200), counted(1, "row", "rows")
    ('1 person', '1,200 people', '1 row')
    """
    return f"{number:,g} {one}" if number == 1 else f"{number:,.15g} {many}"


class Brief:
    """A record whose `repr` names the size and the first values of what is long, and leaves out
    what is empty as ever.

    Its decorator says ``@dataclass(repr=False)``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Curve(Brief):
    ...     name: str
    ...     values: np.ndarray
    >>> Curve("gap", np.zeros((500, 2)))
    Curve(name='gap', values=<500 x 2: 0, 0, 0, ...>)
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        shown = {one: getattr(self, one.name) for one in fields(self) if one.repr}
        told = ((one.name, value) for one, value in shown.items() if not _as_ever(one, value))
        parts = (f"{name}={brief(value)}" for name, value in told)
        return f"{type(self).__name__}({', '.join(parts)})"


def _as_ever(one: Field[Any], value: object) -> bool:
    return isinstance(value, tuple) and not value and one.default == ()


def brief(value: object) -> str:
    """A value in one line: of an array or a long sequence the size and the first values; of many
    records in a sequence the number alone.

    >>> brief(("a", "b")), brief(range(1000)), brief(({}, {})), brief([{}] * 8)
    ("('a', 'b')", '<1000: 0, 1, 2, ...>', '({}, {})', '<8 of dict>')
    """
    if isinstance(value, np.ndarray):
        size = " x ".join(map(str, value.shape))
        few = value.ravel()[: FEW + 1].tolist()
    elif isinstance(value, tuple | list | range):
        size = str(len(value))
        few = list(value[: FEW + 1])
        simple = all(one is None or isinstance(one, str | float | int) for one in few)
        if len(few) <= FEW and (simple or len(repr(value)) <= SHORT):
            return repr(value)
        if not simple:
            kinds = dict.fromkeys(type(one).__name__ for one in value)
            return f"<{size} of {', '.join(kinds)}>"
    else:
        return repr(value)
    texts = [f"{one:.4g}" if isinstance(one, float) else repr(one) for one in few[:FEW]]
    return f"<{size}: {', '.join(texts)}{', ...' * (len(few) > FEW)}>"


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays and tuples as lists, records by their `to_json` or their
    fields; a number that is not finite becomes null, and so does a rule that cannot be written.

    >>> plain({"gaps": np.array([0.5, np.nan]), "names": ("a", "b")})
    {'gaps': [0.5, None], 'names': ['a', 'b']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        try:
            return value.to_json() if hasattr(value, "to_json") else plain_fields(value)
        except NotSerialisable:
            return None
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list | range):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value + 0.0 if isfinite(value) else None
    return value


def plain_fields(record: Any) -> dict[str, Any]:
    """The fields of a record as plain JSON, and the properties that its class names in `ALSO`."""
    names = (*(one.name for one in fields(record)), *getattr(record, "ALSO", ()))
    return {name: plain(getattr(record, name)) for name in names}


class Shown(ABC):
    """A result that can be looked at: `to_frame`, `plot`, and a table in notebooks.

    A class of your own gets all three if it has `_columns`, `_headline` and `_draw`.

    Examples
    --------
    >>> class Counts(Shown):
    ...     def _headline(self):
    ...         return "Two groups"
    ...     def _columns(self):
    ...         return {"group": ["a", "b"], "people": [3, 5]}
    ...     def _draw(self, axes):
    ...         axes.bar(*self._columns().values())
    >>> Counts().to_frame()["people"].tolist()
    [3, 5]
    >>> "<td>b</td><td>5</td>" in Counts()._repr_html_()
    True
    """

    @abstractmethod
    def _headline(self) -> str:
        """What it is, in one sentence."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Cell]]:
        """The table, column by column."""

    @abstractmethod
    def _draw(self, axes: "Axes") -> None:
        """Draw it into the axes."""

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return the figures as a frame, one row for each line of the table.

        Parameters
        ----------
        library : {"pandas", "polars"}
            Whose frame.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            The columns are named after what they hold.

        Raises
        ------
        InvalidInput
            If the library is neither of the two.
        EvenhandError
            If it is not installed.
        """
        if library not in ("pandas", "polars"):
            raise InvalidInput(
                f"library is {library!r}; frames are those of pandas and of polars.",
                hint='to_frame("polars")',
            )
        columns = {name: list(values) for name, values in self._columns().items()}
        hint = f"pip install {library}"
        return imported(library, "making a frame", hint).DataFrame(columns)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the figures.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure, which a notebook shows by itself.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn into; `.figure.savefig(...)` writes it to a file.

        Raises
        ------
        EvenhandError
            If matplotlib is not installed.
        """
        if axes is None:
            hint = install_hint("plots")
            pyplot = imported("matplotlib.pyplot", "drawing a figure", hint)
            axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
        axes.spines[["top", "right"]].set_visible(False)
        self._draw(axes)
        return axes

    def _repr_html_(self) -> str:
        """A headline and a short table, for notebooks."""
        columns = self._columns()
        rows = list(zip(*columns.values(), strict=True))
        left_out = len(rows) - ROWS_SHOWN

        def cell(value: Cell) -> str:
            if value is None or isinstance(value, str | bool):
                return "" if value is None else str(value)
            number = float(value)
            return f"{int(number):,}" if number.is_integer() else f"{number:.4g}"

        lines = [[cell(value) for value in row] for row in rows]
        if left_out > 0:
            half = ROWS_SHOWN // 2
            dots = ["…"] * len(columns)
            lines = [*lines[:half], dots, *lines[-half:]]
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in lines
        )
        note = f"<p>{len(rows):,} rows</p>" if left_out > 0 else ""
        return (
            f"<div><p><b>{escape(self._headline())}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{note}</div>"
        )


def imported(package: str, purpose: str, hint: str) -> Any:
    """A package that is needed for one purpose; the hint says how it is installed."""
    try:
        return import_module(package)
    except ImportError as error:
        needed = f"{purpose} needs {package.split('.')[0]}, which is not installed."
        raise EvenhandError(needed, hint=hint) from error


def draw_limit(axes: "Axes", limit: float) -> None:
    """A line at the limit, named."""
    axes.axhline(limit, color=LIMIT, linestyle=(0, (4, 2)), linewidth=1.2)
    axes.annotate(
        f"limit {limit:g}",
        (1.0, limit),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        color=LIMIT,
        fontsize="small",
    )
