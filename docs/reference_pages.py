"""Writes the pages of the reference: each public name of each face once, from the code itself.

A face is a module that people import from. Its page lists its names by kind; each name gets a page
of its own by autosummary (signature, parameters, inherited members, example). A name that is also
reached as ``evenhand.NAME`` has its page there, and is listed on the other faces with a link to it.
"""

import importlib
import inspect
import re
from pathlib import Path

from sphinx.pycode import ModuleAnalyzer

FACES = {
    "evenhand": "Python: the names of evenhand",
    "evenhand.contracts": "Python: the contracts",
    "evenhand_service.client": "Python: a client of the service",
}
"""The modules of the reference, with the title of their page."""

GROUPS = {
    "Your table": (
        *("read_table", "measure", "impact", "certify", "FairClassifier", "alternatives"),
        *("solve_fair", "CostSensitiveProblem", "LabelledSample", "Prices"),
    ),
    "A launch": ("CertifiedLearner", "TwoPhaseLearner", "load", "plan", "simulate"),
    "Rates": ("FalsePositiveRate", "FalseNegativeRate", "SelectionRate", "Rate"),
    "Classes of rules": ("ScoreThresholds", "Stumps", "Linear", "Estimator", "FiniteClass"),
    "What comes out": ("Certificate", "Policy", "explain"),
}
"""The names of `evenhand` by what they are for; names that no group has are listed as they are."""


def public_names(face: str) -> list[str]:
    """The names of a face: its ``__all__``, or what it defines itself."""
    module = importlib.import_module(face)
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == face and not name.startswith("_")
    ]
    return [name for name in getattr(module, "__all__", own) if not name.startswith("_")]


def _home(face: str, name: str) -> str:
    """Where a name has its page: at `evenhand` if it is the same thing there."""
    top = importlib.import_module("evenhand")
    thing = getattr(importlib.import_module(face), name)
    shared = name in top.__all__ and getattr(top, name) is thing
    return f"evenhand.{name}" if shared else f"{face}.{name}"


def _kind(thing: object) -> str:
    if inspect.isclass(thing):
        return "Errors" if issubclass(thing, BaseException) else "Classes"
    return "Functions" if inspect.isroutine(thing) else "Values and types"


def _note(thing: object, name: str) -> list[str]:
    """The text under the assignment of a value, wherever in the package it is assigned."""
    root = Path(importlib.import_module("evenhand").__path__[0])
    for found in sorted(root.rglob("*.py")):
        source = found.read_text(encoding="utf-8")
        if not re.search(rf"^{name}\b.* = ", source, flags=re.M):
            continue
        parts = found.relative_to(root).with_suffix("").parts
        module = ".".join(("evenhand", *(part for part in parts if part != "__init__")))
        if getattr(importlib.import_module(module), name, None) is thing:
            note = ModuleAnalyzer.for_string(source, module).find_attr_docs().get(("", name))
            if note:
                return note
    return []


def _value(face: str, name: str) -> list[str]:
    """A constant or a type alias is described on the page of its face."""
    thing = getattr(importlib.import_module(face), name)
    alias = hasattr(thing, "__origin__")
    told = f"   :canonical: {str(thing).replace('typing.', '')}" if alias else ""
    return [
        f".. py:{'type' if alias else 'data'}:: {face}.{name}",
        told,
        "",
        *(f"   {line}" for line in _note(thing, name) or _holds(thing)),
        "",
    ]


def _holds(thing: object) -> list[str]:
    """What a value without a text of its own holds."""
    if hasattr(thing, "__origin__"):
        return []
    return [f"A :py:obj:`~{type(thing).__module__.rsplit('.', 1)[0]}.{type(thing).__name__}`."]


def _grouped(face: str) -> dict[str, list[str]]:
    names = [name for name in public_names(face) if f"{face}.{name}" not in FACES]
    if face == "evenhand":
        names += [name for name in ("simulate",) if name not in names]
        groups = {title: [n for n in group if n in names] for title, group in GROUPS.items()}
        left = [n for n in names if not any(n in group for group in groups.values())]
        errors = [n for n in left if _kind(getattr(importlib.import_module(face), n)) == "Errors"]
        groups |= {"Errors": errors, "More": [n for n in left if n not in errors]}
        return {title: group for title, group in groups.items() if group}
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_kind(getattr(importlib.import_module(face), name)), []).append(name)
    return {
        kind: found[kind]
        for kind in ("Classes", "Functions", "Errors", "Values and types")
        if kind in found
    }


def show_indented(lines: list[str]) -> set[int]:
    """Mark what stands indented under "...:" as text to be shown as it is; return its lines.

    Docstrings set formulas and short programs apart in this way. To reStructuredText that would
    be a quotation, whose lines run together.
    """
    shown: set[int] = set()
    for number, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        told = line.strip()
        if number in shown or not told.endswith(":") or told.startswith((":", "..", ">>>")):
            continue
        below = number + 1
        while below < len(lines) and not lines[below].strip():
            below += 1
        if below == number + 1 or below == len(lines) or lines[below].lstrip().startswith(">>>"):
            continue
        end = below
        while end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > depth
        ):
            end += 1
        if end > below:
            lines[number] = line.rstrip(":") + "::"
            shown |= set(range(below, end))
    return shown


def page_of(face: str) -> str:
    """The reStructuredText of a face's page."""
    title = FACES[face].replace("`", "")
    module = importlib.import_module(face)
    lines = [title, "=" * len(title), "", f"``{face}``", ""]
    told = (inspect.getdoc(module) or "").splitlines()
    show_indented(told)
    lines += [*told, ""]
    for heading, names in _grouped(face).items():
        lines += [heading, "-" * len(heading), ""]
        if heading == "Values and types":
            lines += [line for name in names for line in _value(face, name)]
            continue
        own = [name for name in names if _home(face, name) == f"{face}.{name}"]
        shared = [name for name in names if name not in own]
        for toctree, listed in (("   :toctree: names", own), (None, shared)):
            if listed:
                lines += [
                    ".. autosummary::",
                    *([toctree] if toctree else []),
                    "   :nosignatures:",
                    "",
                ]
                lines += [f"   ~{_home(face, name)}" for name in listed] + [""]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write the pages of all faces; a page that has not changed keeps its date."""
    folder.mkdir(exist_ok=True)
    for face in FACES:
        path, text = folder / f"{face.replace('.', '-')}.rst", page_of(face)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
