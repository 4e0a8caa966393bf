"""Every way in for tables: read, typed and complained about here; encoded to numbers last.

A command, a study or your own code does two things:

    frame = read_table("loans.csv", label="repaid", good="yes", group="sex")   # typed and checked
    table = frame.encoded()                                                    # numbers

`read_table` takes the name of a published table, a description (.toml), a file of rows (CSV,
Excel, Parquet, JSON lines), a `Description`, or a frame of pandas, polars or pyarrow.
`Replay(table.sample, name=table.name)` is the table as a population. `read_frame` reads rows whose
columns mean something else, such as a log of decisions.
"""

from evenhand.tables.column import (
    MISSING,
    Notation,
    TableColumn,
    Written,
    find_notation,
    listed,
    number,
    same_value,
)
from evenhand.tables.described import (
    DECISION,
    FEWEST,
    OUTCOME,
    READING,
    Description,
    TwoValues,
    chosen_groups,
    describe,
    group_texts,
    read_description,
    read_table,
    spelt,
    two_values,
)
from evenhand.tables.frame import Frame, GroupFigures, LabelledFrame, Recipe, RecipeColumn, Table
from evenhand.tables.misleading import Misleading, misleading
from evenhand.tables.published import (
    TABLES,
    DataUnavailable,
    PublishedTable,
    WheelFile,
    cache_folder,
    people,
)
from evenhand.tables.reading import FileReading, import_pyarrow, read_frame
from evenhand.tables.recipe import (
    PreparedTable,
    prepare,
    recipe_from_json,
    recipe_of_names,
    recipe_to_json,
    schema_of,
)

__all__ = [
    "DECISION",
    "FEWEST",
    "MISSING",
    "OUTCOME",
    "READING",
    "TABLES",
    "DataUnavailable",
    "Description",
    "FileReading",
    "Frame",
    "GroupFigures",
    "LabelledFrame",
    "Misleading",
    "Notation",
    "PreparedTable",
    "PublishedTable",
    "Recipe",
    "RecipeColumn",
    "Table",
    "TableColumn",
    "TwoValues",
    "WheelFile",
    "Written",
    "cache_folder",
    "chosen_groups",
    "describe",
    "find_notation",
    "group_texts",
    "import_pyarrow",
    "listed",
    "misleading",
    "number",
    "people",
    "prepare",
    "read_description",
    "read_frame",
    "read_table",
    "recipe_from_json",
    "recipe_of_names",
    "recipe_to_json",
    "same_value",
    "schema_of",
    "spelt",
    "two_values",
]
