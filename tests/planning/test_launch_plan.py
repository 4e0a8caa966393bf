"""A plan is a frozen record that says no more than it knows."""

import json
import re
from dataclasses import FrozenInstanceError, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.media.agree import media_agree
from tests.planning.launches import EASY

import evenhand as eh
from evenhand.planning.launch_plan import (
    Milestone,
    Spread,
    answer_of,
    chance_of_saving,
    median_round,
)
from evenhand.result import Amount


def test_it_is_a_frozen_record_and_plain_json(easy):
    document = json.loads(json.dumps(easy.to_json(), allow_nan=False))
    assert document["answer"] == easy.answer
    assert [course["name"] for course in document["courses"]] == [
        "certified",
        "two-phase",
        "explore-then-commit",
    ]
    assert len(document["weight"]["mean"]) == len(document["rounds"])
    with pytest.raises(FrozenInstanceError):
        easy.limit = 0.5


def test_it_says_no_more_than_it_knows(easy, hopeless):
    for plan in (easy, hopeless):
        media_agree(plan.result())
        text = " ".join(plan.describe().split())
        assert "certified with probability at least 0.95 under its assumptions" in text
        assert "a plan is an expectation, not a certificate" in text
        assert not any(word in text for word in ("unbiased", "bias-free", "guarantees fairness"))


def test_what_the_audits_cost_is_set_against_the_constant_by_its_share_and_its_sign(easy):
    def said(share, beyond):
        spread = Spread(beyond, beyond - 10, beyond + 20)
        plan = replace(easy, constant_share=share, bill_beyond_constant=spread)
        assert plan.to_json()["constant_share"] == share
        assert plan.to_json()["constant"] == plan.constant
        return plan.result().facts

    whole = said(1.0, 0.0)
    assert "accepting all applicants would pay it" in whole["beyond the better constant"]
    facts = said(0.0, 90.0)
    assert facts["their bill beyond rejecting all applicants"] == Amount(90.0, "total")
    facts = said(0.3, -1005.0)
    assert facts["their bill beyond accepting 30% by lot"] == Amount(-1005.0, "total")


def test_under_a_cap_a_bill_below_the_lottery_is_not_hidden():
    plan = eh.plan(**{**EASY, "runs": 1}, accept_at_most=0.3, prices=eh.Prices(1.0, 4.0))
    assert plan.constant_share == 0.3
    beyond = plan.bill_beyond_constant.mean
    assert beyond < 0
    facts = plan.result().facts
    assert facts["their bill beyond accepting 30% by lot"] == Amount(beyond, "total")
    assert f"\u2212{-beyond:,.0f}" in plan.describe()


def test_per_day_turns_people_into_days():
    plan = eh.plan(**{**EASY, "horizon": None, "runs": 1}, per_day=100, days=30)
    assert plan.horizon == 3_000
    assert dict(plan.result().table("launch").rows)["days"] == "30 at 100 people a day"


def test_spread_and_milestones():
    assert Spread.of(np.arange(11.0)).describe() == "5 (1 to 9)"
    stone = Milestone.of(0.5, np.array([20.0, np.inf, 30.0]), 40)
    assert (stone.round, stone.reached, stone.runs) == (29, 2, 3)
    assert Milestone.of(0.5, np.zeros(3), 40).round == 0
    late = Milestone.of(0.9, np.full(3, np.inf), 40)
    assert late.describe() == "not within the horizon (0 of 3 simulation runs)"


@pytest.mark.parametrize("runs", [[700.0], [900.0, 300.0, 5_000.0], [9.0, 40.0, 10.0, 20.0, 70.0]])
def test_the_median_round_is_that_of_all_resampled_runs(runs):
    medians = [np.median(drawn) for drawn in product(runs, repeat=len(runs))]
    assert median_round(np.array(runs), 9_000) == pytest.approx(np.expm1(np.log1p(medians).mean()))


def test_more_weight_is_never_foretold_earlier():
    """Whatever runs do not reach it."""
    half, full = np.array([100.0, 160.0, 300.0]), np.array([150.0, 160.0, np.inf])
    assert median_round(half, 400) <= median_round(full, 400)


def test_the_median_round_varies_less_than_the_middle_run():
    """Runs end at epochs, a factor of 1.25 apart. Negative control: the middle one of 8 runs."""
    rng = np.random.default_rng(0)
    lives = 1_000 * 1.25 ** rng.normal(0, 2, (2_000, 8)).round()
    middle = np.quantile(lives, 0.5, axis=1, method="inverted_cdf")
    smooth = [median_round(runs, 1e6) for runs in lives]
    assert np.log(smooth).std() < 0.95 * np.log(middle).std()


@pytest.mark.parametrize(
    ("savings", "answer"),
    [
        ([100, 101, 99, 100], "worth it"),
        ([-100, -101, -99, -100], "not worth it"),
        ([0, 0, 0], "not worth it"),
        ([1, 2, 3, 300, 5, 6, 7, 8], "probably worth it"),  # all runs save; the spread is large
        ([-385, -20, -700, -90, -500, -40, -900, -445], "probably not worth it"),  # 0 of 8 save
        ([-1, -3, -2000], "probably not worth it"),
        ([9000, 9500, 8700, 9900, 8800, 9100, 7600, -800], "probably worth it"),  # 7 of 8
        ([-5, 6, 3, -4, 2, -1], "close call"),
        ([50], "close call"),
    ],
)
def test_verdicts_follow_from_the_interval_of_the_saving(savings, answer):
    values = np.array(savings, dtype=float)
    assert answer_of(values) == answer
    if values.any() and len(values) > 1:  # and the other way round
        mirrored = {
            "worth it": "not worth it",
            "probably worth it": "probably not worth it",
            "close call": "close call",
        }
        mirrored |= {no: yes for yes, no in mirrored.items()}
        assert answer_of(-values) == mirrored[answer]


def test_no_run_that_saves_is_never_a_close_call():
    """Whatever the spread: three runs or more that agree say more than a coin."""
    rng = np.random.default_rng(0)
    for runs in (3, 5, 8, 20):
        savings = -np.exp(rng.normal(0, 3, runs))
        assert answer_of(savings) in ("not worth it", "probably not worth it")
        assert chance_of_saving(savings) <= 1 / (runs + 1)


def test_the_page_about_planning_runs():
    """Its figures are made when it is built, so nothing on it can differ from what is printed."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "planning.md"
    text = page.read_text(encoding="utf-8")
    names: dict = {}
    cell = re.search(r"```\{code-cell\} ipython3\n(.*?)```", text, flags=re.S)[1]
    exec(cell.replace("print(", "str("), names)
    assert names["plan"].answer == "worth it"
    assert "Worth it:" not in text
