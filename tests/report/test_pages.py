"""Pages are whole, and their sentences say no more than was measured."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report import toys

from evenhand.media.drawing import TEXT_VARIABLES
from evenhand.report import Report, StudyReport, page, study_page
from evenhand.report.pages import findings, percent, same_exploration_note, study_findings
from evenhand.simulation import Comparison, LearnerRuns, RunRecord

pytest.importorskip("matplotlib")


VOID = {"meta", "br", "hr", "img", "link", "input"}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return toys.comparison()


@pytest.fixture(scope="module")
def report(comparison) -> Report:
    about = {one.name: f"about {one.name}" for one in comparison.learners}
    return Report(
        comparison,
        about,
        {"Population": "a <toy>"},
        "false positive rate",
        "evenhand compare --x '<y>'",
        "9.9",
        "r.json",
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
    """Would catch: a font, a script, an image, a link to a network, a figure beside the page."""
    assert not re.search(r"""(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//""", text)
    targets = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", text)
    assert all(target.startswith("#") for target in targets)
    assert all(target.startswith("#") for target in re.findall(r"""url\(\s*["']?([^)"']*)""", text))
    assert not re.search(r"<(?:script|link|iframe|img|object|embed|base)\b|@import", text)


def test_references_inside_the_figures_lead_somewhere(text):
    ids = set(parsed(text).ids)
    assert {target[1:] for target in re.findall(r'href="(#[^"]+)"', text)} <= ids
    assert {target[1:] for target in re.findall(r"url\((#[^)]+)\)", text)} <= ids


def test_the_figures_are_well_formed(text):
    figures = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert len(figures) == 2 + 4
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
    worse = ["no", "\u221288 ± 1", "\u2013", "0.300", "4 of 4", "90.0%"]
    assert rows["unconstrained"][1:7] == worse


def test_text_is_escaped(text):
    assert "toy &lt;&amp;&gt;" in text
    assert "a &lt;toy&gt;" in text
    assert "<toy" not in text
    assert "&#39;&lt;y&gt;&#39;" in text


def test_both_schemes_define_every_colour_that_is_used(text):
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", text))
    light, dark = (
        text[: text.index("@media screen and (prefers-color-scheme: dark)")],
        text[text.rindex("@media screen and (prefers-color-scheme: dark)") :],
    )
    for name in used - {"--paper", "--card", "--good", "--link"} - set(TEXT_VARIABLES.values()):
        assert text.count(f"{name}:") == 2, name
        assert f"{name}:" in dark
    for name in TEXT_VARIABLES.values():
        assert text.count(f"{name}:") == 2
        assert f"{name}:" in light
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) <= {"#ffffff", "#000000"}


def test_words(text):
    """The house's words: certified with a probability under assumptions; never more than that."""
    lower = text.lower()
    assert "certified under these assumptions" in lower
    assert "with probability at least 0.95" in lower
    assert not re.search(r"unbiased|bias-free|guarantees fairness", lower)


def test_the_same_input_gives_the_same_page(report, text):
    assert page(report) == text


def test_a_page_of_one_learner_and_one_run(report, comparison):
    single = LearnerRuns("uniform", {}, (toys.run(5, [0.0, 0.0, 0.0], 100.0),))
    small = replace(comparison, learners=(single,), seeds=(5,))
    text = page(replace(report, comparison=small, about={"uniform": "coin"}))
    assert parsed(text).rows[1][2] == "100"
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S).lower()


def test_results_can_be_drawn_again_from_json(report, comparison, text):
    again = Comparison.from_json(json.loads(json.dumps(comparison.to_json())))
    assert page(replace(report, comparison=again)) == text


def with_gathered_labels(runs: LearnerRuns, certified: float | None = None) -> LearnerRuns:
    """The runs with gaps on the gathered labels, and with one certified bound in all epochs."""

    def followed(run: RunRecord) -> RunRecord:
        bound = None if certified is None else np.full(3, certified)
        weights = {"learned": 3 * run.gaps, "audit": 1 - 3 * run.gaps}
        return replace(run, in_sample=run.gaps / 2, certified=bound, **weights)

    return replace(runs, runs=tuple(followed(run) for run in runs.runs))


def test_the_page_has_the_certified_sections_when_there_is_a_certified_learner(report, comparison):
    ordinary = with_gathered_labels(toys.runs("fair-on-gathered", [0.1, 0.2, 0.2], 5.0))
    certified = with_gathered_labels(toys.runs("certified", [0.0, 0.1, 0.12], 9.0), 0.14)
    both = replace(comparison, learners=(ordinary, certified))
    text = page(replace(report, comparison=both, about={}))
    parsed(text)
    assert "<h2>Certified at every round</h2>" in text
    assert text.count("Gap on the gathered labels against the true gap") == 2
    assert not any(word in text for word in ("unbiased", "bias-free", "guarantees fairness"))
    without = page(replace(report, comparison=replace(comparison, learners=(ordinary,)), about={}))
    assert "Certified at every round" not in without


# the page of a study


def study_report(about=None, **changes) -> StudyReport:
    return StudyReport(
        study=toys.study(**changes),
        about=about or {},
        rate="false positive rate",
        command="evenhand study loans",
        version="0",
        results="r.parquet",
    )


@pytest.fixture(scope="module")
def study_text() -> str:
    paragraphs = ["1,000 people <all of them>. Two columns.", "Caveat: old."]
    return study_page(study_report({"loans": paragraphs}))


def test_the_page_of_a_study_needs_nothing_else(study_text):
    ids = parsed(study_text).ids
    assert len(ids) == len(set(ids))
    assert study_text.count("<svg") == 2
    assert not re.search(r"https?:(?!//www\.w3\.org)", study_text)
    assert "in sample" not in study_text
    assert "evenhand study loans" in study_text


def test_what_is_known_of_a_table_is_escaped_paragraph_by_paragraph(study_text):
    assert "<p>1,000 people &lt;all of them&gt;. Two columns.</p>" in study_text
    assert "<p>Caveat: old.</p>" in study_text


def test_every_learner_of_a_study_has_its_row(study_text):
    rows = {tuple(cells[:2]): cells for cells in parsed(study_text).rows}
    assert rows["certified", "yes"][2:] == [
        "0.1965", "0.40 ± 0.00", "0.030", "0 of 2", "0%", "10.0%", "60%", "1.0"
    ]  # fmt: skip
    assert rows["unconstrained", "no"][2:7] == [
        "0.1965",
        "\u22120.30 ± 0.00",
        "0.260",
        "2 of 2",
        "97%",
    ]
    assert '<span class="broken">0.260</span>' in study_text
    assert '<span class="kept">0.030</span>' in study_text


def test_at_a_glance_every_learner_has_its_verdict(study_text):
    assert '<span class="broken">0.260, 97% of rounds</span>' in study_text
    assert '<span class="kept">0.030</span>, certified' in study_text


def test_cheaper_than_allowed_is_explained_beside_the_table(study_text):
    words = "not one that could have been had within the limit"
    assert words in study_text
    assert words not in study_page(study_report(gaps=[0.0, 0.0, 0.0]))


def test_a_table_without_anything_to_gain_has_no_ratio():
    text = study_page(study_report(constant=0.15))
    assert "nothing to learn here" in text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S)


def test_words_that_a_study_never_uses(study_text):
    lower = study_text.lower()
    assert not [word for word in ("unbiased", "bias-free", "guarantees fairness") if word in lower]


# Sentences that say no more than was measured


def test_every_learner_of_a_comparison_is_reported():
    said = findings(toys.comparison(), "false positive rate")
    assert "two-phase and explore-then-commit-same kept" in said[0]
    above = "unconstrained was above 0.15 in 4 of 4 runs and 90.0%"
    assert any(line.startswith(above) for line in said)
    assert any("Not certified, but not above" in line and "reading=paper" in line for line in said)
    assert "certified and learn: explore-then-commit-same, 452 errors" in said[-1]


def test_a_certified_learner_that_fails_is_reported():
    said = findings(toys.comparison(toys.runs("two-phase", [0.0, 0.2, 0.1], 500.0)), "x")[0]
    allowed = "although it is certified; the certificate allows this in a share of 0.05"
    assert allowed in said


def test_a_negative_regret_has_a_minus_sign():
    said = findings(toys.comparison(toys.runs("two-phase", [0.0, 0.1, 0.1], -2000.0)), "x")
    assert "two-phase, \u22121,998 errors in 10,000 rounds" in said[-1]


@pytest.mark.parametrize(
    ("bandit", "commit", "words"),
    [
        (500.0, 450.0, "two-phase made 50 ± 0 errors more than explore-then-commit-same."),
        (1.0, 9.0, "errors fewer"),
        (5.0, 5.0, "a draw"),
    ],
)
def test_the_bandit_against_committing_once(bandit, commit, words):
    first = toys.runs("two-phase", [0.0] * 3, bandit)
    second = toys.runs("explore-then-commit-same", [0.0] * 3, commit)
    both = toys.comparison(first, second)
    assert words in same_exploration_note(both)[-1]


def test_a_comparison_without_both_says_how_to_get_them():
    note = same_exploration_note(toys.comparison(toys.runs("two-phase", [0.0] * 3, 5.0)))[-1]
    assert "add --learner two-phase --learner explore-then-commit-same" in note


def test_a_study_names_who_kept_the_limit_and_who_did_not():
    (said,) = study_findings(toys.study())
    kept = "certified, and within the limit in every round of every run: certified "
    assert f"{kept}(worst true gap 0.030)" in said
    assert "Went above it, with a worst true gap of: unconstrained 0.26." in said
    assert "saved 60% of that difference" in said


def test_a_study_without_savings_says_so():
    (said,) = study_findings(toys.study(regret_over_constant=1.2))
    assert "saved nothing of that difference yet" in said


def test_a_table_without_anything_to_gain_says_so():
    assert "nothing to learn here" in study_findings(toys.study(constant=0.15))[0]


def test_luck_is_called_luck():
    (said,) = study_findings(toys.study(gaps=[0.0, 0.01, 0.01]))
    assert "not certified, so nothing says it stays so: unconstrained." in said


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.004, "<1%"), (0.5, "50%"), (0.9967, ">99%"), (1.0, "100%")]
)
def test_a_few_rounds_above_the_limit_never_look_like_none(share, text):
    assert percent(share) == text
