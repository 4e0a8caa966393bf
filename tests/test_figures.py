"""Every number in a table of the README and of the site comes from somewhere that is compared with
it: a kept result, the test that the row is about, or a constant of the code.

Tables that a page generates when it is built need no test. What prose says about kept results is
compared below, too.
"""

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest

from evenhand import schema, theory
from evenhand.bandit.feasibility import iteration_cap
from evenhand.bounds import betting
from evenhand.planning import launch_plan
from evenhand.tables import cleaning, frame

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
KEPT = DOCS / "measured"
NOT_SHOWN = ("api", "service", "decisions", "notes", "_templates", "_static")
WRITTEN_FROM_CODE = ("http.md", "settings.md", "statements.md", "theory.md")
"""service/tests and tests/test_statements.py, tests/test_theory.py compare these with the code."""

NUMBER = re.compile(r"(?<![\w.^/])-?(?:(?:\d[\d,]*\d|\d)(?:\.\d+)?|\.\d+)(?:e-?\d+)?%?(?![\w/])")
NO_FIGURE = re.compile(
    r"\$[^$]*\$|`[^`]*`|\[\d{4}\]|\]\([^)]*\)"  # formulas, code, numbers of records, links
    r"|(?i:lemmas?|theorems?|sections?|remarks?|deviations?|algorithm) [A-Z]?\.?\d[\d.]*"
    r"|, (?:19|20)\d\d\)|UTF-8|SHA-256|1970-01-01|2\^53"
)
NOTATION = {"0", "1", "-1", "2", "1.00"}
"""Outcomes, labels and decisions as numbers, 1 - delta, and a share of all."""


def constant(value: float) -> str:
    """As the pages write it."""
    return f"{value:,}"


CONSTANTS = {
    "guarantee/proof.md": {constant(len(betting.HORIZONS))},
    "how-to/own-model.md": {constant(schema.LENGTH)},
    "how-to/planning.md": {f"{launch_plan.PROBABLE:.0%}", f"{launch_plan.SURE:.0%}", "95%"},
    "how-to/your-table.md": {
        constant(frame.MOST_CATEGORIES),
        constant(cleaning.FEWEST),
        *("51000", "51"),  # the two readings of 51,000
    },
    "operating.md": {"200", "503", "410"},  # answers over HTTP
    "README.md of the service": {"15"},  # service/docs/settings.md, which is written from code
}
"""Numbers of tables that the code has, by page."""


def numbers(text: str) -> list[str]:
    """The numbers of a line, as they are written."""
    return NUMBER.findall(NO_FIGURE.sub(" ", text))


def tables(page: Path) -> list[str]:
    """The lines of the tables that are typed on a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [line for line in text.splitlines() if line.startswith("|")]


def site() -> dict[str, Path]:
    """The pages with typed tables, by the name under which their constants are listed."""
    pages = {
        str(path.relative_to(DOCS)): path
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).parts[0] not in NOT_SHOWN
    }
    pages |= {path.name: path for path in (ROOT / "service/docs").glob("*.md")}
    pages |= {"README.md": ROOT / "README.md"}
    pages |= {"README.md of the service": ROOT / "service/README.md"}
    return {name: path for name, path in pages.items() if path.name not in WRITTEN_FROM_CODE}


@cache
def measured(kind: str) -> str:
    """All figures that are kept of a run, one row a line; empty if none is kept."""
    path = KEPT / f"{kind}.json"
    if not path.exists():
        return ""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return "\n".join(f"{row['row']} | {row['target']} | {row['figure']}" for row in rows)


def value(text: str) -> float:
    """A number as it is written: 1,017 or .181 or 14% or 1e+05."""
    plain = float(text.strip("%,").replace(",", "").replace("_", ""))
    return plain / 100 if text.endswith("%") else plain


def values_in(text: str) -> set[float]:
    """All numbers of a text, or of source code (1_000, 10**5); 5 is also taken for 5%."""
    written = re.findall(r"(?<![\w.])-?(?:\d[\d,_]*)?\.?\d+(?:e[+-]?\d+)?", text)
    found = {value(one) for one in written} | {value(one.lstrip("-")) for one in written}
    powers = re.findall(r"\b(\d+) ?\*\* ?(\d+)", text)
    found |= {float(int(base) ** int(exponent)) for base, exponent in powers}
    return found | {one / 100 for one in found}


def untold(line: str, sources: str) -> list[str]:
    """The numbers of a line that no source has."""
    known = values_in(sources)
    return [
        one
        for one in numbers(line)
        if one not in NOTATION and not any(abs(value(one) - had) <= 1e-9 for had in known)
    ]


def source_of(name: str, line: str) -> str:
    """What the numbers of a row are compared with."""
    if name == "guarantee/claims.md":
        tested = re.search(r"`(test_\w+\.py)`", line)
        return (ROOT / "tests/claims" / tested[1]).read_text(encoding="utf-8") if tested else ""
    if name == "paper/deviations.md":
        return measured("claims")
    return " ".join(CONSTANTS.get(name, ()))


@pytest.mark.parametrize("name", sorted(site()))
def test_no_number_in_a_table_is_typed_without_a_source(name):
    wrong = {line: untold(line, source_of(name, line)) for line in tables(site()[name])}
    assert {line: missing for line, missing in wrong.items() if missing} == {}


def test_a_number_without_a_source_is_seen():
    row = "| Adult | .36 (.42) | 1,017 | 14% | `17` | $18$ | lemma 3.6 | (Li, 2022) |"
    assert numbers(row) == [".36", ".42", "1,017", "14%"]
    assert untold(row, "0.36, T0 1,017, 14 %") == [".42"]
    assert untold("| 5,000 people, T = 1e5 |", "PEOPLE = 5_000; T = 10**5") == []
    assert source_of("guarantee/index.md", row) == ""


def computed() -> set[str]:
    """Figures of the page of deviations that follow from formulas, as the page writes them."""
    both = theory.iteration_cap(0.01, 2)
    return {
        f"{both:,.0f}",
        f"{theory.uniform_rounds(1e6, math.log(204), 0.001):,}",
        *(f"{round(theory.lower_bound_horizon(alpha)):,}" for alpha in (1 / 4, 1 / 3)),
        f"{math.ceil(iteration_cap(0.01, 2)):,}",
        f"{(0.85 + 0.01) / (0.9 + 0.85):.3f}".lstrip("0"),  # w .9 - (1 - w) .85 <= .01
    }


def test_no_figure_of_the_deviations_is_without_a_source():
    """Every number of its prose with a comma, point, exponent or percent sign is kept, in the
    test of the deviation, or follows from a formula.
    """
    page = (DOCS / "paper/deviations.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests/test_deviations.py").read_text(encoding="utf-8")
    known = " ".join([measured("claims"), tests, *computed()])
    rounded = {f"{one:.0%}" for one in values_in(measured("claims")) if one < 1}
    prose = re.sub(r"(?i)\b(definition|entry|proposition)\s+\d+(\.\d+)?", "", page)
    prose = re.sub(r"\b(?:19|20)\d\d\b|\b\d\.\d+(?=[;:] [A-Z])", "", prose)

    def strange(text):
        return [one for one in untold(text, known) if re.search("[,.%e]", one)]

    assert [one for one in strange(prose) if one not in rounded] == []
    assert strange("regret is 17,123 and .777") == ["17,123", ".777"]


def shares_of_the_constant(horizon: str) -> dict[str, float]:
    """The regret over that of the best constant on real tables, by table and rate."""
    found = re.findall(
        rf"^real tables, (.*): regret over the best constant's, T={horizon} \| .* \| (-?[\d.]+)",
        measured("claims-tables"),
        flags=re.M,
    )
    return {name: float(share) for name, share in found}


def test_what_the_readme_says_about_cost_is_what_was_kept():
    """The range over four tables under the false positive rate, and Adult under the false negative
    rate, after 100,000 people.
    """
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (said,) = re.findall(r"(\.\d\d) to (\.\d\d) of the regret of the better constant", text)
    (adult,) = re.findall(r"on Adult it had (\d\.\d\d)", text)
    shares = shares_of_the_constant("1e5")
    if not shares:
        pytest.skip("no results of make claims-tables are kept")
    of_tables = [share for name, share in shares.items() if "," not in name]
    assert len(of_tables) == 4
    ends = (min(of_tables), max(of_tables))
    assert said == tuple(f"{share:.2f}".lstrip("0") for share in ends)
    assert adult == f"{shares['adult, FNR']:.2f}"
