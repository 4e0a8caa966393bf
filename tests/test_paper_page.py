"""The tutorial that puts the paper's algorithm together by hand: its code runs, and what it deploys
is what the lemmas say.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from evenhand.fairness import FalsePositiveRate, GapConstraints

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "paper.md"


def cells() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, flags=re.S)


@pytest.fixture(scope="module")
def names() -> dict:
    """The names after the cells that define the algorithm."""
    found: dict = {}
    for cell in cells()[:2]:
        exec(compile(cell, PAGE.name, "exec"), found)
    return found


def test_the_four_steps_are_about_forty_lines() -> None:
    steps = [step for step in range(1, 5) if re.search(rf"# .*\b{step}\.| {step} and", cells()[1])]
    assert steps == [1, 2, 3, 4]
    assert len(cells()[1].splitlines()) <= 45


def test_what_is_deployed_by_hand_keeps_the_lemmas(names: dict) -> None:
    """T = 6,000: the epochs double, Q sums to one, Algorithm 1 halts, its policies mix two rules
    and keep gamma + beta on the sample, and gamma + 2 beta on D (Lemma B.2; one seed).
    """
    beta, lengths, policies, descent = names["by_hand"](6_000, seed=3)
    world, gamma = names["world"], names["gamma"]
    T0 = int(lengths[0])
    assert lengths.sum() == 6_000
    assert lengths[1:5].tolist() == [64, 64, 128, 256]
    sample = world.draw(T0, np.random.default_rng(3))
    constraints = GapConstraints.on(FalsePositiveRate(), sample)
    for policy in descent.weights.policies:
        assert len(policy.hypotheses) <= 2
        acceptance = policy.acceptance(sample.features)
        assert np.abs(constraints.gaps(acceptance)).max() <= gamma + beta + 1e-9
    assert descent.report.halted
    assert descent.weights.total == pytest.approx(1, abs=1e-12)
    assert max(abs(world.gap(policy)) for policy in policies) <= gamma + 2 * beta


def test_by_hand_and_by_the_learner_the_exploration_is_the_same(names: dict) -> None:
    """T0 and beta of a run of the learner of the page with the same settings."""
    import evenhand as eh

    T = 6_000
    learner = eh.TwoPhaseLearner(
        *(names["H"], names["rate"], None, names["delta"], T),
        comparator_gap=names["gamma"],
        tradeoff_exponent=1 / 3,
        estimator="two-sided",
    )
    run = eh.simulate(learner, names["world"], T, 0, names["gamma"])
    beta, lengths, _, _ = names["by_hand"](T, seed=0)
    assert int(run.lengths[0]) == lengths[0]
    assert run.learner.slack.beta == pytest.approx(beta, rel=0.05)
    assert run.lengths[1:5].tolist() == lengths[1:5].tolist()


def test_the_page_is_linked_from_the_first_screens() -> None:
    root = PAGE.parents[2]
    for page, link in (
        ("README.md", "docs/tutorials/paper.md"),
        ("ARCHITECTURE.md", "docs/tutorials/paper.md"),
        ("docs/index.md", "tutorials/paper.md"),
        ("docs/start.md", "tutorials/paper.md"),
    ):
        text = (root / page).read_text(encoding="utf-8")
        assert link in text[:2500], page
        assert re.search("TwoPhaseLearner|two_phase", text[:2500]), page
