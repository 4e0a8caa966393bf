"""Things that can be named: rates, classes of rules, learners, populations.

Each kind has one `Registry`, which lives beside what it names (`fairness.rates.RATES`, ...). Commands,
studies, the service and the classifier look names up there and nowhere else. Another package adds its
own by an entry point of the registry's group, in its pyproject.toml:

    [project.entry-points."evenhand.rates"]
    my-rate = "my_package.rates:MyRate"
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from typing import Any, Generic, TypeVar

from evenhand.errors import InvalidInput

Made = TypeVar("Made")


class Registry(Mapping[str, Callable[[], Made]], Generic[Made]):
    """Names and how the things are made that they stand for.

    Parameters
    ----------
    kind : str
        What is named, in the singular: "rate".
    group : str
        The group of entry points by which other packages add names: "evenhand.rates".

    Examples
    --------
    >>> numbers = Registry[int]("number", "evenhand.doctest")
    >>> numbers.add("two", lambda: 2)
    >>> numbers.make("two")
    2
    >>> numbers.make("three")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: there is no number 'three'. Hint: known are two.
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind, self.group = kind, group
        self._makers: dict[str, Callable[[], Made]] = {}
        self._lock, self._complete = Lock(), False

    def add(self, name: str, make: Callable[[], Made]) -> None:
        """Name what `make()` makes; a name that is taken is refused."""
        if name in self._makers:
            raise InvalidInput(
                f"the {self.kind} {name!r} exists already.", hint=f"choose another name for the new {self.kind}."
            )
        self._makers[name] = make

    def make(self, name: str) -> Made:
        """What the name stands for; InvalidInput lists the names if it stands for nothing."""
        known = self._all()
        if name not in known:
            raise InvalidInput(f"there is no {self.kind} {name!r}.", hint=f"known are {', '.join(known)}.")
        return known[name]()

    def _all(self) -> dict[str, Callable[[], Made]]:
        """With the names of other packages, which are asked for once; a name of ours is never replaced."""
        with self._lock:
            if not self._complete:
                for point in entry_points(group=self.group):
                    self._makers.setdefault(point.name, partial(_loaded, point))
                self._complete = True
        return self._makers

    def __getitem__(self, name: str) -> Callable[[], Made]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._all()))

    def __len__(self) -> int:
        return len(self._all())


def _loaded(point: EntryPoint) -> Any:
    return point.load()()
