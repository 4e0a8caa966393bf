"""The page needs nothing else, can be parsed, and says no more than was measured."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from evenhand.report import Report, page
from evenhand.report.findings import findings, same_exploration_note
from evenhand.report.palette import LOOKS, SHEET, SPARE, looks, variable
from evenhand.simulate import Comparison, LearnerRuns, RunRecord, Tradeoff

VOID = {"meta", "br", "hr", "img", "link", "input"}
ROUNDS = np.array([1000, 4000, 10_000])


def run(seed: int, gaps: list[float], regret: float, *, promised: bool = True) -> RunRecord:
    return RunRecord(
        seed=seed,
        rounds=ROUNDS,
        regret=regret * np.array([0.5, 0.7, 1.0]),
        gaps=np.array(gaps),
        losses=np.full(3, 0.3),
        accepted=np.array([1000, 2000, 4000]),
        phases=("explore", "bandit", "bandit"),
        optimum=0.25,
        oracle_calls=12,
        seconds=0.1,
        promised=promised,
        regret_in_set=10.0 if promised else None,
    )


def runs(name: str, gaps: list[float], regret: float, *, promised: bool = True) -> LearnerRuns:
    return LearnerRuns(name, {}, tuple(run(s, gaps, regret + s, promised=promised) for s in range(4)))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return Comparison(
        environment={"environment": "toy <&>"},
        rounds=10_000,
        seeds=(0, 1, 2, 3),
        promise=0.15,
        failure_probability=0.05,
        regret_gap=0.02,
        optimum=0.25,
        learners=(
            runs("two-phase", [0.0, 0.1, 0.12], 500.0),
            runs("explore-then-commit-same", [0.0, 0.1, 0.1], 450.0),
            runs("unconstrained", [0.0, 0.3, 0.28], -90.0, promised=False),
            runs("two-phase:reading=paper", [0.0, 0.1, 0.1], 480.0, promised=False),
        ),
    )


@pytest.fixture(scope="module")
def report(comparison) -> Report:
    trade = Tradeoff(
        (0.25, 0.5), (100, 1000), (0,), 0.02, np.array([[0.3, 0.2], [0.2, 0.05]]), np.ones((2, 2)), np.ones((2, 2))
    )
    about = {one.name: f"about {one.name}" for one in comparison.learners}
    return Report(
        comparison,
        about,
        {"Population": "a <toy>"},
        "false positive rate",
        "evenhand compare --x '<y>'",
        "9.9",
        "r.json",
        trade,
    )


@pytest.fixture(scope="module")
def text(report) -> str:
    return page(report)


class Balance(HTMLParser):
    """Every tag that opens is closed in order; collects cells of tables and ids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def parsed(text: str) -> Balance:
    found = Balance()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_every_tag_is_closed_and_no_id_twice(text):
    ids = parsed(text).ids
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_elsewhere(text):
    """Would catch: a font, a script, an image, a link to a network; a figure that was left beside the page."""
    assert not re.search(r"""(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//""", text)
    assert all(target.startswith("#") for target in re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", text))
    assert all(target.startswith("#") for target in re.findall(r"""url\(\s*["']?([^)"']*)""", text))
    assert not re.search(r"<(?:script|link|iframe|img|object|embed|base)\b|@import", text)


def test_references_inside_the_figures_lead_somewhere(text):
    ids = set(parsed(text).ids)
    assert {target[1:] for target in re.findall(r'href="(#[^"]+)"', text)} <= ids
    assert {target[1:] for target in re.findall(r"url\((#[^)]+)\)", text)} <= ids


def test_the_figures_are_well_formed(text):
    figures = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert len(figures) == 2 + 4 + 2
    for figure in figures:
        drawn = ElementTree.fromstring(figure)
        assert drawn.get("role") == "img"
        assert drawn.get("aria-label")
        assert drawn.get("viewBox")
        assert drawn.get("width") is None


def test_every_learner_has_its_row(text, comparison):
    rows = {cells[0]: cells for cells in parsed(text).rows[1:]}
    assert list(rows) == [one.name for one in comparison.learners]
    assert rows["two-phase"][1:7] == ["yes", "502 ± 1", "10", "0.120", "0 of 4", "0.0%"]
    assert rows["unconstrained"][1:7] == ["no", "\u221288 ± 1", "", "0.300", "4 of 4", "90.0%"]


def test_text_is_escaped(text):
    assert "toy &lt;&amp;&gt;" in text
    assert "a &lt;toy&gt;" in text
    assert "<toy" not in text
    assert "&#x27;&lt;y&gt;&#x27;" in text


def test_both_schemes_define_every_colour_that_is_used(text):
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", text))
    light, dark = (
        text[: text.index("@media (prefers-color-scheme: dark)")],
        text[text.rindex("@media (prefers-color-scheme: dark)") :],
    )
    for name in used - {"--paper", "--card", "--good", "--link"} - set(SHEET.values()):
        assert text.count(f"{name}:") == 2, name
        assert f"{name}:" in dark
    for name in SHEET.values():
        assert text.count(f"{name}:") == 2
        assert f"{name}:" in light
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) <= {"#ffffff", "#000000"}


def test_words(text):
    """The house's words: certified with a probability under assumptions; never more than that."""
    lower = text.lower()
    assert "certified under these assumptions" in lower
    assert "with probability at least 0.95" in lower
    assert not re.search(r"unbiased|bias-free|guarantee", lower)


def test_the_same_input_gives_the_same_page(report, text):
    assert page(report) == text


def test_findings(comparison):
    said = findings(comparison, "false positive rate")
    assert "two-phase and explore-then-commit-same kept" in said[0]
    assert any(line.startswith("unconstrained was above 0.15 in 4 of 4 runs and 90.0%") for line in said)
    assert any("Not certified, but not above" in line and "reading=paper" in line for line in said)
    assert "certified and learn: explore-then-commit-same, 452 errors" in said[-1]


def test_a_certified_learner_that_fails_is_told(comparison):
    broken = replace(comparison, learners=(runs("two-phase", [0.0, 0.2, 0.1], 500.0),))
    assert "although it is certified; the certificate allows this in a share of 0.05" in findings(broken, "x")[0]


def test_the_honest_note(comparison):
    assert "two-phase made 50 ± 0 errors more than explore-then-commit-same." in same_exploration_note(comparison)[-1]
    swapped = replace(
        comparison, learners=(runs("two-phase", [0.0] * 3, 1.0), runs("explore-then-commit-same", [0.0] * 3, 9.0))
    )
    assert "errors fewer" in same_exploration_note(swapped)[-1]
    alone = replace(comparison, learners=comparison.learners[:1])
    assert "add --learner two-phase --learner explore-then-commit-same" in same_exploration_note(alone)[-1]
    draw = replace(
        comparison, learners=(runs("two-phase", [0.0] * 3, 5.0), runs("explore-then-commit-same", [0.0] * 3, 5.0))
    )
    assert "a draw" in same_exploration_note(draw)[-1]


def test_looks_are_the_same_in_every_figure_and_differ_between_learners():
    assert looks(["exp4", "two-phase"])["two-phase"] == looks(["two-phase"])["two-phase"]
    assert looks(["a", "two-phase", "b"])["b"] == SPARE[1]
    known = [*LOOKS.values(), *SPARE]
    assert len({look.colour for look in known}) == len({look.dark for look in known}) == len(known)
    assert len({(str(look.dash), look.width) for look in LOOKS.values()}) >= len(LOOKS) - 1
    assert len({variable(look.colour) for look in known}) == len(known)


def test_contrast_of_names_on_the_page():
    """Names are written in the learner's colour: at least 3:1 against white and against the dark page, the measure for large text."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return float(
            np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
        )

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for name, look in [*LOOKS.items(), *enumerate(SPARE)]:
        assert contrast(look.colour, "#ffffff") >= 3, name
        assert contrast(look.dark, "#14171a") >= 4.5, name


def test_a_page_of_one_learner_and_one_run(report, comparison):
    single = LearnerRuns("uniform", {}, (run(5, [0.0, 0.0, 0.0], 100.0),))
    small = replace(comparison, learners=(single,), seeds=(5,))
    text = page(replace(report, comparison=small, tradeoff=None, about={"uniform": "coin"}))
    assert parsed(text).rows[1][2] == "100"
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S).lower()


def test_results_can_be_drawn_again_from_json(report, comparison, text):
    again = Comparison.from_json(json.loads(json.dumps(comparison.to_json())))
    assert page(replace(report, comparison=again)) == text
