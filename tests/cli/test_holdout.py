"""`evenhand test` and `solve --holdout`: gaps and cost on people who had no part in the choice."""

import json

import numpy as np
import pytest
from tests.cli.conftest import LENDING

from evenhand.cli.demo import make_lending_table
from evenhand.evaluation import measure_policy
from evenhand.hypotheses import ACCEPT_ALL, Threshold
from evenhand.policies import Mixture
from evenhand.words import LabelledSample


@pytest.fixture
def policy(run, lending, tmp_path):
    assert run("solve", lending, *LENDING, "--out", "policy.json").exit_code == 0
    return tmp_path / "policy.json"


def test_new_people(run, policy, write):
    new = write(make_lending_table(7, 3000), "new.csv")
    done = run("test", policy, new)
    assert done.exit_code == 0, done.output
    told = json.loads(run("test", policy, new, "--json").stdout)
    assert told["people"] == 3000
    assert told["verdicts"] == {"FPR": "not shown"}
    fpr = next(rate for rate in told["rates"] if rate["symbol"] == "FPR")
    for one in fpr["groups"]:
        assert one["lower"] < one["least"] < one["upper"]
        assert f"{one['least']:.3f}" in done.stdout
    assert f"{told['cost']:.4f}" in done.stdout
    assert json.loads(run("test", policy, new, "--limit", "0.5", "--json").stdout)["verdicts"] == {
        "FPR": "within"
    }


def test_a_missing_outcome_is_refused(run, policy, write):
    text = make_lending_table(7, 100).replace(",yes\n", ",\n", 1)
    new = write(text, "new.csv")
    refused = run("test", policy, new)
    assert refused.exit_code == 2
    assert "--drop-unlabelled" in refused.stderr
    assert run("test", policy, new, "--drop-unlabelled").exit_code == 0


def test_a_holdout_of_solve(run, lending):
    done = run("solve", lending, *LENDING, "--holdout", "0.3", "--seed", "4")
    assert done.exit_code == 0, done.output
    assert "On the 360 people who were held out" in done.stdout
    told = json.loads(run("solve", lending, *LENDING, "--holdout", "0.3", "--json").stdout)
    assert told["table"]["people"] == 840
    assert told["holdout"]["people"] == 360
    for wrong in ("0", "1", "1.5"):
        assert "--holdout is" in run("solve", lending, *LENDING, "--holdout", wrong).stderr


def test_intervals_cover_and_a_narrower_one_does_not():
    """400 samples of 150 people; all intervals must hold at once in 95% of them. Correct code fails
    with probability below 1e-3 (binomial, 400 trials, p = 0.05, more than 40 misses); intervals of
    half the width miss in most samples, and would be caught always.
    """
    rng = np.random.default_rng(11)
    policy = Mixture((Threshold(0, 0.5, 1), ACCEPT_ALL), (0.7, 0.3))
    truth = {"a": 0.3 + 0.7 * 0.5, "b": 0.3 + 0.7 * 0.3}  # selection rates by construction
    misses = narrow = 0
    for _ in range(400):
        group = rng.choice(["a", "b"], 150)
        high = rng.random(150) < np.where(group == "a", 0.5, 0.3)
        people = LabelledSample(high[:, None] * 1.0, group, rng.choice([-1, 1], 150))
        (rate,) = measure_policy(policy, people, rates="selection", prices=None).rates
        missed = [not one.lower <= truth[one.group] <= one.upper for one in rate.groups]
        gap = abs(truth["a"] - truth["b"])
        missed.append(not rate.gap_interval[0] <= gap <= rate.gap_interval[1])
        misses += any(missed)
        narrow += any(
            abs(truth[one.group] - one.least) > (one.upper - one.lower) / 8 for one in rate.groups
        )
    assert misses <= 40
    assert narrow > 40
