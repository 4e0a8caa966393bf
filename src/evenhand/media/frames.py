"""A table of a result as a frame of pandas or polars."""

from typing import Any, Literal

from evenhand.errors import InvalidInput
from evenhand.result import Amount, Between, Cell, Column, Result, Table
from evenhand.shown import imported

FrameLibrary = Literal["pandas", "polars"]


def frame(result: Result, table: str | None = None, library: FrameLibrary = "pandas") -> Any:
    """A table as a frame; an interval becomes two columns, `_low` and `_high`.

    Parameters
    ----------
    result : Result
        What is said.
    table : str, optional
        The key of the table; the first one by default.
    library : {"pandas", "polars"}
        Whose frame.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        A row for each row of the table; numbers are numbers, in full.

    Raises
    ------
    InvalidInput
        If there is no such table or library.
    EvenhandError
        If the library is not installed.
    """
    if library not in ("pandas", "polars"):
        raise InvalidInput(
            f"library is {library!r}; frames are those of pandas and of polars.",
            hint='to_frame(library="polars")',
        )
    chosen = first_table(result) if table is None else result.table(table)
    made = imported(library, "making a frame", f"pip install {library}")
    return made.DataFrame(columns_of(chosen))


def first_table(result: Result) -> Table:
    """The table that stands for the whole."""
    if not result.tables:
        raise InvalidInput(f"there is no table in what is said of {result.title}.")
    return result.tables[0]


def columns_of(table: Table) -> dict[str, list[Any]]:
    """The columns of a table, numbers as they are; an interval is two columns.

    >>> made = Table("t", "", (Column("x", "", "share"),), ((Between(0.25, 0.5),), (None,)))
    >>> columns_of(made)
    {'x_low': [0.25, None], 'x_high': [0.5, None]}
    """
    columns: dict[str, list[Any]] = {}
    for place, one in enumerate(table.columns):
        columns |= _column(one, [row[place] for row in table.rows])
    return columns


def _column(one: Column, cells: list[Cell]) -> dict[str, list[Any]]:
    values: list[Any] = [cell.value if isinstance(cell, Amount) else cell for cell in cells]
    if not any(isinstance(value, Between) for value in values):
        return {one.key: values}
    ends = [value if isinstance(value, Between) else Between(value, value) for value in values]
    return {
        f"{one.key}_low": [end.low for end in ends],
        f"{one.key}_high": [end.high for end in ends],
    }
