"""Every way in for tables: read, typed and complained about here; encoded to numbers last.

A command, a study or your own code does two things:

    frame = read_table("loans.csv", label="repaid", good="yes", group="sex")   # typed and checked
    table = frame.encoded()                                                    # numbers

`read_table` takes the name of a published table, a description (.toml), a CSV or Parquet file, a
`Description`, or a frame of pandas, polars or pyarrow. `Replay(table.sample, name=table.name)` is
the table as a population. `read_frame` reads rows whose columns mean something else, such as a log
of decisions.
"""

from evenhand.tables.described import FEWEST, Description, describe, read_description, read_table
from evenhand.tables.frame import (
    MISSING,
    Frame,
    GroupFigures,
    LabelledFrame,
    Table,
    TableColumn,
    listed,
    number,
    same_value,
)
from evenhand.tables.published import TABLES, PublishedTable, people
from evenhand.tables.reading import import_pyarrow, read_frame
from evenhand.tables.wheels import DataUnavailable, WheelFile, cache_folder

__all__ = [
    "FEWEST",
    "MISSING",
    "TABLES",
    "DataUnavailable",
    "Description",
    "Frame",
    "GroupFigures",
    "LabelledFrame",
    "PublishedTable",
    "Table",
    "TableColumn",
    "WheelFile",
    "cache_folder",
    "describe",
    "import_pyarrow",
    "listed",
    "number",
    "people",
    "read_description",
    "read_frame",
    "read_table",
    "same_value",
]
