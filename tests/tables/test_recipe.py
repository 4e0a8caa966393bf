"""A policy file's recipe is followed to the letter on new tables."""

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.tables import (
    Notation,
    RecipeColumn,
    prepare,
    read_frame,
    read_table,
    recipe_from_json,
    recipe_to_json,
    schema_of,
)

OLD = (
    "pay,joined,owner,town,share,sex,ok\n"
    '"$51,000",13/4/2021,yes,Bern,45%,f,1\n"$48,500",2/1/2021,no,Ulm,5%,m,0\n'
    '"$900",3/1/2021,no,Wien,15%,f,0\n"$1,200",4/1/2021,yes,Bern,25%,m,1\n'
)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "old.csv").write_text(OLD)
    return read_table(
        tmp_path / "old.csv", label="ok", group="sex", encode=True, fewest=0
    ).encoded()


@pytest.fixture
def new(tmp_path):
    def new(text, **how):
        (tmp_path / "new.csv").write_text(text)
        return read_frame(tmp_path / "new.csv", **how)

    return new


def test_the_same_table_gives_the_same_features(table, new):
    stored = recipe_from_json(recipe_to_json(table.recipe))
    assert stored == table.recipe
    np.testing.assert_array_equal(prepare(new(OLD), stored).features, table.features)


def test_what_was_filled_in_is_filled_in_again(tmp_path, new):
    """By the numbers of the first table, whatever the new one holds."""
    (tmp_path / "old.csv").write_text(
        "pay,town,owner,sex,ok\n$10,Bern,y,f,1\n,Ulm,y,m,0\n$30,,n,f,0\n$50,Ulm,,m,1\n"
    )
    named = {"label": "ok", "group": "sex", "encode": True, "fewest": 0}
    table = read_table(tmp_path / "old.csv", **named, fill_missing="all").encoded()
    stored = recipe_from_json(json.loads(json.dumps(recipe_to_json(table.recipe))))
    assert stored == table.recipe
    same = (tmp_path / "old.csv").read_text()
    np.testing.assert_array_equal(prepare(new(same), stored).features, table.features)
    ready = prepare(new("town,pay,owner,more\n,,,x\nUlm,$1000,n,x\n,$5,,x\n"), stored)
    assert table.names == (
        *("pay", "pay missing", "town=Bern", "town=Ulm", "town=missing"),
        *("owner", "owner missing"),
    )
    assert ready.features.tolist() == [
        [30.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        [1000.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        [5.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ]
    assert ready.complete.all()


def test_order_and_notation_may_differ(table, new):
    text = "town;share;owner;pay;joined;more\nbern;45%;Y;51000;2/1/2021;x\n"
    (row,) = prepare(new(text), table.recipe).features.tolist()
    assert row == [51000.0, 18629.0, 1.0, 1.0, 0.0, 0.0, 0.45]  # 2/1 is 2 January, as before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pay,joined,owner,town\n1,1.1.2021,y,Bern\n", "'share'"),
        ("pay,joined,owner,town,share\n1,1.1.2021,y,Rom,5%\n", "'Rom'"),
        ("pay,joined,owner,town,share\n1,1.1.2021,y,Bern,0.05\n", "written"),
        ("pay,joined,owner,town,share\n,1.1.2021,y,Bern,5%\n", "'pay'.*row 1"),
        (
            "pay,joined,owner,town,share\n,1.1.2021,y,Bern,5%\n1,1.1.2021,y,Rom,0.05\n",
            r"(?s)1\. .*'pay'.*2\. .*'Rom'.*3\. .*'share'",
        ),
        ("pay,joined,owner,town,share\n1,later,y,Bern,5%\n", "'later'"),
    ],
)
def test_what_does_not_fit_is_refused(table, new, text, message):
    with pytest.raises(InvalidInput, match=message):
        prepare(new(text), table.recipe)


def test_an_ambiguous_comma_is_read_as_before_only_if_it_was_a_decimal_comma(new):
    text = "x;y\n1,500;a\n2,250;b\n"
    point, comma = ((RecipeColumn("x", Notation("number", decimal=mark)),) for mark in ".,")
    with pytest.raises(InvalidInput, match="'1,500'") as caught:
        prepare(new(text), point)
    assert (caught.value.argument, caught.value.column) == ("decimal", "x")
    assert prepare(new(text, decimal="."), point).features.tolist() == [[1500], [2250]]
    assert prepare(new(text), comma).features.tolist() == [[1.5], [2.25]]
    for recipe in (point, comma):
        with pytest.raises(InvalidInput, match=r"\$ and €"):
            prepare(new("x;y\n$5;a\n€5;b\n"), recipe)


def test_options_settle_it(table, new):
    text = "pay,joined,owner,town,share\n1,1.1.2021,y,Rom,5%\n,1.1.2021,y,Bern,5%\n"
    ready = prepare(new(text), table.recipe, drop_missing=True, unseen="ignore")
    assert ready.complete.tolist() == [True, False]
    assert ready.features[0, 3:6].tolist() == [0, 0, 0]
    assert len(ready.notes) == 2


def test_what_is_no_recipe_is_refused():
    with pytest.raises(InvalidInput, match="recipe"):
        recipe_from_json({"schema": {"columns": []}})


def test_a_recipe_is_stored_as_the_one_schema():
    recipe = (
        RecipeColumn("age", Notation("number", decimal=",")),
        RecipeColumn("owner", Notation("flag")),
        RecipeColumn("sex", None, ("m",), "f"),
        RecipeColumn("city", None, ("Bern", "Ulm", "Wien")),
    )
    written = json.loads(json.dumps(recipe_to_json(recipe)))
    schema = eh.schema.Schema.from_json(written["schema"])
    assert schema == schema_of(recipe)
    assert [column.kind for column in schema.columns] == ["number", "boolean", *["category"] * 2]
    assert schema["sex"].categories == ("f", "m")
    assert recipe_from_json(written) == recipe


@pytest.mark.parametrize(
    ("made", "other", "refused"),
    [
        ("$51,000", "€51,000", True),
        ("$51,000", "EUR 51000", True),
        ("$51,000", "USD 51,000", False),
        ("$51,000", "51000", False),  # no currency is said
        ("51000", "€51000", False),  # none was said when the policy was made
    ],
)
def test_amounts_in_another_currency_are_refused(new, made, other, refused):
    recipe = (RecipeColumn("x", new(f"x;y\n{made};a\n").columns["x"].notation),)
    recipe = recipe_from_json(json.loads(json.dumps(recipe_to_json(recipe))))
    table = new(f"x;y\n{other};a\n")
    if refused:
        with pytest.raises(InvalidInput, match=r"EUR.*USD"):
            prepare(table, recipe)
    else:
        assert prepare(table, recipe).features.tolist() == [[51_000.0]]
