"""One file per format of logs; the suffix says which, unless it is named.

.parquet .csv .jsonl   evenhand's own columns             .npz    Open Bandit Pipeline's dict
.dsjson                Vowpal Wabbit's decision logs      .vw     Vowpal Wabbit's cb text, `action:cost:probability`
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.formats import cb_text, dsjson, obp, tables
from evenhand.evaluation.formats.obp import from_obp, to_obp
from evenhand.evaluation.formats.reading import Reading

__all__ = ["FORMATS", "from_obp", "guessed_format", "read_log", "to_obp", "write_log"]


@dataclass(frozen=True)
class Format:
    """How a kind of file is read and written."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Reading], DecisionLog]
    write: Callable[[DecisionLog, Path], None]


FORMATS: Mapping[str, Format] = {
    "parquet": Format((".parquet",), tables.read_parquet, tables.write_parquet),
    "csv": Format((".csv",), tables.read_csv, tables.write_csv),
    "jsonl": Format((".jsonl",), tables.read_jsonl, tables.write_jsonl),
    "obp": Format((".npz",), obp.read, obp.write),
    "dsjson": Format((".dsjson",), dsjson.read, dsjson.write),
    "vw": Format((".vw", ".dat"), cb_text.read, cb_text.write),
}


def guessed_format(path: Path) -> str:
    """The format of a suffix."""
    for name, format in FORMATS.items():
        if path.suffix.lower() in format.suffixes:
            return name
    known = ", ".join(suffix for format in FORMATS.values() for suffix in format.suffixes)
    raise InvalidInput(
        f"{path} ends in {path.suffix or 'nothing'!r}, which says no format; the suffixes are {known}.",
        hint=f"rename the file, or name its format: {', '.join(FORMATS)}.",
    )


def read_log(
    path: Path | str,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    good: str | None = None,
) -> DecisionLog:
    """Read a log. `columns`: role -> column where a name differs ({"group": "sex"}); `features`:
    those to keep; `good`: the value of the label (reward, cost) that is the good outcome."""
    where = Path(path)
    if not where.is_file():
        raise InvalidInput(f"the log {str(where)!r} is no file.")
    return _format(where, format).read(
        where, Reading(str(where), dict(columns or {}), features, good)
    )


def write_log(log: DecisionLog, path: Path | str, format: str | None = None) -> None:
    """Write a log in the format of the suffix; what `read_log` reads back is the same, bit for bit."""
    where = Path(path)
    _format(where, format).write(log, where)


def _format(path: Path, name: str | None) -> Format:
    if name is not None and name not in FORMATS:
        raise InvalidInput(f"the format {name!r} is unknown; there are {', '.join(FORMATS)}.")
    return FORMATS[name or guessed_format(path)]
