"""The journal of a study: one line of JSON per finished task, appended and forced to disk before
anything else happens.

A process may be killed at any moment: a line is either whole or cut off, and a cut-off last line is
dropped when the journal is opened again. Nothing that is in the journal is computed a second time.
"""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from evenhand.errors import InvalidInput


class Journal:
    """Finished tasks by key, in a file that one process at a time may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Journal":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        _lock(self._file, self.path)
        self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> None:
        """Take the whole lines; cut off what a kill left half written."""
        assert self._file is not None  # it is open
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            self._take(number, line)
        if len(whole) < len(content):
            self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)

    def _take(self, number: int, line: bytes) -> None:
        try:
            entry = json.loads(line)
            key, row, seconds = entry["key"], entry["row"], entry["seconds"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"line {number} of {self.path} is no entry of a study's journal ({error}).",
                hint="it was changed by hand; move the file away, and the study starts anew.",
            ) from error
        self.rows[key], self.seconds[key] = row, seconds

    def add(self, key: str, row: dict[str, Any], seconds: float) -> None:
        """Append one entry; it is on the disk when this returns."""
        assert self._file is not None  # it is open
        entry = json.dumps({"key": key, "seconds": seconds, "row": row})
        self._file.write(entry.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows[key], self.seconds[key] = json.loads(entry)["row"], seconds


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a Unix: whoever starts two studies in one folder is not stopped
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidInput(
            f"another process is writing {path}.",
            hint="wait for it to end, or choose another folder with --out.",
        ) from None
