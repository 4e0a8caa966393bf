"""Deciding and learning online beside Vowpal Wabbit's Python interface: one person, blocks of
people, and a whole run with its oracle.
"""

import gc
from time import process_time
from typing import Any

import numpy as np

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import (
    CertifiedLearner,
    Estimator,
    FalsePositiveRate,
    Linear,
    Stumps,
    TwoPhaseLearner,
)
from evenhand.algorithms.baselines import Fixed
from evenhand.hypotheses import Fitted
from evenhand.hypotheses.linear import LinearRule
from evenhand.learner import EpochLearner
from evenhand.policies import Mixture
from evenhand.schema import Schema
from evenhand.words import FloatArray, Prices

COLUMNS, RULES = 12, 16


def mixed(seed: int) -> EpochLearner:
    """A learner with one fixed mixture of 16 linear rules: what is timed is deciding, with
    propensities, coins and the table of rounds.
    """
    r = np.random.default_rng(0)
    rules = tuple(
        LinearRule(tuple(r.normal(size=COLUMNS).tolist()), float(r.normal())) for _ in range(RULES)
    )
    policy = Mixture(rules, (1.0 / RULES,) * RULES)
    algorithm = Fixed((FalsePositiveRate(),), Prices(), policy)
    return EpochLearner(algorithm, seed=seed, settings={"seed": seed})


def people(rows: int, seed: int) -> tuple[FloatArray, Any, Any]:
    """Twelve continuous features, two groups, labels that a stump half explains."""
    r = np.random.default_rng(seed)
    features = r.normal(size=(rows, COLUMNS))
    group = np.where(r.random(rows) < 0.4, 1, -1)
    label = np.where(
        features[:, 0] + 0.3 * features[:, 1] - 0.3 * group + r.normal(size=rows) > 0, 1, -1
    )
    return features, group, label


def vw_seconds(features: FloatArray, label: Any, arguments: str) -> float:
    """CPU seconds per person of text, predict, draw and learn."""
    from vowpalwabbit import Workspace

    workspace, coins = (
        Workspace(f"{arguments} --quiet"),
        np.random.default_rng(1).random(len(features)),
    )
    start = process_time()
    for row, coin, y in zip(features.tolist(), coins.tolist(), label.tolist(), strict=True):
        told = " ".join(f"{j}:{value:g}" for j, value in enumerate(row))
        chance = workspace.predict(f"| {told}")
        accept = coin < chance[0]
        cost = 0.5 if not accept else float(y == -1)
        workspace.learn(f"{1 if accept else 2}:{cost}:{chance[0 if accept else 1]} | {told}")
    return (process_time() - start) / len(features)


def ours_seconds(features: FloatArray, block: int, calls: int) -> float:
    """CPU seconds per person of decide, in blocks."""
    learner = mixed(seed=0)
    learner.decide(features[:block])
    parts = [features[i * block : (i + 1) * block] for i in range(calls)]
    return clock(lambda: [learner.decide(part) for part in parts])[0] / (block * calls)


def certified_learner(rounds: int) -> CertifiedLearner:
    """A certified learner after so many rounds in blocks, at the beginning of an epoch."""
    learner, at = (
        CertifiedLearner(Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=10 * rounds, seed=0),
        0,
    )
    features, group, label = people(2 * rounds, 1)
    while at < rounds:
        learner.open_epoch()
        part = slice(at, at + learner.rounds_left)
        decided = learner.decide(features[part], group[part])
        taken = np.flatnonzero(decided.accept)
        learner.observe(decided.first_round + taken, label[part][taken])
        at += len(decided)
    learner.open_epoch()
    return learner


def certified_seconds(
    learner: CertifiedLearner, features: FloatArray, group: Any, label: Any, calls: int
) -> float:
    """CPU seconds per person of decide, one by one, with the group and the audit coin. After every
    50 people outcomes are reported, which is not timed: a learner that hears of none takes that for
    drift, suspends its certificate and deploys a constant.
    """
    parts = [(features[i : i + 1], group[i : i + 1]) for i in range(calls)]
    outcomes = label[:calls].tolist()
    seconds = 0.0
    gc.collect()
    for first in range(0, calls, 50):
        start = process_time()
        decided = [learner.decide(*part) for part in parts[first : first + 50]]
        seconds += process_time() - start
        for one, outcome in zip(decided, outcomes[first : first + 50], strict=True):
            if one[0].accept:
                learner.observe(one.first_round, outcome)
    return seconds / calls


def deciding(_tables: Tables, quick: bool) -> list[Record]:
    """One person, blocks, and a whole run with stumps, each against VW --cover 16."""
    repeats = 1 if quick else 9
    block = 1_000 if quick else 100_000
    few = 100 if quick else 3_000
    features, group, label = people(2 * block, 0)
    certified = certified_learner(500 if quick else 60_000)
    turns = [
        (
            vw_seconds(features[:few], label[:few], "--cb_explore 2 --cover 16"),
            ours_seconds(features, 1, 100 if quick else 4_000),
            certified_seconds(certified, features, group, label, 50 if quick else 2_000),
            ours_seconds(features, block, 2),
        )
        for _ in range(repeats)
    ]
    rival, single, alone, blocks = (list(column) for column in zip(*turns, strict=True))
    rules = len(certified.policy.weights)
    return [
        _record(
            "one decide call (16 rules, 12 features) against VW --cover 16 predict + learn",
            3,
            rival,
            single,
        ),
        _record(
            f"one decide call of a certified learner ({rules} rules, 12 features) against the same",
            3,
            rival,
            alone,
        ),
        _record(f"blocks of {block:.0e} decisions against the same", 200, rival, blocks),
        _own_models(quick),
        _whole_run(1_000 if quick else 100_000),
    ]


def _record(row: str, least: float, rival: list[float], ours: list[float]) -> Record:
    ratios = tuple(a / b for a, b in zip(rival, ours, strict=True))
    note = f"{1e6 * median(ours):.3g} us against {1e6 * median(rival):.3g} us per person"
    return Record(
        row,
        f">= {number(least)} x",
        f"{number(median(ratios))} x (median)",
        median(ratios) >= least,
        ratios,
        note,
    )


def _own_models(quick: bool) -> Record:
    """One person, and a policy of pipelines with one-hot columns, words and scaled numbers:
    deciding against the models' own predictions, which are asked one after the other.
    """
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows = 1_200 if quick else 6_000
    features, group, label = people(rows, 1)
    r = np.random.default_rng(2)
    frame = pd.DataFrame(features[:, :5], columns=[f"x{j}" for j in range(5)])
    frame["carrier"] = r.choice(list("ABCDEFGH"), rows)
    frame["to"] = r.choice([f"D{j}" for j in range(60)], rows)
    frame["words"] = [f"{a} {b}" for a, b in zip(frame["carrier"], frame["to"], strict=True)]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["carrier", "to"]),
        (TfidfVectorizer(), "words"),
        (StandardScaler(), [f"x{j}" for j in range(5)]),
    )
    schema = Schema.of(frame)
    rules = Estimator(make_pipeline(columns, LogisticRegression()), schema)
    learner = CertifiedLearner(rules, FalsePositiveRate(), 0.4, 0.05, horizon=10 * rows, seed=0)
    for first in range(0, rows - 100, 100):
        part = slice(first, first + 100)
        decided = learner.decide(frame[part], group[part])
        taken = np.flatnonzero(decided.accept)
        learner.observe(decided.round[taken], label[part][taken])
    learner.open_epoch()
    models = [rule.model for rule in learner.policy.hypotheses if isinstance(rule, Fitted)]
    one = frame.iloc[:1]
    code = schema.encode(one)
    ratios = []
    for _ in range(3 if quick else 41):
        alone = clock(lambda: [model.predict(one) for model in models])[0]
        start = process_time()
        decided = learner.decide(code, group[:1])
        ours = process_time() - start
        if decided[0].accept:
            learner.observe(decided.round, label[:1])
        ratios.append(ours / max(alone, 1e-9))
    return Record(
        f"one decide call with {len(models)} pipelines (one-hot, words, scaler) against the sum of "
        "their own predict",
        "<= 1.3",
        f"{number(median(ratios))} (median)",
        median(ratios) <= 1.3,
        tuple(ratios),
        f"{len(learner.state.process.members) if learner.state.process else 0} rules are certified",
    )


def _whole_run(rounds: int) -> Record:
    features, group, label = people(rounds, 1)
    learner = TwoPhaseLearner(
        Stumps(),
        FalsePositiveRate(),
        0.2,
        0.05,
        rounds,
        comparator_gap=0.02,
        exploration_rounds=rounds // 10,
        seed=0,
    )

    def run() -> None:
        at = 0
        while at < rounds:
            learner.open_epoch()
            part = slice(at, at + learner.rounds_left)
            decided = learner.decide(features[part], group[part])
            taken = np.flatnonzero(decided.accept)
            learner.observe(decided.first_round + taken, label[part][taken])
            at += len(decided)

    Stumps().bind(features[:100], None).best(np.ones(100))  # load and compile
    ours = clock(run)[0]
    rival = (
        vw_seconds(features[: rounds // 5], label[: rounds // 5], "--cb_explore 2 --cover 16")
        * rounds
    )
    ratio = ours / rival
    note = f"{ours:.3g} s against {rival:.3g} s (VW from a fifth of the people)"
    return Record(
        f"whole run with its oracle, {rounds:.0e} rounds, 12 features, stumps, "
        "against VW --cover 16",
        "<= 1",
        f"{number(ratio)}",
        ratio <= 1,
        (ratio,),
        note,
    )
