"""The reader of the user's tables, which lives with the data sets:
`evenhand.environments.datasets.columns`.
"""

from evenhand.environments.datasets.columns import (
    MISSING,
    MOST_CATEGORIES,
    MOST_GROUPS,
    Features,
    TextTable,
    drop_missing,
    features,
    groups,
    keep_groups,
    labels,
    number,
    numbers,
    read_parquet,
    read_table,
    require_present,
)

__all__ = [
    "MISSING",
    "MOST_CATEGORIES",
    "MOST_GROUPS",
    "Features",
    "TextTable",
    "drop_missing",
    "features",
    "groups",
    "keep_groups",
    "labels",
    "number",
    "numbers",
    "read_parquet",
    "read_table",
    "require_present",
]
