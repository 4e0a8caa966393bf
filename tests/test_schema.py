"""Schemas: what a frame becomes, whatever library it comes from, and what is refused at the border.

Attacks: columns reordered, renamed, missing, unknown, doubled; values of another kind, missing,
unseen, too long, too large; codes that no frame has.
"""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InvalidInput, NotFinite
from evenhand.schema import MISSING, Column, Schema, is_frame

LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(params=list(LIBRARIES))
def library(request):
    return LIBRARIES[request.param]


def people():
    return pd.DataFrame(
        {
            "age": [31, 40, 22],
            "income": [30.5, np.nan, -0.0],
            "share": np.array([0.1, 0.2, 0.3], np.float32),
            "visits": pd.array([1, None, 3], dtype="Int64"),
            "city": ["Oslo", None, "Zürich"],
            "tenure": pd.Categorical(["rents", "owns", "rents"], ["owns", "rents", "other"]),
            "owner": [True, False, True],
            "smokes": pd.array([True, None, False], dtype="boolean"),
        }
    )


def test_all_libraries_give_the_same_rows_and_nearly_the_same_schema(library):
    schema, frame = Schema.of(people()), library(people())
    assert is_frame(frame)
    assert np.array_equal(schema.encode(frame), schema.encode(people()))
    own = Schema.of(frame)
    kinds = [(column.name, column.kind, column.missing) for column in schema.columns]
    assert [(column.name, column.kind, column.missing) for column in own.columns] == kinds
    assert own.frame(own.encode(frame))["city"].tolist()[::2] == ["Oslo", "Zürich"]


def test_a_frame_comes_back_with_names_types_categories_and_missing_values():
    frame, schema = people(), Schema.of(people())
    back = schema.frame(schema.encode(frame))
    wanted = frame.assign(visits=frame["visits"].astype("float64"))  # NaN has no whole number
    pd.testing.assert_frame_equal(back, wanted)
    assert back["tenure"].cat.categories.tolist() == ["owns", "rents", "other"]


def test_every_code_is_finite_and_reversed_columns_change_nothing(library):
    schema, frame = Schema.of(people()), people()
    rows = schema.encode(library(frame))
    assert np.isfinite(rows).all()
    assert np.array_equal(schema.encode(library(frame[frame.columns[::-1]])), rows)
    assert not np.signbit(rows[2, schema.places["income"]]).any()  # -0.0 is 0.0


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "number": st.none() | st.floats(-1e15, 1e15) | st.integers(-(2**53), 2**53),
                "whole": st.integers(-(2**31), 2**31 - 1),
                "truth": st.none() | st.booleans(),
                "category": st.none() | st.sampled_from(["x", "y", ""]),
                "grade": st.sampled_from([1, 2.5]),
                "text": st.none()
                | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10),
            }
        ),
        min_size=1,
        max_size=8,
    )
)
def test_records_come_back_as_they_were(records):
    schema = Schema(
        (
            Column("number", missing=True),
            Column("whole", dtype="int32"),
            Column("truth", "boolean", missing=True),
            Column("category", "category", ("x", "y", ""), missing=True),
            Column("grade", "category", (1, 2.5)),
            Column("text", "text", missing=True, length=40),
        )
    )
    rows = schema.encode(records)
    assert np.isfinite(rows).all()
    assert schema.records(rows) == records
    again = schema.encode(json.loads(json.dumps(schema.records(rows))))
    assert np.array_equal(again, rows)
    assert np.array_equal(schema.encode(schema.frame(rows)), rows)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=20))
def test_different_texts_have_different_codes(texts):
    longest = max([1, *(len(text.encode()) for text in texts)])
    column = Column("remark", "text", length=longest)
    codes = {tuple(column.encode([text])[0]) for text in texts}
    assert len(codes) == len(set(texts))


def renamed(frame):
    return frame.rename(columns={"income": "Income"})


ATTACKS = {
    "renamed": (renamed, "'income'.*'Income'"),
    "missing": (lambda frame: frame.drop(columns="city"), "'city'"),
    "unknown": (lambda frame: frame.assign(id=1), "'id'"),
    "text for a number": (lambda frame: frame.assign(age=list("abc")), r"'age' is 'a'.*row 0"),
    "truth for a number": (lambda frame: frame.assign(age=[True] * 3), r"'age' is True in row 0"),
    "number for a text": (lambda frame: frame.assign(city=[1, 2, 3]), r"'city' is 1 in row 0"),
    "number for truth": (lambda frame: frame.assign(owner=[1, 0, 1]), r"'owner' is 1 in row 0"),
    "half a year": (lambda frame: frame.assign(age=[1.5, 2, 3]), r"1\.5 .*whole"),
    "infinite": (lambda frame: frame.assign(income=[1, np.inf, 2.0]), r"'income' is inf in row 1"),
    "the code itself": (lambda frame: frame.assign(income=MISSING), "code"),
    "not float64": (lambda frame: frame.assign(income=[2**60 + 1] * 3), "float64"),
    "missing number": (lambda frame: frame.assign(age=[1, None, 3]), "'age'.*missing.*row 1"),
    "unseen": (
        lambda frame: frame.assign(tenure=["owns", "squats", "rents"]),
        "'tenure'.*'squats'.*row 1.*'owns', 'rents', 'other'",
    ),
    "too long": (lambda frame: frame.assign(city="x" * 121), "120.*length=242"),
    "NUL": (lambda frame: frame.assign(city="a\0"), "NUL"),
    "a date": (lambda frame: frame.assign(age=pd.Timestamp("2020-01-01")), "Datetime"),
    "a list": (lambda frame: frame.assign(age=[[1], [2], [3]]), r"'age'"),
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_what_is_wrong_is_refused_by_a_sentence(attack, library):
    change, sentence = ATTACKS[attack]
    with pytest.raises(InvalidInput, match=sentence):
        Schema.of(people()).encode(library(change(people())))


def test_two_columns_of_one_name_are_refused():
    doubled = people()[["age", "age"]]
    with pytest.raises(InvalidInput, match="'age'"):
        Schema.of(doubled)
    with pytest.raises(InvalidInput, match="'age'"):
        Schema(("age", "age"))


def test_an_unseen_category_counts_as_missing_if_the_schema_says_so(library):
    schema = Schema.of(people()).changed("tenure", unseen="missing")
    rows = schema.encode(library(people().assign(tenure=["owns", "squats", "rents"])))
    assert [one["tenure"] for one in schema.records(rows)] == ["owns", None, "rents"]


def test_truth_is_no_number_among_categories():
    grades = Column("grade", "category", (0, 1))
    assert grades.encode([1, 0, 1.0])[:, 0].tolist() == [1, 0, 1]
    for wrong in ([True, 1], [1, True]):
        with pytest.raises(InvalidInput, match="True"):
            grades.encode(wrong)
    with pytest.raises(InvalidInput, match="'1'"):
        grades.encode(["1"])


def test_codes_that_no_frame_has_are_refused():
    schema = Schema.of(people())
    rows = schema.encode(people())
    for name, code in (("tenure", 3.0), ("tenure", 0.5), ("owner", 2.0), ("city", -1.0)):
        wrong = rows.copy()
        wrong[1, schema.places[name].start] = code
        with pytest.raises(InvalidInput, match=f"'{name}'.*row 1"):
            schema.frame(wrong)
    with pytest.raises(NotFinite):
        schema.checked(np.where(rows == MISSING, np.nan, rows))
    with pytest.raises(InvalidInput, match="numbers each"):
        schema.checked(rows[:, 1:])
    with pytest.raises(NotFinite, match="'age'"):
        schema.checked(np.where(rows == 31, MISSING, rows))


def test_a_row_of_zeros_is_a_person():
    """An erased person is a row of zeros, which models may be shown."""
    schema = Schema.of(people())
    [nobody] = schema.records(np.zeros((1, schema.width)))
    assert (nobody["city"], nobody["age"]) == ("", 0)


def test_kinds_that_are_not_clear_are_refused():
    with pytest.raises(InvalidInput):
        Schema.of(pl.DataFrame({"x": [None, None]}))
    with pytest.raises(InvalidInput, match="int, str"):
        Schema.of(pd.DataFrame({"x": np.array([1, "a"], dtype=object)}))
    with pytest.raises(InvalidInput, match="texts"):
        is_frame(pd.DataFrame([[1, 2]], columns=["a", 1]))
    with pytest.raises(InvalidInput, match="ndarray"):
        Schema.of(np.zeros((1, 1)))
    assert not is_frame(pd.DataFrame([[1, 2]]))  # names that are numbers are none
    assert not is_frame({"a": [1]})
    with pytest.raises(InvalidInput):
        Schema.of(pl.DataFrame({"a": [1]}).lazy())


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"kind": "date"}, "number, boolean"),
        ({"kind": "category"}, "values of a category"),
        ({"categories": ("a",)}, "values of a category"),
        ({"kind": "category", "categories": ("a", "a")}, "once"),
        ({"kind": "category", "categories": ("a", 1)}, "finite numbers"),
        ({"kind": "category", "categories": (True, False)}, "finite numbers"),
        ({"missing": 1}, "True or False"),
        ({"unseen": "guess"}, "refuse"),
        ({"unseen": "missing"}, "category"),
        ({"length": 0}, "at least 1"),
        ({"dtype": "int128"}, "float64"),
        ({"name": 3}, "a text"),
    ],
)
def test_columns_that_contradict_themselves_are_refused(parts, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Column(**{"name": "x", **parts})


def test_stored_schemas_are_checked_again():
    for wrong in ({}, {"columns": [{"kind": "text"}]}, {"columns": [{"name": "x", "size": 3}]}):
        with pytest.raises(InvalidInput, match="malformed"):
            Schema.from_json(wrong)
    with pytest.raises(InvalidInput):
        Schema.from_json({"columns": []})


def test_the_hash_is_that_of_all_parts():
    schema = Schema.of(people())
    others = [
        schema.changed("age", missing=True),
        schema.changed("city", length=200),
        schema.changed("tenure", ordered=True),
        Schema(schema.columns[::-1]),
    ]
    assert len({schema.sha256, *(other.sha256 for other in others)}) == 5
    assert schema.sha256 == Schema.of(people()).sha256
    with pytest.raises(InvalidInput, match="colour"):
        schema.changed("age", colour="red")
    with pytest.raises(InvalidInput, match="'Age'"):
        schema.changed("Age", missing=True)


def test_plain_schemas_are_what_the_frame_holds():
    frame = people()[["age", "share", "owner"]]
    schema = Schema.of(frame)
    assert schema.plain
    assert schema.slots == schema.names
    assert np.array_equal(schema.encode(frame), frame.to_numpy(dtype=np.float64))
    with pytest.raises(InvalidInput, match=r"Stumps.*city"):
        Schema.of(people()).require_plain("Stumps")


def test_numbers_round_as_their_type_does():
    schema = Schema((Column("share", dtype="float32"),))
    rows = schema.encode(pd.DataFrame({"share": [0.1]}))
    assert rows[0, 0] == np.float32(0.1)
    assert schema.frame(rows)["share"].dtype == np.float32
