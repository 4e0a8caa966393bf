import json

import pytest

from evenhand.errors import InvalidInput
from evenhand.evaluation import PolicyFile
from evenhand.hypotheses import ACCEPT_ALL
from evenhand.policies import Mixture
from evenhand.tables import Notation, RecipeColumn, recipe_to_json

POLICY = Mixture((ACCEPT_ALL,), (1.0,)).to_json()
X = recipe_to_json((RecipeColumn("x", Notation("number")),))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("nonsense", "no JSON"),
        ("[1]", "say"),
        (json.dumps({"policy": POLICY}), "'columns'"),
        (json.dumps({"policy": POLICY, "columns": ["x"]}), "'schema'"),
        (
            json.dumps({"policy": POLICY, "columns": ["x", "y"], **X}),
            "1 columns",
        ),
    ],
)
def test_what_is_no_policy_file(tmp_path, document, message):
    path = tmp_path / "policy.json"
    path.write_text(document)
    with pytest.raises(InvalidInput, match=message):
        PolicyFile.read(path)
    with pytest.raises(InvalidInput, match="policy file"):
        PolicyFile.read(tmp_path / "nowhere.json")


def test_what_a_file_says_about_its_columns(tmp_path):
    path = tmp_path / "policy.json"
    said = {"label": {"column": "ok", "good": "1"}, "group": {"column": "sex", "use": "decide"}}
    prices = {"prices": {"false_accept": "2", "false_reject": "1"}}
    path.write_text(json.dumps({"policy": POLICY, "columns": ["x"], **X, **said, **prices}))
    file = PolicyFile.read(path)
    assert [one.name for one in file.recipe] == ["x"]
    assert (file.label, file.good, file.group, file.uses_group) == ("ok", "1", "sex", True)
    assert file.prices == (2.0, 1.0)
