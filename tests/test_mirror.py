"""Beside each module of the package there is a test module of the same path; the files that pages
name exist.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evenhand"
SERVICE = ROOT / "service" / "src" / "evenhand_service"


def mirrored(module: Path) -> Path:
    """``a/b.py`` is tested in ``tests/a/test_b.py``, below ``service`` if it is there."""
    source, tests = SOURCE, ROOT / "tests"
    if module.is_relative_to(SERVICE):
        source, tests = SERVICE, ROOT / "service" / "tests"
    path = module.relative_to(source)
    return tests / path.parent / f"test_{path.stem}.py"


MODULES = sorted(
    path
    for source in (SOURCE, SERVICE)
    for path in source.rglob("*.py")
    if not path.name.startswith("_")
)
"""Faces (``__init__``) are tested with those who use them."""


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_module_has_its_test(module: Path) -> None:
    assert mirrored(module).exists(), f"{mirrored(module).relative_to(ROOT)} is missing"


def test_the_rule_is_seen_to_fail() -> None:
    assert not mirrored(SOURCE / "no_such_module.py").exists()


PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "service" / "docs").glob("*.md")),
]
PLACES = (ROOT, SOURCE, ROOT / "tests", SERVICE, ROOT / "service")


def strange_files(text: str) -> list[str]:
    """Files with a folder that a page names, and files that it links to, which do not exist."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|yml|json))`", text))
    return sorted(name for name in named if not any((at / name).exists() for at in PLACES))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    assert strange_files(page.read_text()) == []


def test_a_file_that_does_not_exist_is_strange() -> None:
    text = "`tests/nobody.py`, `bounds/betting.py`, `docs/start.md` and `docs/gone.md`"
    assert strange_files(text) == ["docs/gone.md", "tests/nobody.py"]


def test_every_record_is_listed() -> None:
    for folder in ("decisions", "notes"):
        listed = (ROOT / "docs" / folder / "README.md").read_text(encoding="utf-8")
        records = {path.name for path in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
        assert sorted(name for name in records if f"({name})" not in listed) == []


if __name__ == "__main__":
    for module in MODULES:
        if not mirrored(module).exists():
            print(module.relative_to(ROOT), "->", mirrored(module).relative_to(ROOT))
