"""What a record inherits that speaks: one method to write, and six that follow from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.media.files import save
from evenhand.media.frames import FrameLibrary, frame
from evenhand.media.page import fragment
from evenhand.media.plots import draw
from evenhand.media.terminal import text
from evenhand.result import Cell, Result
from evenhand.shown import plain_fields

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Told(ABC):
    """A record that can be looked at.

    A class of your own gets all of it if it has `result`. Keywords that `result` knows (a limit,
    names of columns) may be given to each of the methods.

    Examples
    --------
    >>> from evenhand.result import Table, column
    >>> class Counts(Told):
    ...     def result(self):
    ...         sizes = Table.of("sizes", "Sizes", ["a", "bb"], column("size", take=len))
    ...         return Result("counts", "Two groups", self, tables=(sizes,))
    >>> Counts().to_frame()["size"].tolist()
    [1, 2]
    >>> print(Counts().describe())
    Two groups
    <BLANKLINE>
    Sizes
    size
    1
    2
    """

    @abstractmethod
    def result(self, *args: Any, **asked: Any) -> Result:
        """What is said of the record.

        Returns
        -------
        Result
            The same numbers, in the order in which a reader needs them.
        """

    def describe(self, *args: Any, **asked: Any) -> str:
        """The record in words.

        Parameters
        ----------
        *args, **asked
            What `result` takes.

        Returns
        -------
        str
            What a terminal shows.
        """
        return text(self.result(*args, **asked))

    def to_frame(
        self, table: str | None = None, library: FrameLibrary = "pandas", **asked: Any
    ) -> Any:
        """One of the tables as a frame.

        Parameters
        ----------
        table : str, optional
            Its key; by default the first table.
        library : {"pandas", "polars"}
            Whose frame.
        **asked
            What `result` takes.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            An interval is two columns, `_low` and `_high`.

        Raises
        ------
        InvalidInput
            If there is no such table or library.
        EvenhandError
            If the library is not installed.
        """
        return frame(self.result(**asked), table, library)

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON.

        Returns
        -------
        dict
            Its fields; a number that is not finite is null.
        """
        return plain_fields(self)

    def plot(self, axes: "Axes | None" = None, number: int = 0, **asked: Any) -> "Axes":
        """Draw one of the figures.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure, which a notebook shows by itself.
        number : int, default 0
            Which of them.
        **asked
            What `result` takes.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn into; `.figure.savefig(...)` writes it to a file.

        Raises
        ------
        EvenhandError
            If matplotlib is not installed.
        """
        return draw(self.result(**asked).figures[number], axes)

    def save(
        self,
        path: Path | str,
        *,
        title: str | None = None,
        settings: Mapping[str, Cell] | None = None,
        **asked: Any,
    ) -> None:
        """Write what is said to a file; the ending decides how.

        Parameters
        ----------
        path : path
            .html is a page to hand over, .md a model card, .json a document; .csv, .parquet and
            .xlsx hold the first table; .svg, .png and .pdf the figures.
        title : str, optional
            What it is about.
        settings : mapping, optional
            What was asked: names and values that are shown.
        **asked
            What `result` takes.

        Raises
        ------
        InvalidInput
            If the ending is another one.
        """
        made = self.result(**asked)
        save(
            replace(made, title=title or made.title, asked={**made.asked, **(settings or {})}), path
        )

    def _repr_html_(self) -> str:
        """The answer and short tables, for notebooks."""
        return fragment(self.result())
