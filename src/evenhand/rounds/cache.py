"""What was derived from a table, kept because the next question is mostly about a few more rounds.

No answer depends on it: whoever asks can read the rows again. All of it is forgotten once somebody
of the table is overruled or erased, or is given a group after the decision.
"""

from collections.abc import Sequence
from typing import Any

Span = tuple[int, int, int]
"""(epoch, first, stop): rounds first .. stop - 1, which are of one epoch."""


class Cache:
    """Values by name, each with the rounds from which it was derived.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.keep_cohorts("people", [(1, 0, 10)], 10)
    >>> cache.of_cohorts("people", [(1, 0, 10), (2, 10, 30)])
    (10, [(2, 10, 30)])
    """

    def __init__(self) -> None:
        self._of_cohorts: dict[str, tuple[tuple[Span, ...], Any]] = {}
        self._of_prefix: dict[str, tuple[int, Any]] = {}

    def of_cohorts(self, name: str, spans: Sequence[Span]) -> tuple[Any, Sequence[Span]]:
        """What was derived from the first of these cohorts, and the cohorts that are left."""
        done, value = self._of_cohorts.get(name, ((), None))
        if value is None or tuple(spans[: len(done)]) != done:
            return None, spans
        return value, spans[len(done) :]

    def keep_cohorts(self, name: str, spans: Sequence[Span], value: object) -> None:
        """What was derived from all of these cohorts."""
        self._of_cohorts[name] = (tuple(spans), value)

    def of_prefix(self, name: str) -> tuple[int, Any]:
        """(stop, what was derived from all rounds before `stop`); (0, None) if nothing was."""
        return self._of_prefix.get(name, (0, None))

    def take_prefix(self, name: str) -> tuple[int, Any]:
        """The same, and it is not kept any more: whoever adds to it keeps it again."""
        return self._of_prefix.pop(name, (0, None))

    def keep_prefix(self, name: str, stop: int, value: object) -> None:
        """What was derived from all rounds before `stop`, none of which lacks its label."""
        self._of_prefix[name] = (stop, value)

    def forget(self) -> None:
        """Everything has to be read again."""
        self._of_cohorts.clear()
        self._of_prefix.clear()
