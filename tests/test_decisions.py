"""Decision records and notes name files, modules and pages that exist: what is gone is not looked
for in vain.
"""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs/decisions").glob("*.md"), *(ROOT / "docs/notes").glob("*.md")])
FILE = re.compile(r"`([\w./-]+\.(?:py|md|toml|json|yml|yaml|sh|txt))`")
FOLDER = re.compile(r"`((?:src|tests|docs|service|bench|scripts)/[\w./-]+)`")
MODULE = re.compile(r"`(evenhand(?:_service)?(?:\.\w+)+)`")
LINK = re.compile(r"\]\(([^)#\s]+)")
ELSEWHERE = {"schema.json", "my_model.py"}
"""Files inside of other formats (skops keeps the first in its archives), and files of users."""


@cache
def ours() -> tuple[str, ...]:
    """The paths of all files, with a slash at both ends."""
    folders = ("src", "tests", "docs", "service", "bench", "scripts", "recipe")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    found += [path for path in ROOT.glob("*") if path.is_file()]
    return tuple(f"/{path.relative_to(ROOT).as_posix()}/" for path in found)


def missing(text: str, folder: Path) -> list[str]:
    """What a page names and nobody has: files by the end of their path, modules, and links."""
    named = {*FILE.findall(text), *FOLDER.findall(text)} - ELSEWHERE
    gone = [name for name in named if not any(f"/{name.strip('/')}/" in path for path in ours())]
    gone += [name for name in MODULE.findall(text) if not importable(name)]
    targets = [target for target in LINK.findall(text) if "://" not in target]
    return sorted(gone + [target for target in targets if not (folder / target).exists()])


def importable(name: str) -> bool:
    """Whether it is a module, or a name in one."""
    home, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(home), last)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_names_what_exists(page):
    assert missing(page.read_text(encoding="utf-8"), page.parent) == []


def test_what_is_gone_is_seen():
    text = "`no/such.py`, `tests/no_such`, `evenhand.words.no_such`, [x](no-such.md), `words.py`"
    wanted = ["evenhand.words.no_such", "no-such.md", "no/such.py", "tests/no_such"]
    assert missing(text, ROOT) == wanted


def test_the_list_of_records_is_complete():
    listed = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    records = [page.name for page in PAGES if re.match(r"\d{4}-", page.name)]
    assert len(records) > 20
    assert [name for name in records if name not in listed] == []
