"""One vocabulary: words that README, site, help, messages and docstrings of public names avoid.

The list is short on purpose: words of another language's idiom ("lives", "told", "in charge"), old
names of quantities that have one name now, and claims that nobody can make.
"""

import re
from pathlib import Path

import pytest

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
EXEMPT = {f"docs/{page}" for page in MEASURED} | {"service/docs/http.md"}


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_use_plain_words(page):
    assert unwanted(page.read_text(encoding="utf-8")) == []
