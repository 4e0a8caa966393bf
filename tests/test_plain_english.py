"""One vocabulary: words that README, site, help, messages and docstrings of public names avoid.

The list is short on purpose: words of another language's idiom ("lives", "told", "in charge"), old
names of quantities that have one name now, and claims that nobody can make.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evenhand.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
UNWANTED = {
    "lives": "runs",
    "lifetimes?": "run",
    "doors?": "entry point",
    "laws?": "requirement",
    "told": "reported, given",
    "everybody": "all applicants, all people",
    "in charge": "deployed",
    "dearer": "costs more",
    "foretold": "predicted",
    "whoever": "a noun",
    "in the worst way": "as the worst case",
    "allowed gap": "limit",
    "failure probability": "delta",
    "unbiased": "certified with probability 1 - delta under ...",
    "bias-free": "the same",
    "guarantees? fairness": "the same",
}
"""Patterns, each with what to write instead."""
ALLOWED = ("law school", "Law School", "Local Law 144", "/law", "in-laws")
"""Phrases in which a word of the list means something else."""
PATTERN = re.compile(rf"(?<![\w-])({'|'.join(UNWANTED)})(?![\w-])", flags=re.IGNORECASE)


def unwanted(text: str) -> list[str]:
    """The unwanted words of a text, each with some context."""
    for phrase in ALLOWED:
        text = text.replace(phrase, " ")
    text = " ".join(text.split())
    return [text[max(0, m.start() - 30) : m.end() + 30] for m in PATTERN.finditer(text)]


def test_an_unwanted_word_is_seen_and_an_allowed_phrase_is_not():
    assert len(unwanted("Everybody is told, over all\nlives, who is in\ncharge.")) == 4
    assert (
        unwanted("Law school admissions, and Local Law 144 of New York.".replace("L", "l", 1)) == []
    )
    assert unwanted("the flawed outlaw olives") == []


MEASURED = ("guarantee/claims.md", "paper/statements.md")
"""Their words follow the names of tests and the rows that `make claims` printed."""


def pages() -> list[Path]:
    found = [path for path in DOCS.rglob("*.md") if path.parts[len(DOCS.parts)] not in OFF]
    found += (ROOT / "service" / "docs").glob("*.md")
    found.append(ROOT / "README.md")
    return sorted(path for path in found if str(path.relative_to(DOCS.parent)) not in EXEMPT)


OFF = ("api", "service", "decisions", "notes", "_build")
EXEMPT = {f"docs/{page}" for page in MEASURED}


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_use_plain_words(page):
    assert unwanted(page.read_text(encoding="utf-8")) == []


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups among them."""
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield name, found
        if isinstance(found, click.Group):
            yield from commands(found, context)


def test_the_help_of_every_command_uses_plain_words():
    wrong = {"evenhand": unwanted(main.help or "")}
    for name, found in commands(main, click.Context(main)):
        options = [one.help or "" for one in found.params if isinstance(one, click.Option)]
        wrong[name] = unwanted("\n".join([found.help or "", *options]))
    assert {name: words for name, words in wrong.items() if words} == {}


def public() -> Iterator[tuple[str, object]]:
    """The promised names, and the methods of the classes among them."""
    for face in ("evenhand", "evenhand.contracts"):
        module = importlib.import_module(face)
        yield face, module
        own = [name for name, thing in vars(module).items() if inspect.isclass(thing)]
        for name in getattr(module, "__all__", own):
            thing = getattr(module, name)
            yield f"{face}.{name}", thing
            if inspect.isclass(thing):
                for one, member in inspect.getmembers(thing):
                    if not one.startswith("_"):
                        yield f"{face}.{name}.{one}", member


def test_the_docstrings_of_public_names_use_plain_words():
    wrong = {name: unwanted(inspect.getdoc(thing) or "") for name, thing in public()}
    assert len(wrong) > 100
    assert {name: words for name, words in wrong.items() if words} == {}


def messages(source: str) -> Iterator[str]:
    """The texts of what a module raises."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            texts = [one for one in ast.walk(node.exc) if isinstance(one, ast.Constant)]
            yield " ".join(str(one.value) for one in texts if isinstance(one.value, str))


def test_the_messages_of_errors_use_plain_words():
    wrong = {}
    for root in (ROOT / "src", ROOT / "service" / "src"):
        for path in root.rglob("*.py"):
            found = [
                w for text in messages(path.read_text(encoding="utf-8")) for w in unwanted(text)
            ]
            wrong |= {str(path.relative_to(ROOT)): found} if found else {}
    assert wrong == {}
    assert [unwanted(one) for one in messages("raise E(f'{x} is told', hint='ask')")] != [[]]
