"""Logs of decisions on disk. They are tables like any other: CSV, Excel, Parquet, JSON lines, or a
frame of another library, with the columns id, round, time, group, accept, acceptance, label, count
and feature_<name>.

`round` and `time` show the order of the decisions, where they are known. `acceptance` is the
probability of being accepted, whatever was drawn; an empty label is an open outcome, or a
rejection; an empty group is an unknown one; `count` is written only where a row stands for several
decisions.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import FEATURE, DecisionLog, LogReading
from evenhand.evaluation.evaluate import Candidate
from evenhand.tables import MISSING, import_pyarrow, read_frame
from evenhand.words import FloatArray


def read_log(
    source: object,
    *,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    good: str | None = None,
    candidate: Candidate | None = None,
    unseen: Literal["refuse", "ignore"] = "refuse",
    drop_missing: bool = False,
    **file: object,
) -> DecisionLog:
    """Read a log of decisions from a file or a frame.

    Parameters
    ----------
    source : path or data frame
        The file, or a frame of pandas, polars or pyarrow.
    columns : mapping of str to str, optional
        Role to column, where a name differs: ``{"group": "sex"}``. The roles are id, round, time,
        group, accept, acceptance, propensity, label and count.
    features : sequence of str, optional
        The features to keep; by default all.
    good : str, optional
        The value of the label that is the good outcome.
    candidate : Candidate, optional
        The policy that will be asked about. If it comes from a policy file, columns of texts,
        dates and missing numbers are read as the file says; if it is a constant, no feature is
        needed. Other columns are then features where they are numbers.
    unseen : {"refuse", "ignore"}
        What is done with a category that the candidate has never seen, as in `evenhand test`.
    drop_missing : bool
        Whether rows are left out in which a value is missing that the candidate needs; what is
        said then holds for people who have all values.
    **file
        How a CSV or Excel file is written: `delimiter`, `missing`, `encoding` and the other fields
        of `FileReading`.

    Returns
    -------
    DecisionLog
        The decisions.

    Raises
    ------
    InvalidInput
        If it cannot be read as such a log, or holds no propensities.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("accept,acceptance,label,x\\n1,0.5,1,3\\n0,0.2,,4\\n")
    >>> log = read_log(path)
    >>> log.label.tolist(), log.propensity.tolist(), log.names
    ([1, 0], [0.5, 0.8], ('x',))
    """
    policy = None if candidate is None else candidate.file
    reading = LogReading(
        str(source) if isinstance(source, str | Path) else "the log",
        dict(columns or {}),
        features,
        good,
        policy=policy,
        constant=candidate is not None and candidate.is_constant,
        unseen=unseen,
        drop_missing=drop_missing,
    )
    how: dict[str, Any] = {**({} if policy is None else policy.reading), **file}
    return reading.log(read_frame(source, **how))


def write_log(
    log: DecisionLog, path: Path | str, more: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Write a log; what `read_log` reads back is the same, bit for bit.

    Parameters
    ----------
    log : DecisionLog
        The decisions.
    path : path
        The file: CSV (.csv) or Parquet (.parquet).
    more : mapping of str to list, optional
        Further columns, which stand before the log's.

    Raises
    ------
    InvalidInput
        If the file has another suffix, if CSV cannot say what the log holds, or if pyarrow is
        needed and not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> write_log(DecisionLog.of([[3.0]], [True], [0.5], [1], names=["x"]), path, {"at": [7]})
    >>> print(path.read_text())
    at,group,accept,acceptance,label,feature_x
    7,,True,0.5,1,3.0
    """
    where = Path(path)
    columns = {**(more or {}), **_columns_of(log)}
    if where.suffix.lower() == ".parquet":
        arrow, files = import_pyarrow("Parquet")
        types = {"id": arrow.string(), "group": arrow.string(), "label": arrow.int8()}
        arrays = {name: arrow.array(of, type=types.get(name)) for name, of in columns.items()}
        files.write_table(arrow.table(arrays), where)
    elif where.suffix.lower() == ".csv":
        _require_plain({*log.group.tolist(), *([] if log.id is None else log.id.tolist())})
        with where.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    else:
        raise InvalidInput(f"{where} ends in neither .csv nor .parquet.", hint="rename it.")


def _require_plain(names: set[str | None]) -> None:
    """Refuse a group or an id that would be read back from CSV as another one."""
    for name in names - {None}:
        if str(name).strip() != name or name.lower() in MISSING:
            raise InvalidInput(
                f"the group or id {name!r} would be read back from CSV as something else.",
                hint="write Parquet.",
            )


def _columns_of(log: DecisionLog) -> dict[str, Sequence[object]]:
    """The columns as plain values."""
    return {
        **({} if log.id is None else {"id": log.id.tolist()}),
        **{name: _known(getattr(log, name)) for name in log.ordered_by},
        "group": log.group.tolist(),
        "accept": log.accept.tolist(),
        "acceptance": log.acceptance.tolist(),
        "label": [None if label == 0 else label for label in log.label.tolist()],
        **({} if (log.count == 1).all() else {"count": log.count.tolist()}),
        **{FEATURE + name: log.features[:, j].tolist() for j, name in enumerate(log.names)},
    }


def _known(column: FloatArray) -> list[object]:
    """Numbers, None where one is missing."""
    return [None if value != value else value for value in column.tolist()]
