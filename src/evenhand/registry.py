"""Things that can be named: rates, classes of rules, stored hypotheses, learners, populations.

Each kind has one `Registry`, which stands beside what it names: `fairness.rates.RATES`,
`hypotheses.named.CLASSES`, `hypotheses.serialise.HYPOTHESES`, `simulation.named.LEARNERS` and
`simulation.named.POPULATIONS`. Commands, studies, the service, learners and the
classifier look names up there and nowhere else. Functions take an object wherever they take a name.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import getdoc
from typing import Generic, NoReturn, TypeVar

from evenhand.errors import InvalidInput

Named = TypeVar("Named")


class Registry(dict[str, Named], Generic[Named]):
    """Names, and what they stand for; InvalidInput lists the names if it has none such.

    Parameters
    ----------
    kind : str
        What is named, in the singular: "rate".
    things : Mapping
        The names.

    Examples
    --------
    >>> numbers = Registry("number", {"two": 2})
    >>> numbers["two"]
    2
    >>> numbers["three"]
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: there is no number 'three'. Hint: known are two.
    """

    def __init__(self, kind: str, things: Mapping[str, Named]) -> None:
        super().__init__(things)
        self.kind = kind

    def __missing__(self, name: str) -> NoReturn:
        raise InvalidInput(
            f"there is no {self.kind} {name!r}.",
            hint=f"known are {', '.join(self)}.{did_you_mean(name, self)}",
        )


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
    'Names, and what they stand for; InvalidInput lists the names if it has none such.'
    """
    text = getdoc(thing) or str(getattr(thing, "__name__", ""))
    return " ".join(text.split("\n\n")[0].split())
