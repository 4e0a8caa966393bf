"""The page of a study: self-contained, says who kept the limit and who did not, and never shows an in-sample gap."""

import pytest

pytest.importorskip("matplotlib")

from evenhand.report.study import StudyReport, percent, study_findings, study_page
from evenhand.simulate.study import Source, Study, StudyPlan


def row(learner, seed, gap, above, promised, ratio):
    return {
        "table": "loans", "limit": 0.05, "learner": learner, "seed": seed, "error": 0.2, "last_error": 0.19, "optimum": 0.15,
        "constant": 0.25, "regret": 50.0, "regret_over_constant": ratio, "worst_gap": gap, "rounds_above": above,
        "audit_share": 0.1, "accepted_share": 0.6, "promised": promised,
        "curve_rounds": [100, 500, 1000], "curve_loss": [0.25, 0.2, 0.19], "curve_gap": [0.0, gap / 2, gap],
    }  # fmt: skip


@pytest.fixture
def report():
    plan = StudyPlan((Source("loans"),), ("certified", "unconstrained"), seeds=2, rounds=1000)
    rows = [row("certified", s, 0.03, 0.0, True, 0.4) for s in (0, 1)]
    rows += [row("unconstrained", s, 0.26, 0.97, False, -0.3) for s in (0, 1)]
    about = {"loans": ["1,000 people <all of them>."]}
    return StudyReport(
        Study(plan, tuple(rows), (1.0,) * 4), about, "false positive rate", "evenhand study loans", "0", "r.parquet"
    )


def test_the_findings_name_who_kept_the_limit_and_who_did_not(report):
    (told,) = study_findings(report)
    assert "certified, and within the limit in every round of every run: certified (worst true gap 0.030)" in told
    assert "Went above it, with a worst true gap of: unconstrained 0.26." in told
    assert "saved 60% of that difference" in told


def test_a_table_without_anything_to_gain_says_so(report):
    rows = tuple({**row, "regret_over_constant": None} for row in report.study.rows)
    changed = StudyReport(Study(report.study.plan, rows, report.study.seconds), {}, "r", "c", "0", "r.parquet")
    assert "nothing to learn here" in study_findings(changed)[0]
    assert "nan" not in study_page(changed)


def test_the_page_needs_nothing_else(report):
    page = study_page(report)
    assert page.count("<svg") == 2
    assert "&lt;all of them&gt;" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://www.w3.org", "")
    assert '<span class="broken">0.260</span>' in page
    assert '<span class="kept">0.030</span>' in page
    assert "in sample" not in page
    assert "evenhand study loans" in page


def test_at_a_glance_every_learner_has_its_verdict(report):
    page = study_page(report)
    assert '<span class="broken">0.260, 97% of rounds</span>' in page
    assert '<span class="kept">0.030</span>, certified' in page


def test_cheaper_than_allowed_is_explained_beside_the_table(report):
    assert "not one that could have been had within the limit" in study_page(report)
    kept = tuple({**row, "rounds_above": 0.0} for row in report.study.rows)
    changed = StudyReport(Study(report.study.plan, kept, report.study.seconds), {}, "r", "c", "0", "r.parquet")
    assert "not one that could have been had within the limit" not in study_page(changed)


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.004, "<1%"), (0.5, "50%"), (0.9967, ">99%"), (1.0, "100%")]
)
def test_a_few_rounds_above_the_limit_never_look_like_none(share, text):
    assert percent(share) == text


def test_words_that_are_never_used(report):
    page = study_page(report).lower()
    assert not [word for word in ("unbiased", "bias-free", "guarantees fairness") if word in page]


def test_luck_is_called_luck(report):
    rows = tuple({**row, "rounds_above": 0.0, "worst_gap": 0.01} for row in report.study.rows)
    lucky = StudyReport(Study(report.study.plan, rows, report.study.seconds), {}, "r", "c", "0", "r.parquet")
    assert "not certified, so nothing says it stays so: unconstrained." in study_findings(lucky)[0]
