import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.worlds import POLICY, logged, people
from tests.media.agree import media_agree

from evenhand import FalseNegativeRate, FalsePositiveRate, Prices, SelectionRate
from evenhand.errors import InvalidInput, MissingColumn
from evenhand.evaluation import Candidate, DecisionLog, evaluate
from evenhand.evaluation.evaluate import (
    Estimate,
    EstimateCourse,
    Gap,
    Support,
    blocks,
    denominator_warnings,
    effective,
    heaviest,
)
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.constants import GroupClassifier
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture
from evenhand.shown import plain_fields

RATES = (FalsePositiveRate(), FalseNegativeRate(), SelectionRate())


def truths(policy, rows=400_000):
    """Loss with prices (2, 1) and the gaps of the three rates, b minus a, on many people whose
    labels are all known.
    """
    features, group, label = people(rows, 99)
    pi = policy.acceptance(features)
    loss = np.where(label == -1, 2 * pi, 1 - pi).mean()
    gaps = []
    for counted, sign in (((label == -1), 1), ((label == 1), -1), (np.ones(rows, bool), 1)):
        gaps.append(
            sign * (pi[counted & (group == "b")].mean() - pi[counted & (group == "a")].mean())
        )
    return loss, gaps


@pytest.fixture(scope="module")
def found():
    return evaluate(
        logged(20_000, 3, open_share=0.02)[0],
        POLICY,
        rates=RATES,
        limit=0.2,
        prices=Prices(2.0, 1.0),
    )


def test_loss_and_all_three_gaps_are_covered_at_every_block_and_estimated_well(found):
    loss, gaps = truths(POLICY)
    assert (found.course.loss[:, 1] <= loss + 0.003).all()
    assert (found.course.loss[:, 2] >= loss - 0.003).all()
    assert found.loss.value == pytest.approx(loss, abs=0.03)
    for at, gap in enumerate(gaps):
        assert (found.course.gaps[:, at, 1] <= gap + 0.003).all()
        assert (found.course.gaps[:, at, 2] >= gap - 0.003).all()
        assert found.gaps[at].estimate.value == pytest.approx(gap, abs=0.04)
    assert (np.diff(found.course.gaps[:, :, 2] - found.course.gaps[:, :, 1], axis=0) <= 1e-12).all()


def test_what_is_reported(found):
    assert found.verdict == "within"
    assert found.sentence.startswith(
        "Certified with probability 0.95 under the assumptions below: "
        "the candidate's gap in FPR and FNR and SR"
    )
    assert [gap.name for gap in found.gaps] == ["FPR b minus a", "FNR b minus a", "SR b minus a"]
    assert len(found.rates) == 6
    assert found.ledger.spent == 0.05
    assert [entry.share for entry in found.ledger.entries] == pytest.approx([0.01, 0.04])
    assert any(
        f"{found.open:,.0f} accepted people without a label" in line for line in found.assumptions
    )
    text = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(text)["gaps"][0]["estimate"]["lower"] == found.gaps[0].estimate.lower
    media_agree(found.result())
    selection = found.rates[4]
    assert selection.labelled == selection.effective


def test_the_three_verdicts():
    log = logged(20_000, 3)[0]
    bold = Mixture((Threshold(0, 0.4, 3),), (1.0,))
    assert evaluate(log, bold, limit=0.2).verdict == "within"
    gap = evaluate(log, bold).gaps[0].estimate
    between = evaluate(log, bold, limit=(abs(gap.value) + max(gap.upper, -gap.lower)) / 2)
    assert between.verdict == "not shown"
    assert (
        "a log of roughly 80," in between.sentence
    )  # half the distance takes four times the people
    assert "roughly" not in evaluate(log, bold, limit=0.9 * abs(gap.value)).sentence
    above = evaluate(log, Mixture((GroupClassifier("a"),), (1.0,), "decide"), limit=0.2)
    assert above.verdict == "above"
    assert "shown with probability 0.95" in above.sentence


def test_constants_are_exactly_even_and_thin_mixtures_pay_only_for_their_rules():
    log = logged(500, 1)[0]
    even = evaluate(log, Mixture((ACCEPT_ALL, REJECT_ALL), (0.3, 0.7)), limit=0.0, rates=RATES)
    assert even.verdict == "within"
    for end in ("lower", "value", "upper"):
        assert [getattr(rate.estimate, end) for rate in even.rates] == pytest.approx(
            [0.3, 0.3, 0.7, 0.7, 0.3, 0.3]
        )
    rule = evaluate(log, Mixture((Threshold(0, 0.4, 3),), (1.0,))).gaps[0].estimate
    thin = evaluate(log, Mixture((Threshold(0, 0.4, 3), REJECT_ALL), (0.1, 0.9))).gaps[0].estimate
    assert (thin.lower, thin.upper) == pytest.approx((0.1 * rule.lower, 0.1 * rule.upper))


def test_without_groups_only_the_loss_is_reported():
    log = logged(1000, 1)[0]
    alone = evaluate(replace(log, group=np.full(1000, None)), POLICY)
    assert alone.verdict == "no groups"
    assert alone.gaps == ()
    assert alone.ledger.entries[0].share == 0.05
    assert (
        alone.loss.upper - alone.loss.lower
        < evaluate(log, POLICY).loss.upper - evaluate(log, POLICY).loss.lower
    )


def test_people_of_no_or_other_groups_are_outside():
    log = logged(3000, 1)[0]
    rng = np.random.default_rng(0)
    group = np.where(rng.random(3000) < 0.1, None, np.where(rng.random(3000) < 0.1, "c", log.group))
    found = evaluate(replace(log, group=group), POLICY, groups=["a", "b"])
    assert found.outside == (~np.isin(group, ["a", "b"])).sum()
    assert len(found.gaps) == 1
    assert len(evaluate(replace(log, group=group), POLICY).gaps) == 3


def test_groups_that_are_reported_for_the_accepted_alone_are_refused():
    log = logged(2000, 1)[0]
    with pytest.raises(InvalidInput, match=r"100\.0%"):
        evaluate(replace(log, group=np.where(log.accept, log.group, None)), POLICY)
    unknown = np.where(
        log.features[:, 0] > 0.3, None, log.group
    )  # hangs on the features, which is allowed
    assert evaluate(replace(log, group=unknown), POLICY).outside > 500


def test_propensities_that_do_not_fit_are_refused():
    log = logged(2000, 1)[0]
    with pytest.raises(InvalidInput, match="probabilities"):
        evaluate(
            replace(log, acceptance=log.propensity), POLICY
        )  # that of the decision taken, read as that of accepting
    evaluate(log, POLICY)


def test_a_person_without_a_chance_is_named():
    log = logged(2000, 1)[0]
    p = np.where(~log.accept, 0.0, log.acceptance)
    with pytest.raises(InvalidInput, match=r"row \d+"):
        evaluate(replace(log, acceptance=p), POLICY)


def test_warnings_of_thin_support_and_heavy_people():
    rng = np.random.default_rng(3)
    features, group, label = people(2000, 8)
    p = np.where(features[:, 0] > 0.4, 0.02, 0.9)
    accept = rng.random(2000) < p
    log = DecisionLog.of(features, accept, p, np.where(accept, label, 0), group=group)
    found = evaluate(log, Mixture((Threshold(0, 0.4, 3),), (1.0,)))
    assert any("were accepted with a probability below 0.05" in line for line in found.warnings)
    few = evaluate(log.without_first(1900), Mixture((Threshold(0, 0.4, 3),), (1.0,)))
    assert any("one person carries" in line or "are worth" in line for line in few.warnings)
    nobody = evaluate(
        replace(
            log,
            group=np.where(np.arange(2000) < 5, "c", group),
            label=np.where(np.arange(2000) < 5, 0, log.label),
        ),
        POLICY,
    )
    assert any("group c has no labelled" in line for line in nobody.warnings)
    assert next(rate for rate in nobody.rates if rate.group == "c").estimate.lower == pytest.approx(
        0.2
    )


def test_nothing_is_estimated_from_nothing():
    """No label at all: the regression's guess is no estimate; all that the interval of the loss
    knows is that a coin errs.
    """
    log = logged(300, 1)[0]
    blind = evaluate(replace(log, label=np.zeros(300, dtype=np.int64)), POLICY, rates=RATES)
    assert blind.loss.value is None
    pi = POLICY.acceptance(log.features)
    assert blind.loss.lower < np.minimum(pi, 1 - pi).mean()
    assert blind.loss.upper > np.maximum(pi, 1 - pi).mean()
    assert [gap.estimate.value is None for gap in blind.gaps] == [True, True, False]
    assert [rate.estimate.value is None for rate in blind.rates] == [True] * 4 + [False] * 2
    assert blind.verdict == "not shown"
    json.dumps(blind.to_json(), allow_nan=False)


def test_a_broken_assumption_is_a_contradiction():
    """Half of the log is from another population: losses near 0, then near 1."""
    rows = 4000
    features = np.zeros((rows, 1))
    label = np.where(np.arange(rows) < rows / 2, 1, -1)
    log = DecisionLog.of(
        features, np.ones(rows, bool), np.ones(rows), label, group=np.tile(["a", "b"], rows // 2)
    )
    found = evaluate(log, Mixture((ACCEPT_ALL,), (1.0,)))
    assert found.verdict == "contradiction"
    assert found.sentence.startswith("Nothing is claimed")


def test_rows_count_once_however_they_are_written():
    """Rows with counts are the same evidence as repeated rows, as long as blocks end alike."""
    log = logged(45, 4)[0]
    twice = {
        name: np.repeat(getattr(log, name), 2, axis=0)
        for name in ("features", "accept", "acceptance", "label", "group", "count")
    }
    counted = evaluate(replace(log, count=2 * log.count), POLICY)
    assert counted.loss.upper == pytest.approx(
        evaluate(replace(log, **twice), POLICY).loss.upper, abs=1e-9
    )
    assert "followed one another" in counted.assumptions[0]


def test_blocks_cover_the_log_once():
    for rows in (1, 99, 100, 101, 199, 5000, 123_456):
        found = list(blocks(rows))
        assert [at.start for at in found] == [0, *(at.stop for at in found[:-1])]
        assert found[-1].stop == rows


def test_where_a_block_ends_does_not_depend_on_the_length_of_the_log():
    ends = [at.stop for at in blocks(200_000)]
    for rows in (1, 99, 100, 101, 150, 199, 350, 4_321, 123_456):
        assert [at.stop for at in blocks(rows)] == [*(end for end in ends if end < rows), rows]


def first_rows(log, rows):
    columns = ("features", "accept", "acceptance", "label", "group", "count")
    return replace(log, **{name: getattr(log, name)[:rows] for name in columns})


def test_a_prefix_says_what_the_long_log_said_at_that_row():
    """Stopping anywhere is a look at the same process: estimates and intervals are equal, bit for
    bit, at every border that both have.
    """
    log = logged(3_000, 5, open_share=0.05)[0]
    settings = {"rates": RATES, "groups": ("a", "b"), "prices": Prices(2.0, 1.0)}
    whole = evaluate(log, POLICY, **settings).course
    for rows in (60, 130, 480, 1_277, 1_300, 2_999, *whole.rows[[3, 9]].astype(int)):
        part = evaluate(first_rows(log, rows), POLICY, **settings).course
        borders = int((whole.rows <= rows).sum())
        assert part.rows[-1] == rows
        np.testing.assert_array_equal(part.rows[:borders], whole.rows[:borders])
        np.testing.assert_array_equal(part.gaps[:borders], whole.gaps[:borders])
        np.testing.assert_array_equal(part.loss[:borders], whole.loss[:borders])
        # what is left after the last border narrows the intervals, and never widens them
        assert (np.diff(part.gaps[:, :, 2], axis=0) <= 0).all()
        assert (np.diff(part.gaps[:, :, 1], axis=0) >= 0).all()


def three_groups():
    """Groups a and b, and a tenth of the people in group c; one in a hundred has no group."""
    log = logged(20_000, 3)[0]
    draw = np.random.default_rng(0).random(20_000)
    return replace(log, group=np.where(draw < 0.01, None, np.where(draw < 0.11, "c", log.group)))


def test_a_certificate_names_the_groups_it_covers_and_who_is_outside():
    log = three_groups()
    found = evaluate(log, POLICY, limit=0.2, groups=("a", "b"))
    others = int((log.group == "c").sum())
    unknown = int((log.group == None).sum())  # noqa: E711
    assert found.verdict == "within"
    assert "between the groups a and b is at most 0.2." in found.sentence
    assert f"Not covered are {others:,} of group c and {unknown:,} whose group" in found.sentence
    assert "any two" not in found.sentence
    assert found.groups == ("a", "b")
    assert found.outside_groups == {"c": others}
    assert found.outside == others + unknown
    document = found.to_json()
    assert document["groups"] == ["a", "b"]
    assert document["outside_groups"] == {"c": others}
    assert not any("longer log" in line for line in found.assumptions)


def test_groups_that_were_found_in_the_log_are_an_assumption():
    log = three_groups()
    found = evaluate(log, Mixture((ACCEPT_ALL,), (1.0,)), limit=0.2)
    assert "between any two of the groups a, b, c is" in found.sentence
    assert "of group" not in found.sentence.split("Not covered")[1]
    assert "longer log names them beforehand" in found.assumptions[-1]


@pytest.mark.parametrize("name", ["round", "time"])
def test_rows_out_of_order_raise_an_error(name):
    log = logged(200, 1)[0]
    ascending = np.arange(200.0) + 17.0
    assert evaluate(replace(log, **{name: ascending}), POLICY).people == 200
    by_decision = np.argsort(log.accept, kind="stable")
    for order in (ascending[::-1], ascending[by_decision]):
        with pytest.raises(InvalidInput, match=name) as caught:
            evaluate(replace(log, **{name: order}), POLICY)
        row = int(np.argmax(np.diff(order) < 0))
        assert f"row {row + 2} is {order[row + 1]:g}" in str(caught.value)


def test_equal_times_are_no_disorder_and_equal_rounds_are():
    log = logged(200, 1)[0]
    pairs = np.repeat(np.arange(100.0), 2)
    assert evaluate(replace(log, time=pairs), POLICY).people == 200
    with pytest.raises(InvalidInput, match="round"):
        evaluate(replace(log, round=pairs), POLICY)


def test_the_order_is_an_assumption_that_says_what_the_log_shows():
    log = logged(200, 1)[0]
    rounds = np.arange(200.0)
    rounds[[3, 50]] = np.nan
    shown = {
        "nothing in the log shows it": log,
        "its round numbers ascend": replace(log, round=rounds),
        "its times never go back": replace(log, time=rounds),
    }
    for words, one in shown.items():
        assert words in evaluate(one, POLICY).assumptions[0]


def test_candidates(tmp_path):
    log = logged(50, 1)[0]
    assert Candidate.read("accept-all").acceptance(log).tolist() == [1.0] * 50
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY.to_json()))
    assert np.array_equal(
        Candidate.read(str(path)).acceptance(log), POLICY.acceptance(log.features)
    )
    one = Mixture((Threshold(0, 0.4, 1),), (1.0,))
    path.write_text(json.dumps({"policy": one.to_json(), "columns": ["x1"]}))
    assert np.array_equal(
        Candidate.read(str(path)).acceptance(log), one.acceptance(log.features[:, 1:2])
    )
    path.write_text(json.dumps({"policy": one.to_json(), "columns": ["income"]}))
    with pytest.raises(MissingColumn, match="'income'"):
        Candidate.read(str(path)).acceptance(log)
    for text, words in (
        ("nope", "JSON"),
        ("[1]", "list"),
        ('{"kind": "x"}', "unknown"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=words):
            Candidate.read(str(path))
    with pytest.raises(InvalidInput, match="accept-all"):
        Candidate.read("missing.json")
    with pytest.raises(InvalidInput, match="group"):
        evaluate(
            replace(log, group=np.where(np.arange(50) == 7, None, log.group)),
            Mixture((GroupClassifier("a"),), (1.0,), "decide"),
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limit": 1.5}, "limit is 1.5"),
        ({"groups": ["z"]}, "'z'"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(InvalidInput, match=words):
        evaluate(logged(200, 1)[0], POLICY, **change)


def test_weights():
    ones = np.ones(4)
    assert effective(ones, ones) == 4
    assert effective(np.array([4.0, 0, 0, 0]), ones) == 1
    assert heaviest(np.array([3.0, 1, 0, 0]), ones) == 0.75
    assert effective(np.zeros(4), ones) == heaviest(np.zeros(4), ones) == 0


def test_an_estimate_lies_inside_its_interval_and_may_be_unknown():
    assert Estimate.of(0.9, 0.1, 0.4).value == 0.4
    assert Estimate.of(np.nan, 0.1, 0.4).describe() == "unknown [0.100, 0.400]"
    assert plain_fields(Estimate.of(0.2, 0.1, 0.4)) == {"value": 0.2, "lower": 0.1, "upper": 0.4}


@pytest.mark.parametrize(
    ("lower", "upper", "stands"),
    [
        (-0.05, 0.05, "within"),
        (-0.06, 0.0, "not shown"),
        (0.06, 0.2, "above"),
        (-0.3, -0.06, "above"),
    ],
)
def test_a_gap_is_judged_by_its_interval(lower, upper, stands):
    gap = Gap("FPR", "b", "a", Estimate(0.0, lower, upper))
    assert gap.stands(0.05) == stands
    assert gap.reach == max(upper, -lower)
    assert gap.name == "FPR b minus a"


def test_what_is_unknown_is_null_in_json():
    course = EstimateCourse(np.ones(1), np.full((1, 1, 3), np.nan), np.zeros((1, 3)))
    assert json.loads(json.dumps(plain_fields(course), allow_nan=False))["gaps"] == [[[None] * 3]]


def test_thin_support_and_few_people_are_worth_a_warning():
    assert Support(0.01, 0.05, 10.0).warnings() == []
    assert "20% of the people" in Support(0.01, 0.2, 10.0).warnings()[0]
    one, all_of_them = np.ones(40), np.ones(40, dtype=bool)
    assert denominator_warnings("negatives", "a", one, one, all_of_them) == []
    few = denominator_warnings("negatives", "a", one, one, np.arange(40) < 20)
    assert few == ["the negatives of group a are worth 20 people only"]
    assert "unknown, not zero" in denominator_warnings("negatives", "a", one, one, ~all_of_them)[0]


def test_an_evaluation_shows_its_verdict_and_no_curves():
    log = DecisionLog.of([[1.0]] * 200, [True, False] * 100, [0.5] * 200, [1, 0] * 100)
    shown = repr(evaluate(log, Candidate.read("accept-all")))
    assert shown.startswith("<Evaluation of accept-all: The cost holds with probability 0.95")
    assert "course" not in shown
