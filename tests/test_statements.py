"""docs/paper/statements.md has a row for each numbered or named item of the paper, and each row
names a place that imports, a test that exists, and a verdict with its reasons.

The labels are data here, as the paper numbers them when it is typeset; its text is not needed.
"""

import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "paper" / "statements.md"

NUMBERED = """
    Definition 1.1, Definition 1.2, Remark 1.3,
    Example 2.1, Definition 2.2, Definition 2.3, Proposition 2.4,
    Theorem 3.1, Remark 3.2, Remark 3.3, Lemma 3.4, Theorem 3.5, Lemma 3.6, Claim 3.7, Lemma 3.8,
    Lemma 3.9, Lemma 3.10, Theorem 3.11,
    Theorem 4.1, Lemma 4.2, Corollary 4.3, Lemma 4.4,
    Theorem B.1, Lemma B.2, Lemma B.3, Lemma B.4, Lemma B.5, Lemma B.6, Lemma B.7, Lemma B.8,
    Figure 1, Algorithm 1
"""
"""The environments with a number; definitions, lemmas and so on share one counter per section."""
NAMED = (
    "Section 1: feedback loop",
    "Section 1: false negative rates",
    "Section 1: initial approach",
    "Section 2: constants in H",
    "Section 2: group classifiers",
    "Section 2: online protocol",
    "Section 2: regret",
    "Section 2: loss matrix",
    "Section 2: exploration-then-exploitation",
    "Section 2: EXP4 on a net",
    "Section 3: first assumption",
    "Section 3: second assumption",
    "Section 3: the algorithm",
    "Section 3.1: FairCSC",
    r"Section 3.1: the set $\Pi$",
    "Section 3.2: IPS estimate",
    r"Section 3.2: $Q^\mu$",
    "Section 3.2: feasibility program",
    r"Section 3.2: $\Lambda_t$",
    r"Section 3.3: the cover $\Pi_\eta$",
    r"Section 3.3: $\mu_t$, $\eta$, $\nu$",
    "Section 4: the instance",
    "Section 4: KL divergence",
    "Appendix A: bandit protocol",
    "Appendix A: transformed loss",
    "Appendix B.2: multiplier budget",
    "Appendix B.3: potential",
)
"""Paragraphs, assumptions, baselines, boxes and sets with a name but no number."""
SECOND = ("Theorem 3.1, regret",)
"""A statement with two claims has a row for each."""
VERDICTS = ("exact", "holds", "order holds", "replaced")


def labels() -> list[str]:
    return [label for label in re.split(r",\s*", NUMBERED.strip()) if label]


def rows(text: str) -> list[list[str]]:
    """The cells of all rows with five columns, without the heads."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [row for row in lines if len(row) == 5 and row[0] != "item"]


ROWS = rows(PAGE.read_text(encoding="utf-8"))


def test_the_numbers_of_a_section_have_no_hole() -> None:
    """Each counter starts at 1 and rises by 1, so that no label can be left out of the data."""
    by_section: dict[str, list[int]] = {}
    for label in labels():
        section, _, number = label.split()[1].rpartition(".")
        by_section.setdefault(section or label.split()[0], []).append(int(number))
    for numbers in by_section.values():
        assert numbers[0] == 1
        assert all(after == before + 1 for before, after in pairwise(numbers))
    expected = {"1": 3, "2": 4, "3": 11, "4": 4, "B": 8, "Figure": 1, "Algorithm": 1}
    assert {name: len(numbers) for name, numbers in by_section.items()} == expected


def missing(found: list[list[str]]) -> set[str]:
    """Labels of the paper without a row, and rows that are no label of the paper."""
    return {row[0] for row in found} ^ {*labels(), *NAMED, *SECOND}


def test_each_statement_has_a_row_and_each_row_a_statement() -> None:
    assert missing(ROWS) == set()
    assert len(ROWS) == len({row[0] for row in ROWS})
    assert len(ROWS) >= 55


def test_a_row_that_is_left_out_is_seen() -> None:
    assert missing(ROWS[1:]) == {ROWS[0][0]}
    assert missing([*ROWS, ["Lemma 9.9", "", "", "", ""]]) == {"Lemma 9.9"}


def resolve(name: str) -> object:
    """What a dotted name below `evenhand` stands for: a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(["evenhand", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def strange_test(name: str) -> bool:
    """Whether there is no such file, or no such test in it."""
    path, _, function = name.partition("::")
    file = ROOT / "tests" / path
    if not file.exists():
        return True
    text = file.read_text(encoding="utf-8")
    return not re.search(rf"def {function or 'test_'}", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_a_place_a_test_and_a_verdict(row: list[str]) -> None:
    _, words, code, tests, verdict = row
    assert words
    places = re.findall(r"`([^`]+)`", code)
    assert places
    for place in places:
        resolve(place)
    named = re.findall(r"`([^`]+)`", tests)
    assert named
    assert [name for name in named if strange_test(name)] == []
    word, *entries = verdict.split(", ")
    assert word in VERDICTS
    assert entries or word != "replaced"
    text = (ROOT / "docs" / "paper" / "deviations.md").read_text(encoding="utf-8")
    for entry in entries:
        assert re.search(rf"^### {entry}\. ", text, flags=re.M), entry


def test_what_does_not_exist_is_seen() -> None:
    with pytest.raises(AttributeError):
        resolve("theory.no_such_bound")
    with pytest.raises(ModuleNotFoundError):
        resolve("no_such_module.at_all")
    assert strange_test("claims/test_nothing.py")
    assert strange_test("test_theory.py::test_no_such_thing")
    assert not strange_test("test_theory.py::test_saddle_point_error")


def test_every_claim_is_on_the_page_and_every_claim_of_ours_has_its_place() -> None:
    text = PAGE.read_text(encoding="utf-8")
    claims = {f"claims/{path.name}" for path in (ROOT / "tests" / "claims").glob("test_*.py")}
    assert sorted(claim for claim in claims if f"`{claim}" not in text) == []
    beyond = text[text.index("## Beyond the paper") :]
    ours = re.findall(r"^\|.*\| `([\w.]+)` \| `([\w/]+\.py)` \|$", beyond, flags=re.M)
    assert len(ours) > 15
    for place, test in ours:
        resolve(place)
        assert not strange_test(test)


def claim_rows(text: str) -> dict[str, str]:
    """The negative control of each file in the table of docs/guarantee/claims.md."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    named = [(re.fullmatch(r"`(test_\w+\.py)`", row[1]), row) for row in lines if len(row) == 5]
    return {name[1]: row[4] for name, row in named if name}


def test_each_claim_has_a_row_with_a_negative_control() -> None:
    text = (ROOT / "docs" / "guarantee" / "claims.md").read_text(encoding="utf-8")
    controls = claim_rows(text)
    files = {path.name for path in (ROOT / "tests" / "claims").glob("test_*.py")}
    assert files - set(controls) == set()
    assert [name for name, control in controls.items() if len(control) < 4] == []
    assert claim_rows("| a claim | `test_x.py` | how | what | - |") == {"test_x.py": "-"}
