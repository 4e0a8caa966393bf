"""Every function that takes outcomes, decisions, groups or weights reads them alike.

The tables below are crossed: each way of writing a column with each function that takes it. An
accepted way gives the numbers of -1 and +1, which are computed with pandas and by fairlearn, too; a
refused one is an error that names the argument, in every function.
"""

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand import people
from evenhand.environments import Replay
from evenhand.errors import BadLabel, InvalidInput
from evenhand.estimation import RoundLog
from evenhand.evaluation import DecisionLog, impact, measure, measure_policy
from evenhand.learners import Uniform
from evenhand.people import as_group, as_known_groups, distinct_groups, read_outcomes
from evenhand.testing import assert_within
from evenhand.words import LabelledSample

ROWS = 240
RNG = np.random.default_rng(35)
SCORE = RNG.random((ROWS, 1))
GROUP = np.where(RNG.random(ROWS) < 0.5, "a", "b")
GOOD = RNG.random(ROWS) < np.where(GROUP == "a", 0.75, 0.4)
TAKEN = RNG.random(ROWS) < np.where(GROUP == "a", 0.7, 0.35)
RULE = eh.ScoreThresholds(0)


def frames(name):
    """polars or pyarrow, which `make check` does not install."""
    return pytest.importorskip(name, reason="make check does not install it")


# what two values may look like: of a column of truth values


UNDERSTOOD = {
    "truth values": lambda yes: yes,
    "-1 and +1": lambda yes: np.where(yes, 1, -1),
    "0 and 1": lambda yes: yes.astype(int),
    "0. and 1.": lambda yes: yes.astype(float),
    "-0. and 1.": lambda yes: np.where(yes, 1.0, -0.0),
    "-1. and +1. of 32 bits": lambda yes: np.where(yes, 1, -1).astype(np.float32),
    "8 bits without a sign": lambda yes: yes.astype(np.uint8),
    "a list of truth values": lambda yes: yes.tolist(),
    "a list of 0 and 1": lambda yes: yes.astype(int).tolist(),
    "a tuple of -1 and +1": lambda yes: tuple(np.where(yes, 1, -1).tolist()),
    "a list of numpy's numbers": lambda yes: list(yes.astype(int)),
    "a list of numpy's and Python's truth values": lambda yes: [
        one if row % 2 else bool(one) for row, one in enumerate(yes)
    ],
    "a list of arrays without dimension": lambda yes: [np.array(int(one)) for one in yes],
    "objects: truth values": lambda yes: yes.astype(object),
    "objects: 0 and 1": lambda yes: yes.astype(int).astype(object),
    "objects: True beside 0": lambda yes: np.array([bool(one) or 0 for one in yes], dtype=object),
    "objects: decimals": lambda yes: np.array([Decimal(int(one)) for one in yes], dtype=object),
    "objects: fractions": lambda yes: np.array([Fraction(int(one)) for one in yes], dtype=object),
    "a masked array without gaps": lambda yes: np.ma.array(yes.astype(int), mask=yes & False),
    "pandas: truth values": lambda yes: pd.Series(yes),
    "pandas: 0 and 1": lambda yes: pd.Series(yes.astype(int)),
    "pandas: objects": lambda yes: pd.Series(yes.astype(int), dtype=object),
    "pandas: Int64": lambda yes: pd.Series(yes.astype(int), dtype="Int64"),
    "pandas: boolean": lambda yes: pd.Series(yes, dtype="boolean"),
    "pandas: Float64": lambda yes: pd.Series(yes.astype(float), dtype="Float64"),
    "pandas: array of Int64": lambda yes: pd.array(yes.astype(int), dtype="Int64"),
    "pandas: index": lambda yes: pd.Index(yes.astype(int)),
    "pandas: category of numbers": lambda yes: pd.Series(yes.astype(int), dtype="category"),
    "pandas: category of truth values": lambda yes: pd.Categorical(yes),
    "polars: truth values": lambda yes: frames("polars").Series(yes.tolist()),
    "polars: 0 and 1": lambda yes: frames("polars").Series(yes.astype(int)),
    "pyarrow: truth values": lambda yes: frames("pyarrow").array(yes.tolist()),
    "pyarrow: 0 and 1 in chunks": lambda yes: frames("pyarrow").chunked_array(
        [yes.astype(int)[:100], yes.astype(int)[100:]]
    ),
}

UNCLEAR = {
    "1 and 2": lambda yes: yes + 1,
    "0.5 and 1": lambda yes: np.where(yes, 1, 0.5),
    "0 and 2": lambda yes: 2 * yes.astype(int),
    "infinity and -1": lambda yes: np.where(yes, np.inf, -1),
    "-1, 0 and 1": lambda yes: np.where(np.arange(len(yes)) < 3, 0, np.where(yes, 1, -1)),
    "scores": lambda yes: np.linspace(-2, 2, len(yes)),
    "words": lambda yes: np.where(yes, "yes", "no"),
    "a list of words": lambda yes: np.where(yes, "yes", "no").tolist(),
    "words of numpy": lambda yes: list(np.where(yes, "yes", "no")),
    "bytes": lambda yes: np.where(yes, b"1", b"0"),
    "numbers in texts": lambda yes: yes.astype(int).astype(str),
    "True beside 2": lambda yes: np.array([bool(one) or 2 for one in yes], dtype=object),
    "True beside -1 and 0": lambda yes: [True, -1, *[0] * (len(yes) - 2)],
    "decimals beyond floats": lambda yes: [
        Decimal("1.000000000000000000000000000001") if one else Decimal(0) for one in yes
    ],
    "numbers beyond floats": lambda yes: [10**400 if one else 0 for one in yes],
    "complex numbers": lambda yes: yes.astype(complex),
    "dates": lambda yes: np.where(yes, np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
    "pandas: words": lambda yes: pd.Series(np.where(yes, "yes", "no"), dtype="category"),
    "pandas: string": lambda yes: pd.Series(np.where(yes, "1", "0"), dtype="string"),
    "polars: words": lambda yes: frames("polars").Series(np.where(yes, "yes", "no").tolist()),
}

NO_COLUMN = {
    "of another length": lambda yes: yes[:-1],
    "a column of a matrix": lambda yes: yes.astype(int)[:, np.newaxis],
    "a frame of one column": lambda yes: pd.DataFrame({"yes": yes}),
    "lists of one entry": lambda yes: [[one] for one in yes.tolist()],
    "a name": lambda yes: "x" * len(yes),
    "a set": lambda yes: {1, 0},
}

WITH_GAPS = {
    "NaN beside 0 and 1": lambda yes, gap: np.where(gap, np.nan, yes),
    "NaN beside -1 and 1": lambda yes, gap: np.where(gap, np.nan, np.where(yes, 1, -1)),
    "NaN beside truth values": lambda yes, gap: np.where(gap, np.nan, yes.astype(object)),
    "None": lambda yes, gap: np.where(gap, None, yes.astype(object)),
    "a list with None": lambda yes, gap: [
        None if lost else int(one) for one, lost in zip(yes, gap, strict=True)
    ],
    "a decimal that is none": lambda yes, gap: np.where(
        gap, Decimal("NaN"), yes.astype(int).astype(object)
    ),
    "a masked array": lambda yes, gap: np.ma.array(yes.astype(int), mask=gap),
    "a masked array of truth values": lambda yes, gap: np.ma.array(yes, mask=gap),
    "pandas: Int64": lambda yes, gap: pd.Series(yes.astype(int), dtype="Int64").mask(gap),
    "pandas: boolean": lambda yes, gap: pd.Series(yes, dtype="boolean").mask(gap),
    "pandas: array of boolean": lambda yes, gap: pd.Series(yes, dtype="boolean").mask(gap).array,
    "pandas: objects": lambda yes, gap: pd.Series(yes.astype(object)).mask(gap, pd.NA),
    "pandas: category": lambda yes, gap: pd.Series(yes, dtype="category").mask(gap),
    "polars": lambda yes, gap: frames("polars").Series(
        [None if lost else bool(one) for one, lost in zip(yes, gap, strict=True)]
    ),
    "pyarrow": lambda yes, gap: frames("pyarrow").array(yes.astype(int), mask=gap),
}


# who reads it: a function of the column, with numbers that hang on each entry


def rates_of(measured):
    return [
        (one.group, one.events, one.people, one.unknown, one.lower, one.upper)
        for rate in measured.rates
        for one in rate.groups
    ]


def log_of(label, accept=TAKEN, group=GROUP):
    return DecisionLog.of(SCORE, accept, np.full(ROWS, 0.5), label, group=group)


def logged(log):
    return log.accept.tolist(), log.label.tolist(), log.group.tolist()


def rounds_of(accept, label, group=GROUP):
    log = RoundLog.from_rounds(SCORE, accept, label, 0.5, group=group)
    return log.rejected.tolist(), log.positive.tolist(), log.negative.tolist()


def certified(label):
    found = eh.certify(RULE, LabelledSample(SCORE, GROUP, label), 0.4, delta=0.5)
    return found.cost, found.to_json()["certificate"]["gaps"]


def fitted(label):
    model = eh.FairClassifier(RULE, "selection", 0.5, random_state=0)
    model.fit(SCORE, label, sensitive_features=GROUP)
    return model.cost_, model.score(SCORE, label), model.predict(SCORE) == model.pos_label_


def replayed(label):
    drawn = Replay(LabelledSample(SCORE, GROUP, label)).draw(50, np.random.default_rng(0))
    return drawn.label.tolist()


OUTCOME_READERS = {
    "measure": (lambda one: rates_of(measure(TAKEN, GROUP, one)), "label"),
    "LabelledSample": (lambda one: LabelledSample(SCORE, GROUP, one).label.tolist(), "label"),
    "certify": (certified, "label"),
    "simulate on a table": (replayed, "label"),
    "RoundLog": (lambda one: rounds_of(np.ones(ROWS, bool), one), "accepted_labels"),
}
FAIR_CLASSIFIER = {"FairClassifier": (fitted, "y")}
"""scikit-learn's conventions: two classes of numbers, whichever they are."""

DECISION_READERS = {
    "measure": (lambda one: rates_of(measure(one, GROUP, GOOD)), "accepted"),
    "impact": (lambda one: impact(one, GROUP).to_json(), "selected"),
    "DecisionLog": (lambda one: logged(log_of(np.where(GOOD, 1, -1), one)), "accept"),
    "RoundLog": (lambda one: rounds_of(one, GOOD[TAKEN]), "accept"),
}


def compared(incumbent):
    people = LabelledSample(SCORE, GROUP, GOOD)
    found = eh.alternatives(RULE, people, incumbent, candidates=1)
    return found.incumbent_cost, found.incumbent_gap


INCUMBENT = {"alternatives": (compared, "incumbent")}
"""Decisions, or probabilities."""


def each(readers, forms):
    return [
        pytest.param(readers[reader], forms[form], id=f"{reader}: {form}")
        for reader in readers
        for form in forms
    ]


def same(one, other):
    assert str(one) == str(other) or np.array_equal(one, other)


@pytest.mark.parametrize(
    ("reader", "form"), each({**OUTCOME_READERS, **FAIR_CLASSIFIER}, UNDERSTOOD)
)
def test_outcomes_that_can_be_read_in_one_way_give_the_same_numbers(reader, form):
    read, _ = reader
    same(read(form(GOOD)), read(np.where(GOOD, 1, -1)))


@pytest.mark.parametrize(("reader", "form"), each({**DECISION_READERS, **INCUMBENT}, UNDERSTOOD))
def test_decisions_that_can_be_read_in_one_way_give_the_same_numbers(reader, form):
    read, _ = reader
    same(read(form(TAKEN)), read(TAKEN))


@pytest.mark.parametrize(("reader", "form"), each(OUTCOME_READERS, {**UNCLEAR, **NO_COLUMN}))
def test_outcomes_that_say_nothing_for_certain_are_refused_everywhere(reader, form):
    read, argument = reader
    with pytest.raises(InvalidInput) as caught:
        read(form(GOOD))
    assert caught.value.argument == argument
    assert argument in caught.value.message


@pytest.mark.parametrize(("reader", "form"), each(DECISION_READERS, {**UNCLEAR, **NO_COLUMN}))
def test_decisions_that_say_nothing_for_certain_are_refused_everywhere(reader, form):
    read, argument = reader
    with pytest.raises(InvalidInput) as caught:
        read(form(TAKEN))
    # Of columns of two lengths the later one is named.
    other_length = form is NO_COLUMN["of another length"] and argument != "accept"
    assert caught.value.argument in (("group", "label") if other_length else (argument,))


@pytest.mark.parametrize("form", [key for key in UNCLEAR if key not in ("0.5 and 1",)])
def test_what_is_no_probability_is_no_incumbent(form):
    with pytest.raises(InvalidInput) as caught:
        compared(UNCLEAR[form](TAKEN))
    assert caught.value.argument == "incumbent"


def test_the_probability_of_being_accepted_is_an_incumbent():
    assert compared(np.where(TAKEN, 1.0, 0.5)) != compared(TAKEN)


@pytest.mark.parametrize("form", ["words", "numbers in texts"])
def test_a_classifier_is_told_which_word_is_good(form):
    with pytest.raises(ValueError, match=r"good|label type"):
        fitted(UNCLEAR[form](GOOD))


GAP = RNG.random(ROWS) < 0.2


@pytest.mark.parametrize("form", WITH_GAPS.values(), ids=list(WITH_GAPS))
def test_missing_outcomes_are_missing_however_they_are_written(form):
    signs = np.where(GAP, np.nan, np.where(GOOD, 1, -1))
    measured = measure(TAKEN, GROUP, form(GOOD, GAP))
    same(rates_of(measured), rates_of(measure(TAKEN, GROUP, signs)))
    assert measured.outcomes == ROWS - GAP.sum()
    same(logged(log_of(form(GOOD, GAP))), logged(log_of(signs)))


@pytest.mark.parametrize(
    ("reader", "form"),
    each({"certify": OUTCOME_READERS["certify"], **FAIR_CLASSIFIER}, WITH_GAPS),
)
def test_missing_outcomes_are_refused_where_all_are_needed(reader, form):
    read, argument = reader
    with pytest.raises(BadLabel, match=f"missing in {GAP.sum()}") as caught:
        read(form(GOOD, GAP))
    assert caught.value.argument == argument


@pytest.mark.parametrize(("reader", "form"), each({**DECISION_READERS, **INCUMBENT}, WITH_GAPS))
def test_missing_decisions_are_refused(reader, form):
    read, argument = reader
    with pytest.raises(InvalidInput, match=f"missing in {GAP.sum()}") as caught:
        read(form(TAKEN, GAP))
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("values", "good"),
    [([1, 1], True), ([0, 0], False), ([-1, -1], False), ([False, False], False), ([0.0], False)],
)
def test_a_single_value_has_one_reading(values, good):
    assert (read_outcomes(values, len(values)).sign == (1 if good else -1)).all()


def test_the_ways_out_lead_to_the_same_numbers():
    """The hints of the errors, carried out."""
    truth = rates_of(measure(TAKEN, GROUP, GOOD))
    words = np.where(GOOD, "yes", "no")
    with pytest.raises(BadLabel, match=r"good: label == '(yes|no)' or label == '(yes|no)'\."):
        measure(TAKEN, GROUP, words)
    assert rates_of(measure(TAKEN, GROUP, words == "yes")) == truth
    with pytest.raises(BadLabel, match=r"np\.asarray\(label\) == 'yes'"):
        measure(TAKEN, GROUP, words.tolist())
    assert rates_of(measure(TAKEN, GROUP, np.asarray(words.tolist()) == "yes")) == truth
    # A comparison alone makes a gap a bad outcome, so the hint keeps it.
    label = pd.Series(words, dtype=object).mask(GAP)
    with pytest.raises(BadLabel, match=r"np\.where\(pandas\.isna\(label\), np\.nan, label == "):
        measure(TAKEN, GROUP, label)
    kept = np.where(pd.isna(label), np.nan, label == "yes")
    signs = np.where(GAP, np.nan, np.where(GOOD, 1, -1))
    assert rates_of(measure(TAKEN, GROUP, kept)) == rates_of(measure(TAKEN, GROUP, signs))
    with pytest.raises(InvalidInput, match="accepted >= cutoff"):
        measure(SCORE[:, 0], GROUP)
    with pytest.raises(BadLabel, match=r"np\.where\(label == 0, np\.nan, label\)"):
        measure(TAKEN, GROUP, UNCLEAR["-1, 0 and 1"](GOOD))


def test_zero_in_a_log_is_open_or_bad_and_is_never_guessed():
    signs = np.where(GAP, 0, np.where(GOOD, 1, -1))
    kept = log_of(signs)
    assert logged(kept) == logged(log_of(np.where(GAP, np.nan, np.where(GOOD, 1, -1))))
    again = log_of(kept.label)  # what a log holds is what it reads
    assert logged(again) == logged(kept)
    with pytest.raises(BadLabel, match="0 may be a bad outcome or one that is not known"):
        log_of(np.where(TAKEN, GOOD.astype(int), 1))
    # With gaps 0 is no gap; and whatever stands beside rejected people is not read.
    assert logged(log_of(np.where(TAKEN, GOOD, np.nan))) == logged(log_of(np.where(GOOD, 1, -1)))
    assert (
        logged(log_of(np.where(TAKEN, np.where(GOOD, 1, -1), 9)))[:2]
        == logged(log_of(np.where(GOOD, 1, -1)))[:2]
    )


def test_single_outcomes_are_minus_one_and_plus_one():
    for label in (0, True, False, 2, "1", None, 1.5, np.True_):
        learner = Uniform(seed=1)
        decided = learner.decide(SCORE)
        accepted = decided.round[decided.accept][:2]
        for rounds, labels in ((int(accepted[0]), label), (accepted[:1], [label])):
            with pytest.raises(InvalidInput) as caught:
                learner.observe(rounds, labels)
            assert caught.value.argument == "label"
        learner.observe(accepted, np.array([1.0, -1.0]))
        assert learner.report.missing_labels == decided.accept.sum() - 2


# the figures of others


def test_pandas_counts_the_same():
    table = pd.DataFrame({"taken": TAKEN, "good": GOOD, "group": GROUP})
    bad = table[~table.good].groupby("group").taken.mean()
    good = 1 - table[table.good].groupby("group").taken.mean()
    all_people = table.groupby("group").taken.mean()
    for form in ("0 and 1", "pandas: boolean", "objects: 0 and 1"):
        measured = measure(UNDERSTOOD[form](TAKEN), table.group, UNDERSTOOD[form](GOOD))
        for rate, expected in zip(measured.rates, (all_people, bad, good), strict=False):
            for one in rate.groups:
                assert one.least == one.largest == pytest.approx(expected[one.group], abs=1e-15)


@pytest.mark.parametrize(
    "form", ["0 and 1", "truth values", "pandas: 0 and 1", "a list of 0 and 1", "pandas: boolean"]
)
def test_fairlearn_finds_the_same_rates_in_the_same_arrays(form):
    """MetricFrame(y_true, y_pred, sensitive_features) and measure(y_pred, sensitive_features,
    y_true), the same three objects handed to both.
    """
    metrics = pytest.importorskip("fairlearn.metrics", reason="make check does not install it")
    y_true, y_pred = UNDERSTOOD[form](GOOD), UNDERSTOOD[form](TAKEN)
    for group in (GROUP, pd.Series(GROUP), pd.Series(GROUP, dtype="category"), GROUP.tolist()):
        frame = metrics.MetricFrame(
            metrics={
                "SR": metrics.selection_rate,
                "FPR": metrics.false_positive_rate,
                "FNR": metrics.false_negative_rate,
            },
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=group,
        )
        measured = measure(y_pred, group, y_true)
        for rate, column in zip(measured.rates, ("SR", "FPR", "FNR"), strict=False):
            for one in rate.groups:
                assert one.least == pytest.approx(frame.by_group[column][one.group], abs=1e-12)
            assert rate.gap == pytest.approx(frame.difference()[column], abs=1e-12)


def test_a_gate_of_what_fairlearn_users_hold_is_not_green():
    """Labels of 0 and 1 once dropped out of the rates, and any decision but 0 counted as accepted:
    gaps of .43 were printed as less, or as 0, and passed.
    """
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 4000)
    good = rng.random(4000) < 0.6
    score = rng.random(4000) + np.where(group == "a", 0.3, 0.0)
    taken = np.where(good, score > 0.75, score > 0.85)
    truth = abs(taken[good & (group == "a")].mean() - taken[good & (group == "b")].mean())
    assert truth > 0.25
    for accepted in (taken, np.where(taken, 1, -1), taken.astype(int)):
        for label in (good, good.astype(int), good.astype(float), np.where(good, 1, -1)):
            measured = measure(accepted, group, label, rates="fnr")
            assert measured.rates[0].gap == pytest.approx(truth)
            with pytest.raises(AssertionError, match="ABOVE"):
                assert_within(measured, 0.2)


# how a column was read


def test_a_measurement_says_how_a_column_was_read():
    measured = measure(TAKEN.astype(int), GROUP, GOOD.astype(int))
    said = f"label: 1 is good ({GOOD.mean():.1%} of {ROWS})"
    assert measured.read == (f"accepted: 1 is accepted ({TAKEN.mean():.1%} of {ROWS})", said)
    assert said in measured.result().read
    assert said in measured.to_json()["read"]
    for form in ("truth values", "-1 and +1", "pandas: boolean", "objects: truth values"):
        assert measure(UNDERSTOOD[form](TAKEN), GROUP, UNDERSTOOD[form](GOOD)).read == ()
    some = measure(TAKEN, GROUP, WITH_GAPS["pandas: Int64"](GOOD, GAP))
    assert some.read == (f"label: 1 is good ({GOOD[~GAP].mean():.1%} of {(~GAP).sum()})",)


# groups


GROUPS = {
    "texts": GROUP,
    "a list": GROUP.tolist(),
    "objects": GROUP.astype(object),
    "bytes": GROUP.astype("S1"),
    "numbers": np.where(GROUP == "a", 1, 2),
    "truth values": GROUP == "b",
    "floats": np.where(GROUP == "a", 0.5, 1.5),
    "pandas": pd.Series(GROUP),
    "pandas: category": pd.Series(GROUP, dtype="category"),
    "pandas: Int64": pd.Series(np.where(GROUP == "a", 1, 2), dtype="Int64"),
    "pandas: string": pd.Series(GROUP, dtype="string"),
}


def no_groups():
    """Columns that are no groups, or not for certain."""
    missing = GROUP.astype(object)
    missing[3] = None
    return {
        "missing": missing,
        "NaN": np.where(np.arange(ROWS) == 3, np.nan, 1.0),
        "blank": np.where(np.arange(ROWS) == 3, " ", GROUP),
        "pandas.NA": pd.Series(GROUP, dtype="string").mask(np.arange(ROWS) == 3),
        "a masked array": np.ma.array(GROUP == "a", mask=np.arange(ROWS) == 3),
        "infinity": np.where(GROUP == "a", np.inf, 1.0),
        "numbers of every person": np.linspace(0, 1, ROWS),
        "whole numbers of every person": np.arange(ROWS),
        "numbers of every person, as objects": np.arange(ROWS).astype(object),
        '1 and "1"': np.array([1 if one == "a" else "1" for one in GROUP], dtype=object),
        "True and 1": np.array([one == "a" or 1 for one in GROUP], dtype=object),
        "bytes and texts": np.array([b"a" if o == "a" else "a" for o in GROUP], dtype=object),
        "tuples": [(one, 1) for one in GROUP],
        "a column of a matrix": GROUP[:, np.newaxis],
        "of another length": GROUP[:-1],
        "a text": "ab" * (ROWS // 2),
    }


NO_GROUPS = no_groups()
MAY_BE_UNKNOWN = ("missing", "NaN", "blank", "pandas.NA", "a masked array")


GROUP_READERS = {
    "measure": (lambda one: measure(TAKEN, one, GOOD), "group"),
    "measure by two groupings": (lambda one: measure(TAKEN, {"x": GROUP, "y": one}), "group"),
    "LabelledSample": (lambda one: LabelledSample(SCORE, one, GOOD), "group"),
    "CostSensitiveProblem": (
        lambda one: eh.CostSensitiveProblem(SCORE, one, np.zeros(ROWS), np.ones(ROWS)),
        "group",
    ),
    "FairClassifier": (
        lambda one: eh.FairClassifier(RULE, "selection", 0.5).fit(
            SCORE, GOOD, sensitive_features=one
        ),
        "sensitive_features",
    ),
    "a learner that needs the group": (
        lambda one: eh.TwoPhaseLearner(
            RULE, "fpr", 0.2, 0.05, 1000, comparator_gap=0.1, group_use="decide"
        ).decide(SCORE, one),
        "group",
    ),
}
READERS_OF_UNKNOWN = {
    "impact": (lambda one: impact(TAKEN, one), "group"),
    "DecisionLog": (lambda one: log_of(np.where(GOOD, 1, -1), group=one), "group"),
    "RoundLog": (lambda one: rounds_of(TAKEN, GOOD[TAKEN], one), "group"),
    "a learner": (lambda one: Uniform(seed=1).decide(SCORE, one), "group"),
}


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_groups_of_any_kind_give_the_same_numbers(group):
    def without_names(measured):
        return [row[1:] for row in rates_of(measured)]

    same(without_names(measure(TAKEN, group, GOOD)), without_names(measure(TAKEN, GROUP, GOOD)))
    taken = [(row.people, row.selected) for row in impact(TAKEN, group).rows]
    assert taken == [(row.people, row.selected) for row in impact(TAKEN, GROUP).rows]
    sample = LabelledSample(SCORE, group, GOOD)
    assert [int((sample.group == one).sum()) for one in sample.groups] == [n for n, _ in taken]
    for read, _ in {**GROUP_READERS, **READERS_OF_UNKNOWN}.values():
        read(group)


FAIRLEARN_S = ("a column of a matrix", "tuples")
"""fairlearn's and scikit-learn's users hand over frames: a column each for sex and race."""


@pytest.mark.parametrize(
    ("reader", "group"),
    each(
        {**GROUP_READERS, **READERS_OF_UNKNOWN},
        {name: name for name in NO_GROUPS},
    ),
)
def test_what_is_no_group_is_refused_everywhere(reader, group):
    read, argument = reader
    if group in MAY_BE_UNKNOWN and reader in READERS_OF_UNKNOWN.values():
        read(NO_GROUPS[group])
        return
    if group in FAIRLEARN_S and argument == "sensitive_features":
        read(NO_GROUPS[group])
        return
    with pytest.raises(InvalidInput) as caught:
        read(NO_GROUPS[group])
    assert caught.value.argument == argument


def test_the_group_that_a_policy_looks_at_is_read_here_too():
    model = eh.FairClassifier(RULE, "selection", 0.5, group_use="decide", random_state=0)
    policy = model.fit(SCORE, GOOD, sensitive_features=GROUP).policy_
    for group in (None, float("nan"), " ", ("a", "b")):
        with pytest.raises(InvalidInput) as caught:
            eh.explain(policy, SCORE[0], SCORE, group=group)
        assert caught.value.argument == "group"


# weights


@pytest.mark.parametrize(
    "count",
    [
        np.full(ROWS, 2),
        [2] * ROWS,
        2,
        pd.Series([2] * ROWS, dtype="Int64"),
        np.full(ROWS, 2, dtype=object),
        [Decimal(2)] * ROWS,
    ],
    ids=str,
)
def test_weights_of_any_kind(count):
    sample = LabelledSample(SCORE, GROUP, GOOD, count)
    assert sample.weight.tolist() == [2.0] * ROWS
    assert (
        log_of(np.where(GOOD, 1, -1)).people * 2
        == DecisionLog.of(
            SCORE, TAKEN, np.full(ROWS, 0.5), np.where(GOOD, 1, -1), count=count
        ).people
    )


WEIGHT_READERS = {
    "LabelledSample": (lambda one: LabelledSample(SCORE, GROUP, GOOD, one), "count"),
    "FairClassifier": (
        lambda one: eh.FairClassifier(RULE, "selection", 0.5).fit(
            SCORE, GOOD, sensitive_features=GROUP, sample_weight=one
        ),
        "sample_weight",
    ),
    "DecisionLog": (
        lambda one: DecisionLog.of(
            SCORE, TAKEN, np.full(ROWS, 0.5), np.where(GOOD, 1, -1), count=one
        ),
        "count",
    ),
}
NO_WEIGHTS = {
    "missing": np.where(np.arange(ROWS) == 3, np.nan, 1.0),
    "None": [None] * ROWS,
    "pandas.NA": pd.Series([1] * ROWS, dtype="Int64").mask(np.arange(ROWS) == 3),
    "infinite": np.full(ROWS, np.inf),
    "negative": np.where(np.arange(ROWS) == 3, -1.0, 1.0),
    "texts": ["1"] * ROWS,
    "of another length": np.ones(ROWS - 1),
    "a column of a matrix": np.ones((ROWS, 1)),
}


@pytest.mark.parametrize(("reader", "weight"), each(WEIGHT_READERS, NO_WEIGHTS))
def test_what_is_no_weight_is_refused_everywhere(reader, weight):
    read, argument = reader
    with pytest.raises(InvalidInput) as caught:
        read(weight)
    assert caught.value.argument == argument


def test_where_people_are_counted_a_weight_is_their_number():
    survey = LabelledSample(SCORE, GROUP, GOOD, np.full(ROWS, 0.7))
    policy = eh.certify(RULE, LabelledSample(SCORE, GROUP, GOOD), 0.4).policy
    model = eh.FairClassifier(RULE, "selection", 0.5, certify=0.1)
    weights = {"sensitive_features": GROUP, "sample_weight": np.full(ROWS, 0.7)}
    for counted, argument in (
        (lambda: eh.certify(RULE, survey, 0.4), "count"),
        (lambda: eh.alternatives(RULE, survey, TAKEN), "count"),
        (lambda: measure_policy(policy, survey), "count"),
        (lambda: model.fit(SCORE, GOOD, **weights), "sample_weight"),
    ):
        with pytest.raises(InvalidInput, match=r"0\.7 in row 0") as caught:
            counted()
        assert caught.value.argument == argument


# rows


def shuffled(column):
    return pd.Series(column).iloc[np.random.default_rng(0).permutation(ROWS)]


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: measure(pd.Series(TAKEN), shuffled(GROUP)), "group"),
        (lambda: measure(pd.Series(TAKEN), {"x": GROUP, "y": shuffled(GROUP)}), "group"),
        (lambda: measure(shuffled(TAKEN), GROUP, pd.Series(GOOD)), "label"),
        (lambda: impact(pd.Series(TAKEN), shuffled(GROUP)), "group"),
        (lambda: LabelledSample(SCORE, pd.Series(GROUP), shuffled(GOOD)), "label"),
        (lambda: LabelledSample(pd.DataFrame({"x": SCORE[:, 0]}), shuffled(GROUP), GOOD), "group"),
        (lambda: log_of(pd.Series(np.where(GOOD, 1, -1)), shuffled(TAKEN)), "label"),
        (lambda: Uniform(seed=1).decide(pd.DataFrame(SCORE), shuffled(GROUP)), "group"),
        (
            lambda: Uniform(seed=1).observe(pd.Series(np.arange(ROWS)), shuffled(GOOD)),
            "label",
        ),
        (
            lambda: eh.FairClassifier(RULE, "selection", 0.5).fit(
                pd.DataFrame(SCORE), shuffled(GOOD), sensitive_features=GROUP
            ),
            "y",
        ),
    ],
)
def test_rows_in_another_order_are_refused(call, argument):
    with pytest.raises(InvalidInput, match="another order") as caught:
        call()
    assert caught.value.argument == argument


def test_rows_of_one_frame_and_rows_by_place_are_taken():
    table = pd.DataFrame({"taken": TAKEN, "group": GROUP, "good": GOOD}).sample(
        frac=1, random_state=1
    )
    measured = measure(table.taken, table.group, table.good)
    assert {row[1:4] for row in rates_of(measured)} == {
        row[1:4] for row in rates_of(measure(TAKEN, GROUP, GOOD))
    }
    measure(table.taken.to_numpy(), pd.Series(table.group.to_numpy()), table.good.tolist())
    # scikit-learn takes rows by place, and tables that were cut before have other indexes.
    eh.FairClassifier(RULE, "selection", 0.5).fit(
        pd.DataFrame(SCORE, index=np.arange(ROWS) + 7), GOOD, sensitive_features=pd.Series(GROUP)
    )


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: measure([], []), "accepted"),
        (lambda: measure(np.zeros(0, bool), {"x": []}, []), "accepted"),
        (lambda: impact([], []), "selected"),
        (lambda: measure(True, ["a"]), "accepted"),
        (lambda: measure(TAKEN, {}), "group"),
        (lambda: measure((one for one in TAKEN), GROUP), "accepted"),
    ],
)
def test_nobody_is_refused(call, argument):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.argument == argument


# cost


def calls_of(read, rows):
    """How many functions are called while a column is read: of Python and of C."""
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read(rows)
    finally:
        sys.setprofile(None)
    return calls


NUMERIC = {
    "truth values": lambda yes: yes,
    "0 and 1": lambda yes: yes.astype(int),
    "-1. and 1.": lambda yes: np.where(yes, 1.0, -1.0),
    "with NaN": lambda yes: np.where(np.arange(len(yes)) < 5, np.nan, yes),
    "masked": lambda yes: np.ma.array(yes, mask=np.arange(len(yes)) < 5),
    "pandas": lambda yes: pd.Series(yes.astype(int)),
    "pandas: Int64": lambda yes: pd.Series(yes.astype(int), dtype="Int64"),
    "pandas: boolean with NA": lambda yes: pd.Series(yes, dtype="boolean").mask(
        np.arange(len(yes)) < 5
    ),
    "polars with null": lambda yes: frames("polars").Series([None] * 5 + yes.tolist()[5:]),
}


@pytest.mark.parametrize("form", NUMERIC.values(), ids=list(NUMERIC))
def test_numbers_and_truth_values_are_never_read_one_by_one(form, monkeypatch):
    yes = np.tile([True, False], 5000)
    few, many = form(yes[:100]), form(yes)
    read_outcomes(few, 100)  # packages load when they are met first
    calls = [
        calls_of(lambda column: read_outcomes(column, len(column)), one) for one in (few, many)
    ]
    assert abs(calls[1] - calls[0]) < 50  # of 9,900 more entries
    for entry_by_entry in ("_objects", "_entries", "_floats"):
        monkeypatch.setattr(people, entry_by_entry, None)
    read_outcomes(many, len(yes))


def test_groups_of_numbers_are_never_read_one_by_one(monkeypatch):
    for entry_by_entry in ("_objects", "_entries", "_require_names"):
        monkeypatch.setattr(people, entry_by_entry, None)
    numbers = np.tile([3, 4], 5000)
    calls = [calls_of(lambda c: as_group(c, len(c)), one) for one in (numbers[:200], numbers)]
    assert calls[0] == calls[1]
    assert distinct_groups(as_group(pd.Series(numbers), len(numbers))) == (3, 4)


def test_no_package_of_frames_loads_before_one_of_its_frames_arrives():
    program = (
        "import sys, numpy as np, evenhand as eh\n"
        "eh.LabelledSample(np.zeros((4, 1)), np.array(list('aabb')), np.array([1, 0, 1, 0]))\n"
        "eh.LabelledSample([[1.0], [2.0]], ['a', 'b'], [True, False])\n"
        "frames = ('narwhals', 'pandas', 'polars', 'pyarrow')\n"
        "print([name for name in frames if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


# one column of groups


UNKNOWN = {
    "None in a list": ["a", None],
    "NaN in a list, which numpy would turn into a text": ["a", float("nan")],
    "pandas.NA in a list": ["a", pd.NA],
    "an array of objects": np.array(["a", np.nan], dtype=object),
    "an array of numbers": np.array([1.0, np.nan]),
    "numbers of 32 bits": np.array([1.0, np.nan], dtype=np.float32),
    "a date": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "a masked array": np.ma.array([1, 2], mask=[False, True]),
    "pandas: objects": pd.Series(["a", None], dtype=object),
    "pandas: category": pd.Series(["a", None], dtype="category"),
    "pandas: Categorical": pd.Categorical(["a", None]),
    "pandas: category of numbers": pd.Series([1, None], dtype="category"),
    "pandas: string": pd.Series(["a", None], dtype="string"),
    "pandas: Int64": pd.Series([1, None], dtype="Int64"),
    "pandas: boolean": pd.Series([True, None], dtype="boolean"),
    "pandas: date": pd.Series(pd.to_datetime(["2020-01-01", None])),
}


def test_a_missing_value_of_arrow_is_an_unknown_group():
    pytest.importorskip("pyarrow", reason="make check does not install it")
    group = pd.Series(["a", None], dtype="string[pyarrow]")
    test_whatever_stands_for_missing_is_an_unknown_group(group)
    test_unknown_groups_are_refused_where_the_group_is_needed(group)


def test_a_missing_value_of_polars_is_an_unknown_group():
    polars = pytest.importorskip("polars", reason="make check does not install it")
    for group in (
        polars.Series(["a", None]),
        polars.Series(["a", None], dtype=polars.Categorical),
        polars.Series([1, None]),
        polars.Series([True, None]),
    ):
        test_whatever_stands_for_missing_is_an_unknown_group(group)
        test_unknown_groups_are_refused_where_the_group_is_needed(group)
    test_known_groups_stay_what_they_are(polars.Series(["a", "b"]))


@pytest.mark.parametrize("group", UNKNOWN.values(), ids=list(UNKNOWN))
def test_whatever_stands_for_missing_is_an_unknown_group(group):
    found = as_known_groups(group, 2)
    assert found.dtype == object
    assert found[0] is not None
    assert found[1] is None


@pytest.mark.parametrize("group", UNKNOWN.values(), ids=list(UNKNOWN))
def test_unknown_groups_are_refused_where_the_group_is_needed(group):
    with pytest.raises(InvalidInput, match=r"group .* 1 of 2 .*row 1"):
        as_group(group, 2)
    with pytest.raises(InvalidInput, match=r"group .* 1 of 2"):
        LabelledSample(np.zeros((2, 1)), group, [1, -1])


@pytest.mark.parametrize(
    "group",
    [["a", "b"], [1, 2], [True, False], [0.5, 1.5], np.array(["a", "b"])],
    ids=str,
)
def test_known_groups_stay_what_they_are(group):
    assert as_known_groups(group, 2).tolist() == as_group(group, 2).tolist() == list(group)


@pytest.mark.parametrize("false", [False, np.False_])
def test_a_group_called_false_is_known(false):
    group = np.array([false, None, "b"], dtype=object)
    assert as_known_groups(group, 3).tolist() == [False, None, "b"]


def test_groups_of_several_kinds_in_a_list_are_not_turned_into_texts():
    assert as_group([1, "b", 2.5], 3).tolist() == [1, "b", 2.5]


@pytest.mark.parametrize(
    ("group", "match"),
    [
        ([("f", 60), ("m", 60)], "tuple"),
        ([["f"], ["m"]], r"row 0 is \['f'\]"),
        ([{}, {}], "hashable"),
        ([1.0, np.inf], "row 1 is inf"),
    ],
)
def test_groups_that_cannot_be_told_apart_are_refused_at_once(group, match):
    with pytest.raises(InvalidInput, match=match):
        as_known_groups(group, 2)


@pytest.mark.parametrize("given", [np.array(["a", "", "  "]), ["a", "", " "], ["a", None, "\t"]])
def test_a_blank_text_is_no_group(given):
    assert as_known_groups(given, 3).tolist() == ["a", None, None]


def test_groups_that_cannot_be_compared_are_ordered_by_text():
    assert distinct_groups([2, 1, 2]) == (1, 2)
    assert distinct_groups(["b", 1]) == (1, "b")
