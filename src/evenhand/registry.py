"""Things that can be named: rates, classes of rules, stored hypotheses, learners, populations.

Each kind has one `Registry`, which stands beside what it names: `fairness.rates.RATES`,
`hypotheses.named.CLASSES`, `hypotheses.serialise.HYPOTHESES`, `simulation.named.LEARNERS` and
`simulation.named.POPULATIONS`. Commands, studies, the service, learners and the
classifier look names up there and nowhere else. Another package adds its own by an entry point of
the registry's group, in its pyproject.toml:

    [project.entry-points."evenhand.rates"]
    my-rate = "my_package.rates:MY_RATE"
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from inspect import getdoc
from threading import Lock
from typing import Any, Generic, TypeVar

from evenhand.errors import InvalidInput

Named = TypeVar("Named")


class Registry(Mapping[str, Named], Generic[Named]):
    """Names, and what they stand for.

    Parameters
    ----------
    kind : str
        What is named, in the singular: "rate".
    group : str
        The group of entry points by which other packages add names: "evenhand.rates".
    things : Mapping
        The names that evenhand knows itself; no other package can replace them.
    adopt : callable, optional
        What is done to the object of an entry point before it is given out.

    Examples
    --------
    >>> numbers = Registry("number", "evenhand.doctest", {"two": 2})
    >>> numbers["two"]
    2
    >>> numbers["three"]
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: there is no number 'three'. Hint: known are two.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        things: Mapping[str, Named],
        adopt: Callable[[Any], Named] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self.own = dict(things)
        self.adopt = adopt
        self._foreign: dict[str, EntryPoint] | None = None
        self._lock = Lock()

    def __getitem__(self, name: str) -> Named:
        """What the name stands for; InvalidInput lists the names if it stands for nothing."""
        if name in self.own:
            return self.own[name]
        if name in self.foreign:
            found: Named = self.foreign[name].load()
            return found if self.adopt is None else self.adopt(found)
        raise InvalidInput(
            f"there is no {self.kind} {name!r}.",
            hint=f"known are {', '.join(self)}.{did_you_mean(name, self)}",
        )

    @property
    def foreign(self) -> Mapping[str, EntryPoint]:
        """The names of other packages, which are looked for once and loaded when they are used."""
        with self._lock:
            if self._foreign is None:
                points = entry_points(group=self.group)
                self._foreign = {
                    point.name: point for point in points if point.name not in self.own
                }
        return self._foreign

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.foreign

    def __iter__(self) -> Iterator[str]:
        return iter((*self.own, *self.foreign))

    def __len__(self) -> int:
        return len(self.own) + len(self.foreign)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a hint: the known name that is nearest to a mistyped one.

    Parameters
    ----------
    name : str
        What was typed.
    known : iterable of str
        The names.

    Returns
    -------
    str
        A question with a blank before it; nothing if no name is near.

    Examples
    --------
    >>> did_you_mean("adlut", ["adult", "compas"]), did_you_mean("loans", ["adult", "compas"])
    (" Did you mean 'adult'?", '')
    """
    near = get_close_matches(name.lower(), known, 1, 0.7)
    return f" Did you mean {near[0]!r}?" if near else ""


def summary(thing: object) -> str:
    """Return what something is in words: the first paragraph of its docstring, in one line.

    Parameters
    ----------
    thing : object
        A class or a function.

    Returns
    -------
    str
        The paragraph; the name of a thing without a docstring.

    Examples
    --------
    >>> summary(Registry)
    'Names, and what they stand for.'
    """
    text = getdoc(thing) or str(getattr(thing, "__name__", ""))
    return " ".join(text.split("\n\n")[0].split())
