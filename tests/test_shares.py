"""One check of limits, deltas and other shares: in Python, at the command line, in service.toml.

Each row of the tables below is a way in. Each refuses percentages, negative numbers, texts, truth
values and what is not finite, names the argument or option, and says what was probably meant.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.bounds.slack import JointHoeffding
from evenhand.cli import main
from evenhand.environments import lending
from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog, GateLedger, evaluate, gate, impact, measure
from evenhand.evaluation.measurement import measure_policy
from evenhand.faircsc import frontier
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.findings import Finding
from evenhand.shares import require_delta, require_limit, require_promise, require_share
from evenhand.simulation.comparison import compare
from evenhand.testing import assert_within

RNG = np.random.default_rng(0)
SCORE = RNG.random((200, 1))
GROUP = np.array(["a", "b"] * 100)
LABEL = np.where(RNG.random(200) < SCORE[:, 0], 1, -1)
TAKEN = SCORE[:, 0] > 0.5
PEOPLE = eh.LabelledSample(SCORE, GROUP, LABEL)
RULE = eh.ScoreThresholds()
MEASURED = measure(TAKEN, GROUP, LABEL)
LOG = DecisionLog.of(SCORE, TAKEN, np.where(TAKEN, 0.9, 0.1), LABEL, group=GROUP)


def planned(**change):
    numbers = {"group_shares": {"a": 0.5, "b": 0.5}, "bad_rates": 0.3, "auc": 0.8, "runs": 1}
    return eh.plan(**{"limit": 0.1, "horizon": 400, **numbers, **change})


def solved(limit):
    problem = eh.Prices().problem(SCORE, GROUP, LABEL)
    return eh.solve_fair(problem, RULE, "fpr", PEOPLE, limit)


def traced(limit):
    problem = eh.Prices().problem(SCORE, GROUP, LABEL)
    return frontier(problem, RULE, "fpr", PEOPLE, [0.1, limit])


def two_phase(limit=0.2, delta=0.05, gap=0.1):
    return eh.TwoPhaseLearner(RULE, "fpr", limit, delta, 1000, comparator_gap=gap)


def certified(**change):
    return eh.CertifiedLearner(
        **{"hypotheses": RULE, "rate": "fpr", "limit": 0.1, "delta": 0.05, **change}
    )


def of_learners(limit, delta=0.05):
    learners = {"one": eh.CertifiedLearner(RULE, "fpr", 0.2, 0.05)}
    return compare(learners, lending(), 100, [0], limit=limit, delta=delta, regret_gap=0.1)


COMPARED = {
    "Measurement.verdict": (lambda one: MEASURED.verdict(limit=one), "limit"),
    "Measurement.findings": (lambda one: MEASURED.findings(limit=one), "limit"),
    "gate": (lambda one: gate(MEASURED, limit=one), "limit"),
    "gate of nothing": (lambda one: gate(measure(TAKEN, ["a"] * 200), limit=one), "limit"),
    "assert_within": (lambda one: assert_within(MEASURED, one, not_shown=True), "limit"),
    "Finding": (lambda one: Finding("gap", 0.0, 0.1, one), "limit"),
    "evaluate": (lambda one: evaluate(LOG, solved(0.2).policy, limit=one), "limit"),
    "solve_fair": (solved, "limit"),
    "frontier": (traced, "limit"),
    "FairClassifier": (
        lambda one: eh.FairClassifier(RULE, limit=one).fit(SCORE, LABEL, sensitive_features=GROUP),
        "limit",
    ),
    "optimum of a population": (lambda one: lending().optimum(one), "limit"),
    "comparator_gap": (lambda one: two_phase(1.0, gap=one), "comparator_gap"),
    "least_improvement": (
        lambda one: eh.alternatives(RULE, PEOPLE, TAKEN, least_improvement=one),
        "least_improvement",
    ),
    "ceilings": (lambda one: eh.certify(RULE, PEOPLE, ceilings={"fpr": one}), "ceilings"),
    "accept_at_least": (lambda one: certified(accept_at_least=one), "accept_at_least"),
}
"""[0, 1]"""

PROMISED = {
    "CertifiedLearner": (lambda one: certified(limit=one), "limit"),
    "TwoPhaseLearner": (lambda one: two_phase(limit=one, gap=0.0), "limit"),
    "certify": (lambda one: eh.certify(RULE, PEOPLE, one), "limit"),
    "FairClassifier with a certificate": (
        lambda one: eh.FairClassifier(RULE, limit=one, certify=0.1).fit(
            SCORE, LABEL, sensitive_features=GROUP
        ),
        "limit",
    ),
    "plan": (lambda one: planned(limit=one), "limit"),
    "compare": (of_learners, "limit"),
    "least_ratio of impact": (lambda one: impact(TAKEN, GROUP, least_ratio=one), "least_ratio"),
    "least_ratio of a gate": (
        lambda one: gate(measure(TAKEN, GROUP, compare="both"), least_ratio=one),
        "least_ratio",
    ),
    "accept_at_most": (lambda one: certified(accept_at_most=one), "accept_at_most"),
    "audit_rate": (lambda one: certified(audit_rate=one), "audit_rate"),
}
"""(0, 1]"""

INSIDE = {
    "measure": (lambda one: measure(TAKEN, GROUP, delta=one), "delta"),
    "measure_policy": (
        lambda one: measure_policy(solved(0.2).policy, PEOPLE, delta=one),
        "delta",
    ),
    "impact": (lambda one: impact(TAKEN, GROUP, delta=one), "delta"),
    "certify": (lambda one: eh.certify(RULE, PEOPLE, delta=one), "delta"),
    "alternatives": (lambda one: eh.alternatives(RULE, PEOPLE, TAKEN, delta=one), "delta"),
    "evaluate": (lambda one: evaluate(LOG, solved(0.2).policy, delta=one), "delta"),
    "FairClassifier": (
        lambda one: eh.FairClassifier(RULE, certify=one).fit(
            SCORE, LABEL, sensitive_features=GROUP
        ),
        "delta",
    ),
    "CertifiedLearner": (lambda one: certified(delta=one), "delta"),
    "TwoPhaseLearner": (lambda one: two_phase(delta=one), "delta"),
    "plan": (lambda one: planned(delta=one), "delta"),
    "compare": (lambda one: of_learners(0.1, one), "delta"),
    "GateLedger": (GateLedger, "delta"),
    "DeltaLedger": (DeltaLedger, "delta"),
    "a share of delta": (lambda one: DeltaLedger(0.5).book("a test", one, at=0), "share"),
    "a bound": (
        lambda one: JointHoeffding().slack([100, 100], delta=one, log_size=1.0, columns=1),
        "delta",
    ),
    "drift_false_alarm": (lambda one: certified(drift_false_alarm=one), "drift_false_alarm"),
    "fit_share": (lambda one: eh.certify(RULE, PEOPLE, fit_share=one), "fit_share"),
    "fit_share of a search": (
        lambda one: eh.alternatives(RULE, PEOPLE, TAKEN, fit_share=one),
        "fit_share",
    ),
    "bad_rates": (lambda one: planned(bad_rates=one), "bad_rates"),
}
"""(0, 1)"""

NO_SHARE = {
    "5": 5,
    "20.0": 20.0,
    "80": np.int64(80),
    "-0.1": -0.1,
    "nan": float("nan"),
    "inf": float("inf"),
    "1e400": 10**400,
    "True": True,
    "text": "0.05",
    "percent": "5%",
    "word": "low",
}


def each(doors, values):
    return [
        pytest.param(*doors[door], values[value], id=f"{door}: {value}")
        for door in doors
        for value in values
        if not (value in ("word", "text", "percent") and door == "audit_rate")
    ]


@pytest.mark.parametrize(
    ("call", "argument", "value"),
    [
        *each(COMPARED, NO_SHARE),
        *each(PROMISED, {**NO_SHARE, "0": 0}),
        *each(INSIDE, {**NO_SHARE, "0": 0, "1": 1.0}),
    ],
)
def test_what_is_no_share_is_refused_by_its_name(call, argument, value):
    with pytest.raises(InvalidInput) as caught:
        call(value)
    assert caught.value.argument == argument
    assert caught.value.message.startswith(argument)
    assert caught.value.requirement.startswith("it is a number in ")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "meant"),
    [(5, "0.05"), (20, "0.2"), (80.0, "0.8"), ("0.05", "0.05"), ("5%", "0.05"), ("5", "0.05")],
)
def test_the_way_out_is_what_was_probably_meant(value, meant):
    for require in (require_limit, require_promise, require_delta):
        with pytest.raises(InvalidInput, match=rf"did you mean {meant}\?"):
            require(value)


@pytest.mark.parametrize("value", [-0.1, float("nan"), None, "low", 1e9, [0.05], object()])
def test_nothing_is_guessed_where_nothing_is_near(value):
    with pytest.raises(InvalidInput) as caught:
        require_limit(value)
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize(
    "value", [0.25, Fraction(1, 4), Decimal("0.25"), np.float32(0.25), np.array(0.25)]
)
def test_numbers_of_any_kind_are_numbers(value):
    assert require_limit(value) == 0.25
    assert isinstance(require_limit(value), float)


def test_ends_belong_to_a_span_or_do_not():
    for span, zero, one in (
        ("(0, 1)", False, False),
        ("(0, 1]", False, True),
        ("[0, 1)", True, False),
        ("[0, 1]", True, True),
    ):
        for value, allowed in ((0, zero), (-0.0, zero), (1, one)):
            if allowed:
                assert require_share("x", value, span) == value
            else:
                with pytest.raises(InvalidInput):
                    require_share("x", value, span)
    assert require_promise(1) == 1.0
    assert np.abs(solved(0).gaps).max() < 1e-9
    assert gate(MEASURED, limit=1).passed


# the command line

TABLE = ("lending",)
NUMBERS = ("--shares", "a=0.5,b=0.5", "--bad-rates", "0.3", "--auc", "0.8", "--people", "1000")
COMMANDS = [
    ("measure", "--limit"),
    ("measure", "--least-ratio"),
    ("measure", "--delta"),
    ("impact", "--least-ratio"),
    ("impact", "--delta"),
    ("impact", "--smallest-share"),
    ("test", "--limit"),
    ("test", "--delta"),
    ("solve", "--limit"),
    ("solve", "--certify"),
    ("solve", "--holdout"),
    ("frontier", "--limit"),
    ("certify", "--limit"),
    ("certify", "--delta"),
    ("evaluate", "--limit"),
    ("evaluate", "--delta"),
    ("plan", "--limit"),
    ("plan", "--delta"),
    ("plan", "--capacity"),
    ("plan", "--floor"),
    ("simulate", "--limit"),
    ("simulate", "--delta"),
    ("simulate", "--comparator-gap"),
    ("compare", "--limit"),
    ("study", "--limit"),
    ("study", "--delta"),
    ("alternatives", "--delta"),
    ("alternatives", "--fit-share"),
    ("alternatives", "--least-improvement"),
    ("explain", "--above"),
]
ARGUMENTS = {
    "test": ("policy.json", "others.csv"),
    "certify": ("policy.json", "others.csv"),
    "explain": ("policy.json", "others.csv"),
    "evaluate": ("demo", "--policy", "accept-all"),
    "plan": NUMBERS,
    "simulate": (),
    "compare": (),
}


@pytest.mark.parametrize(("command", "option"), COMMANDS)
@pytest.mark.parametrize(("given", "meant"), [("5", "0.05"), ("80", "0.8"), ("-0.1", None)])
def test_every_command_refuses_them_before_it_does_anything(command, option, given, meant):
    words = [command, option, given, *ARGUMENTS.get(command, TABLE)]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 2
    name = option.strip("-").replace("-", "_")
    assert f"{name} is {float(given):.1f}; it is a number in" in result.output
    assert f"Option: {option}" in result.output
    if meant is not None:
        assert f"did you mean {meant}?" in result.output


@pytest.mark.parametrize("limits", ["0,5", "0:5:3", "0,-0.1", "0,nan"])
def test_a_grid_of_limits_is_one_of_shares(limits):
    words = ["frontier", "lending", "--limits", limits]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 2
    assert "it is a number in [0, 1]" in result.output
    assert "Option: --limits" in result.output


def test_a_ceiling_is_a_share_of_people(tmp_path):
    words = ["solve", "lending", "--certify", "0.05", "--ceiling", "selection=20"]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 2
    assert "did you mean 0.2?" in result.output
    assert "Option: --ceiling" in result.output


def test_a_gate_with_a_limit_of_5_books_no_look(tmp_path, monkeypatch):
    """A share of delta that is spent stays spent, so what makes no sense is refused before."""
    monkeypatch.chdir(tmp_path)
    words = ["measure", "lending", "--limit", "5", "--gate", "--gate-ledger", "gate.json"]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 2
    assert not (tmp_path / "gate.json").exists()
