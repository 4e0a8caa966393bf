"""Every public name says in numpydoc form what it is, what it takes, what it returns,
and shows an example.
"""

import importlib
import inspect
from collections.abc import Iterator

import pytest
from numpydoc.docscrape import NumpyDocString

FACES = (
    "evenhand",
    "evenhand.contracts",
    "evenhand.testing",
    "evenhand.environments",
)
"""The modules whose ``__all__`` is called from outside; every name in them is documented."""


def _public(face: str) -> Iterator[tuple[str, object]]:
    module = importlib.import_module(face)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == face]
    for name in getattr(module, "__all__", own):
        thing = getattr(module, name)
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing)):
            yield f"{face}.{name}", thing


def _methods(owner: type) -> Iterator[tuple[str, object]]:
    for base in owner.__mro__:
        if not base.__module__.startswith("evenhand"):
            continue
        for name, raw in vars(base).items():
            unwrapped = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
            if not name.startswith("_") and inspect.isfunction(unwrapped):
                yield f"{base.__module__}.{base.__qualname__}.{name}", unwrapped


def named(faces: tuple[str, ...]) -> dict[str, object]:
    """The public names of the faces, each thing once."""
    found = {id(thing): (where, thing) for face in faces for where, thing in _public(face)}
    return dict(found.values())


def methods(owners: dict[str, object]) -> dict[str, object]:
    """The public methods of the classes among them."""
    return {
        where: thing
        for owner in owners.values()
        if inspect.isclass(owner)
        for where, thing in _methods(owner)
    }


NAMED = named(FACES)
METHODS = methods(NAMED)


def faults(thing: object, with_example: bool) -> list[str]:
    """What the docstring of a class, function or method lacks."""
    # a method without a docstring keeps the law of the contract that it overrides
    text = thing.__dict__.get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
    if not text:
        return ["no docstring"]
    doc = NumpyDocString(inspect.cleandoc(text))
    lacking = []
    summary = doc["Summary"]
    if len(summary) != 1 or not summary[0].rstrip().endswith("."):
        lacking.append("the summary is not one line that ends in a full stop")
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return lacking
    documented = {
        part.strip().lstrip("*")
        for section in ("Parameters", "Attributes", "Other Parameters")
        for entry in doc[section]
        for part in entry.name.split(",")
    }
    takes = {
        name
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls") and not name.startswith("_")
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    if issubclass_of_exception(thing):
        takes = set()
    if takes - documented:
        lacking.append(f"parameters not documented: {', '.join(sorted(takes - documented))}")
    if not inspect.isclass(thing):
        unknown = {entry.name.split(",")[0].strip().lstrip("*") for entry in doc["Parameters"]}
        unknown -= set(signature.parameters)
        if unknown:
            lacking.append(f"documented, but not parameters: {', '.join(sorted(unknown))}")
        returned = signature.return_annotation
        nothing = returned in (None, "None", inspect.Signature.empty, "Never", "NoReturn")
        if not nothing and not doc["Returns"] and not doc["Yields"]:
            lacking.append("no Returns section")
    if with_example and not any(">>>" in line for line in doc["Examples"]):
        lacking.append("no example that runs")
    return lacking


def issubclass_of_exception(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


@pytest.mark.parametrize("where", NAMED)
def test_a_public_name_is_documented_with_an_example(where: str) -> None:
    assert faults(NAMED[where], with_example=True) == [], where


@pytest.mark.parametrize("where", METHODS)
def test_a_public_method_says_what_it_takes_and_returns(where: str) -> None:
    assert faults(METHODS[where], with_example=False) == [], where


def test_the_check_sees_what_is_missing() -> None:
    def bare(people: int) -> int:
        """Count people

        Over two lines.
        """
        return people

    assert faults(bare, with_example=True) == [
        "the summary is not one line that ends in a full stop",
        "parameters not documented: people",
        "no Returns section",
        "no example that runs",
    ]


if __name__ == "__main__":  # python tests/test_docstrings.py: the list of what is missing
    for where, thing in [*NAMED.items(), *METHODS.items()]:
        missing = faults(thing, with_example=where not in METHODS)
        if missing:
            print(f"{inspect.getmodule(thing).__name__:40} {where}: {'; '.join(missing)}")
