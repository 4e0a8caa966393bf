import re

import pytest
from rich.console import Console

from evenhand.cli.simulate import RuleBook
from evenhand.hypotheses import ACCEPT_ALL, LinearRule, Threshold
from evenhand.hypotheses.thresholds import PerGroup
from evenhand.policies import Mixture


def test_the_table_of_epochs(run):
    result = run("simulate", "--limit", 0.3, "--rounds", 6000, "--seed", 1)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "two-phase on lending: 6,000 rounds, seed 1"
    rows = [line for line in lines if re.match(r"[\d,]+ to [\d,]+ ", line)]
    assert "explore" in rows[0]
    assert "accept" in rows[0]
    assert all("bandit" in row for row in rows[1:])
    ends = [row.split()[2] for row in rows]
    starts = [row.split()[0] for row in rows]
    assert ends[-1] == "6,000"
    assert [int(s.replace(",", "")) for s in starts[1:]] == [
        int(e.replace(",", "")) + 1 for e in ends[:-1]
    ]
    assert "rule 1: accept" in result.stdout
    assert "accept if accept" not in result.stdout
    assert (
        "never above the limit of 0.3 (certified with probability 0.95 under the assumptions"
        in " ".join(result.stdout.split())
    )


def test_the_same_seed_gives_the_same_run(run):
    def shown(seed):
        return re.sub(
            r"[\d.]+ s\.",
            "",
            run("simulate", "--rounds", 2000, "--learner", "unconstrained", "--seed", seed).stdout,
        )

    assert shown(3) == shown(3)
    assert shown(3) != shown(4)


def test_a_learner_without_a_certificate_is_reported(run):
    out = " ".join(
        run(
            "simulate", "--rounds", 4000, "--learner", "fair-on-gathered", "--limit", 0.05
        ).stdout.split()
    )
    assert "above in" in out
    assert "this learner is not certified for it" in out


def test_an_exploration_that_does_not_end_says_what_is_missing(run):
    out = " ".join(run("simulate", "--rounds", 500).stdout.split())
    assert "exploring: group" in out
    assert "more people" in out


def test_person_by_person(run):
    result = run("simulate", "--environment", "scores", "--learner", "accept-all", "--rounds", 300)
    assert result.exit_code == 0
    assert "300 accepted" in result.stdout
    assert (
        run("simulate", "--engine", "events", "--learner", "uniform", "--rounds", 300).exit_code
        == 0
    )


@pytest.mark.parametrize("name", ["one.svg", "one.png"])
def test_the_figure(run, tmp_path, name):
    result = run("simulate", "--learner", "uniform", "--rounds", 200, "--figure", name)
    assert result.exit_code == 0
    assert f"Figure: {name}" in result.stdout
    assert (tmp_path / name).stat().st_size > 1000


def test_refusals(run):
    counts = run("simulate", "--environment", "scores", "--engine", "counts", "--rounds", 10)
    assert counts.exit_code == 2
    assert 'engine="events"' in counts.stderr
    unknown = run("simulate", "--learner", "two-fase")
    assert unknown.exit_code == 2
    assert "two-phase, as-printed, certified, explore-then-commit" in unknown.stderr
    assert run("simulate", "--figure", "one.txt", "--rounds", 10).exit_code == 2


def test_long_rules_are_numbered_in_order_of_appearance():
    rules = RuleBook(["income", "debt", "years_with_the_employer"])
    long = LinearRule((1.5, -2.25, 3.125), 4.0)
    short = Threshold(0, 30.0, 3)
    mixed = Mixture((short, long, ACCEPT_ALL), (0.2, 0.7, 0.1))
    assert (
        rules.mixture(mixed)
        == f"0.70 rule 1 + 0.20 {short.describe(rules.names)} + 0.10 accept all applicants"
    )
    assert rules.mixture(mixed, 2) == f"0.70 rule 1 + 0.20 {short.describe(rules.names)} + 1 more"
    assert rules.mixture(Mixture((long,), (1.0,))) == "rule 1"
    console = Console(width=200)
    with console.capture() as capture:
        rules.show(console)
    assert capture.get().strip() == f"rule 1: {long.describe(rules.names)}"


def test_long_rules_are_shown_in_their_own_words():
    """A rule that does not begin with "accept if" is not made to."""
    names = ["accept rate " + "x" * 60]
    rules = (
        Threshold(0, 0.5, 1),
        PerGroup((("a", Threshold(0, 0.1, 1)), ("b", Threshold(0, 0.2, 1)))),
    )
    book = RuleBook(names)
    for rule in rules:
        book.short(rule)
    out = Console(width=400, record=True)
    book.show(out)
    said = [" ".join(line.split()) for line in out.export_text().splitlines()]
    for line, rule, number in zip(said, rules, (1, 2), strict=True):
        words = rule.describe(names)
        assert line.startswith(f"rule {number}: {words[:60]}")
