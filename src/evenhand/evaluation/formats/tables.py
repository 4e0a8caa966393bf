"""evenhand's own columns in Parquet, CSV and JSON lines: id, group, accept, acceptance, label,
count, feature_<name>.

`acceptance` is the probability of being accepted, whatever was drawn; an empty label is an open
outcome, or a rejection; an empty group is an unknown one; `count` is written only where a row
stands for several decisions.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.formats.reading import Reading, log_of_columns
from evenhand.tables import MISSING, read_frame


def columns_of(log: DecisionLog) -> dict[str, list[Any]]:
    """The columns as plain values."""
    known = [None if label == 0 else label for label in log.label.tolist()]
    single = bool((log.count == 1).all())
    return {
        **({} if log.id is None else {"id": log.id.tolist()}),
        "group": log.group.tolist(),
        "accept": log.accept.tolist(),
        "acceptance": log.acceptance.tolist(),
        "label": known,
        **({} if single else {"count": log.count.tolist()}),
        **{f"feature_{name}": log.features[:, j].tolist() for j, name in enumerate(log.names)},
    }


def write_parquet(
    log: DecisionLog, path: Path, more: Mapping[str, list[Any]] | None = None
) -> None:
    """Parquet; `more` columns stand before the log's."""
    arrow, files = _pyarrow()
    types = {"id": arrow.string(), "group": arrow.string(), "label": arrow.int8()}
    columns = {
        name: arrow.array(values, type=types.get(name)) for name, values in columns_of(log).items()
    }
    files.write_table(arrow.table({**(more or {}), **columns}), path)


def read_parquet(path: Path, told: Reading) -> DecisionLog:
    """Parquet, with pyarrow."""
    arrow, files = _pyarrow()
    try:
        table = files.read_table(path)
    except (OSError, arrow.ArrowInvalid) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}.") from error
    return log_of_columns({name: _values(table.column(name)) for name in table.column_names}, told)


def _values(column: Any) -> Any:
    """An array of numbers where nothing is missing, plain values elsewhere."""
    found = column.to_numpy()  # numbers with gaps become floats with NaN
    return found if found.dtype.kind in "biuf" else column.to_pylist()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # type: ignore[import-untyped]  # optional, and without types
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput(
            "Parquet needs the package pyarrow.",
            hint="pip install 'evenhand[study]', or use CSV or JSON lines.",
        ) from None
    return pyarrow, parquet


def write_csv(log: DecisionLog, path: Path) -> None:
    """CSV with a header; empty cells where nothing is known."""
    columns = columns_of(log)
    for value in {*log.group.tolist(), *([] if log.id is None else log.id.tolist())} - {None}:
        if value.strip() != value or value.lower() in MISSING:
            raise InvalidInput(
                f"the group or id {value!r} would be read back from CSV as something else.",
                hint="write Parquet or JSON lines.",
            )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def read_csv(path: Path, told: Reading) -> DecisionLog:
    """CSV with a header."""
    columns = {name: column.cells for name, column in read_frame(path).columns.items()}
    return log_of_columns(columns, replace(told, plain=True))


def write_jsonl(log: DecisionLog, path: Path) -> None:
    """One object per line, with the same names as the columns."""
    columns = columns_of(log)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) + "\n"
            for row in zip(*columns.values(), strict=True)
        )


def read_jsonl(path: Path, told: Reading) -> DecisionLog:
    """One object per line; a name that a line lacks is missing there."""
    rows = json_lines(path)
    names = {name: None for row in rows for name in row}
    return log_of_columns({name: _typed([row.get(name) for row in rows]) for name in names}, told)


def _typed(values: list[Any]) -> Any:
    return np.array(values) if all(isinstance(value, float) for value in values) else values


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file; the line that is none is named."""
    found = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    found.append(_object(line, number, path))
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})."
        ) from error
    if not found:
        raise InvalidInput(f"{path} has no lines; at least one decision is needed.")
    return found


def _object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"line {number} of {path} is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InvalidInput(
            f"line {number} of {path} is a {type(value).__name__}; every line is one object."
        )
    return value
