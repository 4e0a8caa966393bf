import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand.errors import InvalidInput
from evenhand.hypotheses import Tree, hypothesis_from_json
from evenhand.hypotheses.trees import tree_of
from evenhand.testing.laws import through_text


def walk(tree, row):
    """The stupid way: one row, one node at a time, in scikit-learn's precision."""
    node = 0
    while tree.column[node] >= 0:
        node = (
            tree.left[node]
            if float(np.float32(row[tree.column[node]])) <= tree.value[node]
            else tree.right[node]
        )
    return tree.accept[node]


@pytest.mark.parametrize("depth", [1, 3, 10, None])
@pytest.mark.parametrize("seed", range(4))
def test_equals_scikit_learn_bit_for_bit_also_next_to_the_thresholds(depth, seed):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(400, 4)), draw.integers(0, 2, 400)
    model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(
        x, y, sample_weight=draw.random(400)
    )
    tree = tree_of(model)
    inner = np.flatnonzero(model.tree_.feature >= 0)
    edges = draw.choice(model.tree_.threshold[inner], size=(400, 4))
    near = np.concatenate(
        [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), edges * (1 + 1e-8), x]
    )
    assert np.array_equal(tree.accepts(near), model.predict(near) == 1)
    assert [walk(tree, row) for row in near[:200]] == tree.accepts(near[:200]).tolist()
    read = hypothesis_from_json(through_text(tree.to_json()))
    assert read == tree
    assert hash(read) == hash(tree)


def test_describe():
    tree = Tree(
        (0, -1, 1, -1, -1),
        (30.5, 0, 2, 0, 0),
        (1, -1, 3, -1, -1),
        (2, -1, 4, -1, -1),
        (True, True, False, False, True),
        2,
    )
    assert (
        tree.describe(["age", "income"]) == "accept if (age <= 30.5) or (age > 30.5 and income > 2)"
    )
    leaf = Tree((-1,), (0.0,), (-1,), (-1,), (True,), 2)
    assert leaf.describe() == "accept everybody"
    assert Tree((-1,), (0.0,), (-1,), (-1,), (False,), 2).describe() == "reject everybody"
    assert leaf.accepts(np.zeros((3, 2))).tolist() == [True] * 3


def test_deep_trees_tell_how_much_they_leave_out():
    draw = np.random.default_rng(0)
    model = DecisionTreeClassifier(random_state=0).fit(
        draw.normal(size=(300, 2)), draw.integers(0, 2, 300)
    )
    assert "other paths" in tree_of(model).describe()


def test_values_beyond_float32_go_right_without_noise():
    tree = Tree((0, -1, -1), (1.0, 0, 0), (1, -1, -1), (2, -1, -1), (False, False, True), 1)
    assert tree.accepts(np.array([[1e300], [-1e300]])).tolist() == [True, False]


def test_wrong_columns_name_both_numbers():
    with pytest.raises(InvalidInput, match=r"3 columns.*2 columns"):
        Tree((-1,), (0.0,), (-1,), (-1,), (True,), 2).accepts(np.zeros((1, 3)))
