"""Sentences that say no more than was measured."""

import pytest
from tests.report.toys import comparison, runs, study

from evenhand.report.findings import findings, percent, same_exploration_note, study_findings


def test_every_learner_of_a_comparison_is_told_of():
    said = findings(comparison(), "false positive rate")
    assert "two-phase and explore-then-commit-same kept" in said[0]
    above = "unconstrained was above 0.15 in 4 of 4 runs and 90.0%"
    assert any(line.startswith(above) for line in said)
    assert any("Not certified, but not above" in line and "reading=paper" in line for line in said)
    assert "certified and learn: explore-then-commit-same, 452 errors" in said[-1]


def test_a_certified_learner_that_fails_is_told():
    said = findings(comparison(runs("two-phase", [0.0, 0.2, 0.1], 500.0)), "x")[0]
    allowed = "although it is certified; the certificate allows this in a share of 0.05"
    assert allowed in said


def test_a_negative_regret_has_a_minus_sign():
    said = findings(comparison(runs("two-phase", [0.0, 0.1, 0.1], -2000.0)), "x")
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
    first = runs("two-phase", [0.0] * 3, bandit)
    second = runs("explore-then-commit-same", [0.0] * 3, commit)
    both = comparison(first, second)
    assert words in same_exploration_note(both)[-1]


def test_a_comparison_without_both_says_how_to_get_them():
    note = same_exploration_note(comparison(runs("two-phase", [0.0] * 3, 5.0)))[-1]
    assert "add --learner two-phase --learner explore-then-commit-same" in note


def test_a_study_names_who_kept_the_limit_and_who_did_not():
    (said,) = study_findings(study())
    kept = "certified, and within the limit in every round of every run: certified "
    assert f"{kept}(worst true gap 0.030)" in said
    assert "Went above it, with a worst true gap of: unconstrained 0.26." in said
    assert "saved 60% of that difference" in said


def test_a_study_without_savings_says_so():
    (said,) = study_findings(study(regret_over_constant=1.2))
    assert "saved nothing of that difference yet" in said


def test_a_table_without_anything_to_gain_says_so():
    assert "nothing to learn here" in study_findings(study(regret_over_constant=None))[0]


def test_luck_is_called_luck():
    (said,) = study_findings(study(rounds_above=0.0, worst_gap=0.01))
    assert "not certified, so nothing says it stays so: unconstrained." in said


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.004, "<1%"), (0.5, "50%"), (0.9967, ">99%"), (1.0, "100%")]
)
def test_a_few_rounds_above_the_limit_never_look_like_none(share, text):
    assert percent(share) == text
