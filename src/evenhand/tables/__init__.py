"""Every way in for tables: read, typed and complained about here; encoded to numbers last.

A command, a study or your own code does two things:

    frame = read_table("loans.csv", label="repaid", good="yes", group="sex")   # typed and checked
    table = frame.encoded()                                                    # numbers

`read_table` takes the name of a table, a description (.toml), a file of rows (CSV, Excel, Parquet,
JSON lines), a `Description`, or a frame of pandas, polars or pyarrow. `Replay(table.sample,
name=table.name)` is the table as a population. `read_frame` reads rows whose columns mean something
else, such as a log of decisions; `read_rows` does so for a name or a description, too: the commands
that name columns use it.
"""

from evenhand.tables.cleaning import FEWEST, read_rows, read_table
from evenhand.tables.column import (
    MISSING,
    Ambiguity,
    Notation,
    NumberFormat,
    TableColumn,
    find_notation,
    listed,
    number,
    same_value,
)
from evenhand.tables.data_warnings import DataWarning, data_warnings, many_left_out
from evenhand.tables.description import (
    READING,
    Description,
    describe,
    own_description,
    read_description,
)
from evenhand.tables.frame import (
    MISSING_VALUE,
    Frame,
    GroupFigures,
    LabelledFrame,
    Note,
    Recipe,
    RecipeColumn,
    Table,
)
from evenhand.tables.named import TABLES, DataUnavailable
from evenhand.tables.reading import FileReading, import_pyarrow, read_frame
from evenhand.tables.recipe import (
    PreparedTable,
    prepare,
    recipe_from_json,
    recipe_to_json,
    schema_of,
    source_columns,
)
from evenhand.tables.values import (
    DECISION,
    OUTCOME,
    TwoValues,
    chosen_groups,
    group_texts,
    matching_values,
    two_values,
    with_missing_group,
)

__all__ = [
    "DECISION",
    "FEWEST",
    "MISSING",
    "MISSING_VALUE",
    "OUTCOME",
    "READING",
    "TABLES",
    "Ambiguity",
    "DataUnavailable",
    "DataWarning",
    "Description",
    "FileReading",
    "Frame",
    "GroupFigures",
    "LabelledFrame",
    "Notation",
    "Note",
    "NumberFormat",
    "PreparedTable",
    "Recipe",
    "RecipeColumn",
    "Table",
    "TableColumn",
    "TwoValues",
    "chosen_groups",
    "data_warnings",
    "describe",
    "find_notation",
    "group_texts",
    "import_pyarrow",
    "listed",
    "many_left_out",
    "matching_values",
    "number",
    "own_description",
    "prepare",
    "read_description",
    "read_frame",
    "read_rows",
    "read_table",
    "recipe_from_json",
    "recipe_to_json",
    "same_value",
    "schema_of",
    "source_columns",
    "two_values",
    "with_missing_group",
]
