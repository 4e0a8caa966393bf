"""Explanations over source columns, beside all orders of the columns, one by one; and `shap`."""

import itertools
import json

import numpy as np
import pytest
from tests.media.agree import media_agree
from tests.policies.test_reasons import by_all_orders

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Called, GroupClassifier, LinearRule, Tree
from evenhand.hypotheses.thresholds import PerGroup, Threshold
from evenhand.policies import Mixture, ReasonWords, SourceColumn
from evenhand.policies.explanation import (
    Comparison,
    hyperplanes,
    number_columns,
    schema_columns,
)
from evenhand.schema import Column, Schema
from evenhand.tables.column import Notation
from evenhand.tables.frame import RecipeColumn
from evenhand.tables.recipe import source_columns

LINEAR = {"kind": "linear", "weights": [2.0, 0.0, 1.0], "threshold": 5.0}
TREE = {"kind": "tree", "column": [0, 2, -1], "value": [1.0, 2.0, 3.0]}
CUT = {"kind": "threshold", "column": 2, "value": 7.0}

RECIPE = (
    RecipeColumn("score", Notation("number")),
    RecipeColumn("housing", None, ("own", "rent", "other")),
    RecipeColumn("debt", Notation("number")),
    RecipeColumn("sex", None, ("m",), "f"),
)
"""score, three 0/1 columns of housing, debt, one 0/1 column of sex."""
HOUSING = np.eye(3)


def said(found):
    """What is said, on one line; the same in all media."""
    media_agree(found.result())
    return " ".join(found.describe().split())


def test_a_rule_changes_its_answer_at_its_hyperplanes():
    """Linear rules where w.x crosses the threshold, cuts and trees at their values."""
    policy = {"parts": [{"hypothesis": rule} for rule in (LINEAR, TREE, CUT)]}
    weights, right = hyperplanes(policy, 3)
    assert weights.tolist() == [[2, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert right.tolist() == [5.0, 1.0, 2.0, 7.0]
    assert hyperplanes({"kind": "constant", "accept": True}, 2)[0].shape == (0, 2)


def encoded(raw):
    """Rows (score, housing 0..2, debt, sex 0/1) as the numbers of RECIPE."""
    raw = np.atleast_2d(raw)
    return np.column_stack([raw[:, 0], HOUSING[raw[:, 1].astype(int)], raw[:, 2], raw[:, 3]])


def random_people(rng, people):
    return np.column_stack(
        [
            rng.normal(600, 50, people).round(),
            rng.integers(0, 3, people),
            rng.random(people).round(2),
            rng.integers(0, 2, people),
        ]
    )


def policies(rng):
    """Thresholds, a linear rule over one-hot columns, trees, constants, a function of one's own."""
    weights = rng.normal(size=6) * [0.02, 1, 1, 1, -2, 0.3]
    linear = LinearRule(tuple(weights), float(weights @ encoded([600, 1, 0.5, 0])[0]))
    tree = Tree(
        column=(0, 4, 2, -1, -1, -1, -1),
        value=(600.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0),
        left=(1, 3, 5, -1, -1, -1, -1),
        right=(2, 4, 6, -1, -1, -1, -1),
        accept=(False, False, False, True, False, False, True),
        columns=6,
    )
    own = Called(lambda rows, group: (rows[:, 0] > 580) & (rows[:, 1] + rows[:, 5] < 2))
    score, debt = Threshold(0, 590.0, 6), Threshold(4, 0.6, 6, at_least=False)
    return [
        Mixture((score, debt, ACCEPT_ALL), (0.5, 0.3, 0.2)),
        Mixture((linear,), (1.0,)),
        Mixture((tree, REJECT_ALL), (0.7, 0.3)),
        Mixture((linear, tree, score), (0.4, 0.4, 0.2)),
        Mixture((own, debt), (0.6, 0.4)),
    ]


def test_source_columns_of_a_recipe():
    sources = source_columns(RECIPE)
    assert [one.name for one in sources] == ["score", "housing", "debt", "sex"]
    row = encoded([610, 2, 0.3, 0])[0]
    assert [one.value(row) for one in sources] == [610.0, "other", 0.3, "f"]
    when = source_columns((RecipeColumn("since", Notation("date")),))[0]
    assert when.value(np.array([18690.0])) == "2021-03-04"
    flag = source_columns((RecipeColumn("insured", Notation("flag")),))[0]
    assert flag.value(np.array([1.0])) == "yes"


def standard_scores(policy, people, rules):
    """The mean score of some of the linear rules, each in its standard deviation among the people
    and with its weight.
    """
    slopes = np.array([policy.hypotheses[k].weights for k in rules])
    weights = np.array([policy.weights[k] for k in rules])
    spread = (people @ slopes.T).std(axis=0)
    return lambda rows: (rows @ slopes.T / spread) @ weights / weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_all_orders_of_the_source_columns(seed):
    """The definition over raw columns, where a category is one of them: of the probability, and of
    a linear rule (seed 1) of its score.
    """
    rng = np.random.default_rng(seed)
    policy = policies(rng)[seed]
    people = random_people(rng, 6)
    person = random_people(rng, 1)[0]
    found = policy.explain(encoded(person)[0], encoded(people), columns=source_columns(RECIPE))
    value = policy.acceptance
    assert found.unit == ("score" if seed == 1 else "probability")
    if seed == 1:
        value = standard_scores(policy, encoded(people), [0])
    truth = by_all_orders(lambda raw: value(encoded(raw)), person, people)
    shares = {one.column: one.share for one in found.reasons}
    for name, share in zip(("score", "housing", "debt", "sex"), truth, strict=True):
        assert shares.get(name, 0.0) == pytest.approx(share, abs=1e-12)
    total = sum(shares.values())
    if seed != 1:
        assert total == pytest.approx(found.probability - found.reference_probability)
    assert found.standard_error == 0.0


def test_single_zero_one_columns_instead_of_categories_are_refuted():
    """The negative control: six numbers as six columns share otherwise."""
    rng = np.random.default_rng(1)
    policy = policies(rng)[3]
    people = random_people(rng, 12)
    person = random_people(rng, 1)[0]
    whole = policy.explain(encoded(person)[0], encoded(people), columns=source_columns(RECIPE))
    parts = policy.explain(encoded(person)[0], encoded(people))
    together = {one.column: one.share for one in whole.reasons}
    apart = {one.column: one.share for one in parts.reasons}
    assert abs(together["score"] - apart["x0"]) > 1e-3


@pytest.mark.slow
def test_shares_equal_those_of_shap():
    """1,000 people, 5 policies, against shap's exact explainer over the source columns."""
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(0)
    background = random_people(rng, 40)
    people = random_people(rng, 1000)
    sources = source_columns(RECIPE)
    largest = 0.0
    for policy in policies(rng):
        masker = shap.maskers.Independent(background, max_samples=len(background))

        def acceptance(raw, policy=policy):
            return policy.acceptance(encoded(raw))

        theirs = shap.explainers.Exact(acceptance, masker)(people, silent=True).values
        for person, values in zip(people, theirs, strict=True):
            found = policy.explain(
                encoded(person)[0], encoded(background), columns=sources, above=1.0
            )
            shares = {one.column: one.share for one in found.reasons}
            for name, value in zip(("score", "housing", "debt", "sex"), values, strict=True):
                largest = max(largest, abs(shares.get(name, 0.0) - value))
    assert largest < 1e-9


PEOPLE = np.array([[650.0, 0.1], [700.0, 0.2], [520.0, 0.9], [610.0, 0.4], [560.0, 0.7]])
SCORE = Threshold(0, 600.0, 2)
DEBT = Threshold(1, 0.5, 2, at_least=False)
COIN = Mixture((SCORE, DEBT, ACCEPT_ALL), (0.5, 0.3, 0.2))


def test_the_words_are_honest_about_the_coin():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], reference_name="loans")
    text = said(found)
    assert found.probability == pytest.approx(0.2)
    assert "Probability of being accepted: 0.2000. The decision is drawn with it." in text
    assert "Compared with 5 people (loans)" in text
    assert "score is low (580)" in text
    assert "debt is high (0.8)" in text
    assert "instead of 0.2. The decision would still be drawn." in text
    assert "would be accepted" not in text
    assert found.change.before == pytest.approx(0.2)
    assert found.change.after in (pytest.approx(0.5), pytest.approx(0.7))
    certain = COIN.explain([650.0, 0.1], PEOPLE, columns=["score", "debt"])
    assert certain.change is None
    assert "certain to be accepted" in said(certain)
    refused = Mixture((REJECT_ALL,), (1.0,)).explain([1.0, 1.0], PEOPLE)
    assert refused.reasons == ()
    assert "No change of one or two columns" in said(refused)


def test_above_asks_for_more_than_the_least_rise():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], above=0.9)
    assert found.change.columns == ("score", "debt")
    assert found.change.after == pytest.approx(1.0)
    assert "would still be drawn" not in said(found)


def test_the_least_change_of_a_category_is_another_one_that_was_observed():
    policy = Mixture((Threshold(2, 0.5, 6, at_least=False),), (1.0,))  # not rent
    people = encoded([[600, 0, 0.1, 0], [610, 1, 0.3, 1], [620, 0, 0.2, 1]])
    person = encoded([600, 1, 0.2, 0])[0]
    found = policy.explain(person, people, columns=source_columns(RECIPE))
    assert found.change.words == "housing 'own' (it is 'rent')"
    assert (found.change.before, found.change.after) == (0.0, 1.0)
    assert found.reasons[0].text == "housing is rent"


def test_columns_that_may_not_change_are_not_proposed():
    person = [580.0, 0.8]

    def change(**limits):
        words = ReasonWords(**limits)
        return COIN.explain(person, PEOPLE, columns=["score", "debt"], words=words).change

    free = change()
    other = {"score": "debt", "debt": "score"}[free.columns[0]]
    assert change(fixed=free.columns).columns == (other,)
    assert change(protected=free.columns).columns == (other,)
    assert change(only_down=("score",), fixed=("debt",)) is None
    assert change(only_up=("score",), fixed=("debt",)).columns == ("score",)


def test_protected_columns_are_no_reasons_but_are_reported():
    words = ReasonWords(protected=("score",))
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], words=words)
    assert [one.column for one in found.reasons] == ["debt"]
    assert [one.column for one in found.protected] == ["score"]
    assert "protected column score has a share" in said(found)
    every = found.reasons + found.protected
    assert sum(one.share for one in every) == pytest.approx(
        found.probability - found.reference_probability
    )


def test_words_of_the_institution():
    words = ReasonWords.from_toml(
        """
        [[reason]]
        column = "debt"
        direction = "high"
        code = "R07"
        text = "Debt is high in relation to income."
        """
    )
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], words=words)
    debt = next(one for one in found.reasons if one.column == "debt")
    score = next(one for one in found.reasons if one.column == "score")
    assert (debt.text, debt.code, debt.worded) == (
        "Debt is high in relation to income.",
        "R07",
        True,
    )
    assert not score.worded
    assert "R07" in said(found)


def test_the_record_can_be_looked_at():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"])
    frame = found.to_frame()
    assert set(frame["column"]) == {"score", "debt"}
    document = json.loads(json.dumps(found.to_json()))
    assert document["probability"] == found.probability
    assert document["change"]["words"] == found.change.words
    assert len(found.principal_reasons(1)) == 1
    assert eh.explain(COIN, [580.0, 0.8], PEOPLE).reasons[0].column == "x0"


def test_the_record_can_be_drawn():
    pytest.importorskip("matplotlib", reason="make check does not install it")
    axes = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"]).plot()
    assert "share of the probability" in axes.get_xlabel()


def test_people_in_frames_are_explained_by_the_names_of_their_columns():
    schema = Schema(
        (
            Column("score", "number"),
            Column("housing", "category", ("own", "rent")),
            Column("insured", "boolean"),
            Column("note", "text"),
        )
    )
    own = Called(lambda rows, group: (rows[:, 0] >= 600) & (rows[:, 1] == 0))
    policy = Mixture((own,), (1.0,), schema=schema)
    people = [
        {"score": 650.0, "housing": "own", "insured": True, "note": "a"},
        {"score": 590.0, "housing": "rent", "insured": False, "note": "b"},
    ]
    person = {"score": 640.0, "housing": "rent", "insured": False, "note": "mine"}
    found = policy.explain(person, people)
    assert found.reasons[0].column == "housing"
    assert found.reasons[0].value == "rent"
    assert found.change.then == ("own",)
    assert [one.kind for one in schema_columns(schema)] == ["number", "name", "name", "text"]
    row = schema.encode([person])[0]
    assert [one.value(row) for one in schema_columns(schema)] == [640.0, "rent", False, "mine"]


def test_a_group_that_decides_is_held_as_it_is():
    rule = PerGroup((("a", Threshold(0, 600.0, 2)), ("b", Threshold(0, 500.0, 2))))
    policy = Mixture((rule, GroupClassifier("b")), (0.8, 0.2), "decide")
    found = policy.explain([550.0, 0.1], PEOPLE, group="a")
    assert found.probability == 0.0
    assert "held as it is" in said(found)
    other = policy.explain([550.0, 0.1], PEOPLE, group="b")
    assert other.probability == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="group is not given"):
        policy.explain([550.0, 0.1], PEOPLE)


def test_impossible_input_raises_an_error():
    with pytest.raises(InvalidInput, match="nobody in the reference"):
        COIN.explain([1.0, 2.0], np.zeros((0, 2)))
    with pytest.raises(InvalidInput, match="one person is explained"):
        COIN.explain(PEOPLE, PEOPLE)
    with pytest.raises(InvalidInput, match="3 columns and the reference 2"):
        COIN.explain([1.0, 2.0, 3.0], PEOPLE)
    with pytest.raises(InvalidInput, match="stand for 1 numbers"):
        COIN.explain([1.0, 2.0], PEOPLE, columns=["score"])
    with pytest.raises(InvalidInput, match="no such column"):
        COIN.explain([1.0, 2.0], PEOPLE, words=ReasonWords(fixed=("age",)))
    with pytest.raises(InvalidInput):
        COIN.explain([np.nan, 2.0], PEOPLE)


def test_numbers_have_names_or_none():
    assert [one.name for one in number_columns(["a", "b"])] == ["a", "b"]
    lone = SourceColumn("x", slice(0, 1), missing=-1.0)
    assert lone.value(np.array([-1.0])) is None


def test_every_pair_of_values_agrees_with_the_policy_itself():
    """The probability after the change is the policy's own at the changed person."""
    rng = np.random.default_rng(3)
    for policy, _ in itertools.product(policies(rng), range(3)):
        people = encoded(random_people(rng, 20))
        person = encoded(random_people(rng, 1)[0])[0]
        found = policy.explain(person, people, columns=source_columns(RECIPE))
        if found.change is not None:
            assert found.change.after > found.probability
            changed = person.copy()
            for name, value in zip(found.change.columns, found.change.then, strict=True):
                source = next(one for one in source_columns(RECIPE) if one.name == name)
                codes = dict(source.options).get(value, (value,))
                changed[source.place] = codes
            assert policy.acceptance(changed[None, :])[0] == pytest.approx(found.change.after)


def linear_mixture(rng, rules=3, columns=5):
    """Linear rules and a coin, and people; the columns 2 and 3 are one category."""
    weights = rng.dirichlet(np.ones(rules + 1))
    people = np.column_stack(
        [rng.normal(size=(40, columns - 3)), np.eye(2)[rng.integers(0, 2, 40)]]
    )
    people = np.column_stack([people, rng.exponential(size=40)])
    slopes = rng.normal(size=(rules, columns))
    cuts = np.median(people @ slopes.T, axis=0)
    linear = [LinearRule(tuple(slope), float(cut)) for slope, cut in zip(slopes, cuts, strict=True)]
    return Mixture((*linear, REJECT_ALL), tuple(weights)), people


FIVE = (
    SourceColumn("a", slice(0, 1)),
    SourceColumn("b", slice(1, 2)),
    SourceColumn("home", slice(2, 4), "name", (("own", (1.0, 0.0)), ("rent", (0.0, 1.0)))),
    SourceColumn("c", slice(4, 5)),
)


@pytest.mark.parametrize("seed", range(8))
def test_the_score_of_the_rules_that_reject_is_shared_out_exactly(seed):
    """Shapley values of an additive function, by all orders of the source columns."""
    rng = np.random.default_rng(seed)
    policy, people = linear_mixture(rng)
    person = people[seed].copy()
    found = policy.explain(person, people, columns=FIVE, above=1.0)
    rejecting = [k for k in range(3) if not policy.hypotheses[k].accepts(person[None, :])[0]]
    assert found.unit == "score"
    assert found.rejecting == pytest.approx(sum(policy.weights[k] for k in rejecting))
    score = standard_scores(policy, people, rejecting or range(3))

    def of_sources(raw):
        return score(np.column_stack([raw[:, :2], raw[:, 2] == 0, raw[:, 2] == 1, raw[:, 3]]))

    sourced = np.column_stack([people[:, :2], people[:, 3], people[:, 4]])
    truth = by_all_orders(of_sources, sourced[seed], sourced)
    shares = {one.column: one.share for one in found.reasons}
    for one, value in zip(FIVE, truth, strict=True):
        assert shares.get(one.name, 0.0) == pytest.approx(value, abs=1e-12)
    if not rejecting:
        assert found.principal_reasons() == ()


@pytest.mark.parametrize("seed", range(4))
def test_rules_on_one_column_each_are_shared_out_exactly(seed):
    """Stumps, also on 0/1 columns of one category: the probability, by all orders."""
    rng = np.random.default_rng(seed)
    cuts = [Threshold(0, 590.0, 6), Threshold(4, 0.6, 6, at_least=False), Threshold(2, 0.5, 6)]
    rules = (*cuts, Threshold(0, 640.0, 6), Threshold(1, 0.5, 6, at_least=False), ACCEPT_ALL)
    policy = Mixture(rules, tuple(rng.dirichlet(np.ones(6)).tolist()))
    raw = random_people(rng, 12)
    person = random_people(rng, 1)[0]
    found = policy.explain(encoded(person)[0], encoded(raw), columns=source_columns(RECIPE))
    truth = by_all_orders(lambda rows: policy.acceptance(encoded(rows)), person, raw)
    shares = {one.column: one.share for one in found.reasons}
    for name, value in zip(("score", "housing", "debt", "sex"), truth, strict=True):
        assert shares.get(name, 0.0) == pytest.approx(value, abs=1e-12)
    assert (found.unit, found.standard_error) == ("probability", 0.0)


class Counting(LinearRule):
    """Counts the rows that it is asked about."""

    rows = 0

    def accepts(self, features, group=None):
        type(self).rows += len(features)
        return super().accepts(features, group)


def applicants(rng, people, columns=24):
    """People with columns that are correlated, and some of 0 and 1."""
    mixing = rng.normal(size=(columns, columns)) * 0.4 + np.eye(columns)
    made = rng.normal(size=(people, columns)) @ mixing
    made[:, -8:] = made[:, -8:] > 1.0
    return made


def sets_of_reasons(policy, rejected, people):
    compared = Comparison.of(policy, people)
    found = [policy.explain(person, compared, above=1.0) for person in rejected]
    return [[one.column for one in each.principal_reasons(4)] for each in found]


def changes_between_halves(seed):
    """Of 30 rejected people: how many have another set of four reasons against one half of the
    reference than against the other.
    """
    rng = np.random.default_rng(seed)
    people = applicants(np.random.default_rng(9), 20_030)
    slopes = np.random.default_rng(8).normal(size=24) / people.std(axis=0)
    policy = Mixture((LinearRule(tuple(slopes), float(np.median(people @ slopes))),), (1.0,))
    people = people[rng.permutation(len(people))]
    rejected = people[policy.acceptance(people) == 0.0][:30]
    halves = people[30:10_030], people[10_030:]
    one, other = (sets_of_reasons(policy, rejected, half) for half in halves)
    return sum(set(a) != set(b) for a, b in zip(one, other, strict=True))


@pytest.mark.thorough
def test_reasons_hardly_depend_on_who_is_in_the_reference():
    """On average at most one of 30 people has another set of four against another 10,000 people, of
    24 columns that count equally: 8 fresh divisions.
    """
    assert np.mean([changes_between_halves(seed) for seed in range(100, 108)]) <= 1.0


@pytest.mark.thorough
def test_against_32_people_reasons_depend_on_them(monkeypatch):
    """The negative control: what was done before."""
    of = Comparison.of.__func__
    monkeypatch.setattr(
        Comparison, "of", classmethod(lambda cls, policy, people: of(cls, policy, people[-32:]))
    )
    assert np.mean([changes_between_halves(seed) for seed in range(100, 104)]) > 3.0


def test_explaining_a_person_asks_a_linear_rule_about_a_few_rows(monkeypatch):
    """About 2,000 people once, and then about the person alone: no subsets of 24 columns."""
    rng = np.random.default_rng(1)
    people = applicants(rng, 2000)
    rule = Counting(tuple(rng.normal(size=24)), 0.0)
    policy = Mixture((rule,), (1.0,))
    compared = Comparison.of(policy, people)
    policy.explain(people[0], compared, above=1.0)
    Counting.rows = 0
    for person in people[1:11]:
        policy.explain(person, compared, above=1.0)
    assert Counting.rows <= 10 * 4


def test_a_number_is_not_low_under_one_reference_and_high_under_another():
    """The sign of its weight and the side of the mean decide."""
    rng = np.random.default_rng(2)
    people = applicants(rng, 3000)
    policy = Mixture((LinearRule(tuple(rng.normal(size=24)), 50.0),), (1.0,))
    for half in (people[:1500], people[1500:]):
        compared = Comparison.of(policy, half)
        mean = half.mean(axis=0)
        for person in people[:20]:
            found = policy.explain(person, compared, above=1.0)
            for one in found.reasons:
                at = int(one.column[1:])
                assert one.direction == ("high" if person[at] > mean[at] else "low")


def forest(rng, columns=12):
    """A rule that looks at all columns at once, and is no linear one."""
    own = Called(lambda rows, group: np.sin(rows[:, :columns]).sum(axis=1) > 0.5)
    return Mixture((own, ACCEPT_ALL), (0.9, 0.1))


@pytest.mark.thorough
def test_estimates_come_with_their_error_and_say_which_order_is_not_settled():
    rng = np.random.default_rng(4)
    people = rng.normal(size=(400, 12))
    policy = forest(rng)
    rejected = people[policy.acceptance(people) < 0.5][:5]
    for person in rejected:
        found = policy.explain(person, people, above=1.0)
        assert 0.0 < found.standard_error < 0.03
        assert all(0.0 < one.error <= found.standard_error for one in found.reasons)
        assert "standard error" in said(found)
        names = [one.column for one in found.against]
        for one, other in found.unsettled:
            assert names.index(other) == names.index(one) + 1
            assert f"{one} before {other}" in said(found)
        twice = policy.explain(person, people, above=1.0, seed=1)
        assert twice.reasons != found.reasons
        settled = [pair for pair in itertools.pairwise(names) if pair not in found.unsettled]
        shares = {one.column: one.share for one in twice.reasons}
        errors = found.standard_error
        assert all(shares[a] < shares[b] + 4 * errors for a, b in settled)
    same = policy.explain([0.0] * 12, [[0.0] * 12] * 3, above=1.0)
    assert same.reasons == ()


def test_a_draw_that_rejects_is_no_fault_of_a_column():
    """All rules that look at the person accept: no reason is given, whatever the shares are."""
    rules = (LinearRule((1.0, 1.0), 0.0), REJECT_ALL)
    policy = Mixture(rules, (0.5, 0.5))
    found = policy.explain([5.0, -1.0], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.5]])
    assert found.against
    assert (found.rejecting, found.principal_reasons()) == (0.0, ())


def test_a_reason_that_the_law_may_protect_comes_with_a_warning():
    policy = Mixture((LinearRule((1.0, -1.0), 5.0),), (1.0,))
    found = policy.explain([1.0, 3.0], [[3.0, 1.0], [4.0, 1.0]], columns=["income", "Marital"])
    assert "WARNING: the reason 'Marital' names marital status." in said(found)
    words = ReasonWords(protected=("Marital",))
    hidden = policy.explain(
        [1.0, 3.0], [[3.0, 1.0], [4.0, 1.0]], columns=["income", "Marital"], words=words
    )
    assert not any("WARNING" in note for note in hidden.notes)


def test_a_mixture_of_scores_says_which_of_them_reject():
    policy = Mixture((LinearRule((1.0, 1.0), 5.0), LinearRule((1.0, -1.0), -9.0)), (0.75, 0.25))
    found = policy.explain([1.0, 2.0], [[3.0, 3.0], [4.0, 2.5]])
    assert found.probability == 0.25
    assert "1 of the policy's 2 scores reject the person" in said(found)
    assert "standard deviations of the score" in said(found)


def test_a_linear_rule_of_each_group_is_explained_by_its_own():
    rule = PerGroup((("a", LinearRule((1.0, 1.0), 9.0)), ("b", LinearRule((1.0, -1.0), 9.0))))
    policy = Mixture((rule,), (1.0,), "decide")
    people = [[1.0, 2.0], [3.0, 1.0]]
    for group, sign in (("a", 1.0), ("b", -1.0)):
        found = policy.explain([0.0, 0.0], people, group=group)
        shares = {one.column: one.share for one in found.reasons}
        assert found.unit == "score"
        assert np.sign(shares["x1"]) == -sign


def test_a_score_that_all_have_and_a_reference_of_one_person():
    policy = Mixture((LinearRule((1.0, 1.0), 9.0),), (1.0,))
    one = policy.explain([0.0, 1.0], [[2.0, 2.0]])
    assert [(each.column, each.share) for each in one.reasons] == [("x0", -2.0), ("x1", -1.0)]
    assert policy.explain([2.0, 2.0], [[2.0, 2.0]] * 3).reasons == ()
