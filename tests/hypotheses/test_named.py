import pytest

from evenhand.errors import InvalidInput
from evenhand.hypotheses import CLASSES, Estimator, Linear, ScoreThresholds, Stumps


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stumps", Stumps),
        ("thresholds", ScoreThresholds),
        ("linear", Linear),
        ("tree", Estimator),
        ("logistic", Estimator),
    ],
)
def test_a_name_makes_its_class(name, kind):
    assert isinstance(CLASSES[name](), kind)


def test_an_unknown_class_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'forest'.*stumps"):
        CLASSES["forest"]
