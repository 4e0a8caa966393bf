"""Rows of the certificate: what an epoch's certification costs beside one fair oracle call, and
beside one logistic fit.
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import FalsePositiveRate, FiniteClass, LabelledSample
from evenhand.bounds import BettingBound, Cohort, Forecast
from evenhand.environments import random_population
from evenhand.faircsc import bind_fair

FPR = FalsePositiveRate()
ROWS, COLUMNS, NOMINATED = 100_000, 12, 50


def certification(_tables: Tables, quick: bool) -> list[Record]:
    """An epoch of 204 hypotheses x 100 contexts against FairCSC (bind and solve); 1e5 rows x 50
    nominees against a logistic fit.
    """
    return [_against_the_oracle(quick), _against_a_fit(quick)]


def _epoch(bound: BettingBound, forecast: Forecast, cohort: Cohort) -> Any:
    state = bound.start()

    def certify() -> Any:
        plan = bound.plan(state, forecast)
        after = bound.update(state, cohort, plan)
        return bound.intervals(after)

    return certify


def _ratios(ours: Any, theirs: Any, repeats: int) -> tuple[float, ...]:
    """ours / theirs, measured in turn."""
    return tuple(clock(ours)[0] / clock(theirs)[0] for _ in range(repeats))


def _against_the_oracle(quick: bool) -> Record:
    world, generator = random_population(0), np.random.default_rng(0)
    acceptance = np.where(world.accepts[10], 0.95, 0.05)
    counts = world.draw_counts(20_000, acceptance, generator)
    accepts, codes = world.accepts, (world.group == 1).astype(int)
    bound = BettingBound((-1, 1), (FPR,), len(accepts), 0.05)
    forecast = Forecast(
        accepts,
        codes,
        weight=counts.rounds * world.probability,
        acceptance=acceptance,
        regression=0.4,
    )
    cohort = Cohort(
        accepts,
        codes,
        acceptance=acceptance,
        regression=1 - world.positive_rate,
        rejected=counts.rejected,
        positive=counts.accepted_positive,
        negative=counts.accepted_negative,
    )
    everybody = world.draw_counts(5000, np.ones(len(world)), generator)
    number_of = np.r_[everybody.accepted_positive, everybody.accepted_negative].astype(float)
    sample = LabelledSample(
        np.tile(world.features, (2, 1)), np.tile(world.group, 2), np.repeat([1, -1], 100), number_of
    )
    cost = (counts.accepted_negative - counts.accepted_positive) / acceptance

    hypotheses = FiniteClass.from_table(accepts)

    def solve() -> Any:
        oracle = bind_fair(hypotheses, world.features, None, (FPR,), sample, 0.05)
        return oracle.cheapest(cost)

    certify = _epoch(bound, forecast, cohort)
    certify(), solve()
    ratios = _ratios(certify, solve, 1 if quick else 25)
    return Record(
        "an epoch's certification, 204 hypotheses x 100 contexts",
        "<= 10 x one FairCSC solve",
        f"{number(median(ratios))} x (median)",
        median(ratios) <= 10,
        ratios,
        "plan, update and intervals of joint clamped betting against bind_fair and one solve.",
    )


def _against_a_fit(quick: bool) -> Record:
    rows = ROWS // 100 if quick else ROWS
    generator = np.random.default_rng(1)
    features = generator.normal(size=(rows, COLUMNS))
    weights = generator.normal(size=(NOMINATED, COLUMNS))
    group = (generator.random(rows) < 0.4).astype(int)
    label = np.where(features @ weights[0] + generator.logistic(size=rows) > 0, 1, -1)
    accepts = (weights @ features.T) > 0
    acceptance = (
        0.02 + np.array([0.5, 0.3, 0.18]) @ accepts[:3]
    )  # a mixture of three hypotheses and the audit coin
    accepted = generator.random(rows) < acceptance
    m = (
        np.round(64 / (1 + np.exp(features @ weights[0]))) / 64
    )  # as the learner's processes take it
    bound = BettingBound((0, 1), (FPR,), NOMINATED, 0.05)
    some = slice(0, 4000)
    forecast = Forecast(
        accepts[:, some], group[some], weight=1.0, acceptance=acceptance[some], regression=m[some]
    )
    cohort = Cohort(
        accepts,
        group,
        acceptance=acceptance,
        regression=m,
        rejected=~accepted,
        positive=accepted & (label == 1),
        negative=accepted & (label == -1),
    )
    certify = _epoch(bound, forecast, cohort)
    certify()
    ratios = _ratios(certify, lambda: LogisticRegression().fit(features, label), 1 if quick else 9)
    return Record(
        f"certification of {rows:,} rows x {NOMINATED} nominated hypotheses",
        "within the time of one logistic fit",
        f"{number(median(ratios))} x (median)",
        median(ratios) <= 1,
        ratios,
        f"scikit-learn's LogisticRegression on the same {rows:,} rows x {COLUMNS} columns; "
        "six bets, all rows in one epoch; p of a mixture of three hypotheses, m in 64 steps "
        "(rows that differ in p and m cost six times a fit).",
    )
