"""The user's own table: what is accepted, and how everything else is refused with its way out."""

import numpy as np
import pandas
import pytest

from evenhand.errors import BadLabel, EvenhandError, InvalidInput, MissingColumn, SeveralErrors
from evenhand.tables import (
    Frame,
    TableColumn,
    data_warnings,
    describe,
    read_description,
    read_frame,
    read_table,
    two_values,
)
from evenhand.tables.values import DECISION

BASIC = 'path = "loans.csv"\nlabel = "repaid"\ngood = "yes"\ngroup = "sex"\n'


def rows(count=80, **changes):
    """A table with two groups, both outcomes in each; `changes` replace the value of a column in
    row 0.
    """
    rng, lines = np.random.default_rng(0), []
    for i in range(count):
        row = {
            "id": str(i),
            "income": f"{rng.normal():.3f}",
            "sex": "fm"[i % 2],
            "repaid": ("no", "yes")[(i // 2) % 2],
        }
        lines.append({**row, **changes} if i == 0 else row)
    return lines


@pytest.fixture
def made(tmp_path):
    """Writes table and description, and loads them."""

    def write(table, text=BASIC + 'id = "id"\n'):
        header = list(table[0])
        body = [",".join(row[name] for name in header) for row in table]
        (tmp_path / "loans.csv").write_text("\n".join([",".join(header), *body]) + "\n")
        (tmp_path / "loans.toml").write_text(text)
        return read_table(tmp_path / "loans.toml").encoded()

    return write


def test_a_plain_table(made):
    table = made(rows())
    assert table.name == "loans"
    assert table.names == ("income",)
    assert len(table) == 80
    assert set(table.group) == {"f", "m"}
    assert (table.label == 1).sum() == 40


def test_a_parquet_file_reads_the_same(made, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    first = made(rows())
    columns = {name: [row[name] for row in rows()] for name in rows()[0]}
    columns["income"] = [float(value) for value in columns["income"]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "loans.parquet")
    (tmp_path / "loans.toml").write_text(BASIC.replace(".csv", ".parquet") + 'id = "id"\n')
    second = read_table(tmp_path / "loans.toml").encoded()
    np.testing.assert_array_equal(first.features, second.features)
    assert first.group.tolist() == second.group.tolist()


REFUSED = [
    ("a constant label", rows(), BASIC.replace('"yes"', '"maybe"'), "'maybe'"),
    (
        "every row is good",
        [{**row, "repaid": "yes"} for row in rows()],
        BASIC,
        "both",
    ),
    (
        "a third value",
        rows(repaid="partly"),
        BASIC,
        "'no', 'partly'",
    ),
    (
        "no good value named",
        rows(),
        BASIC.replace('good = "yes"\n', ""),
        "good outcome",
    ),
    (
        "a missing label",
        rows(repaid=""),
        BASIC,
        "1 of 80 rows.*unlabelled",
    ),
    (
        "a missing group",
        rows(sex=""),
        BASIC,
        "'sex'.*1 of 80 rows.*line 2",
    ),
    (
        "a label missing everywhere",
        [{**row, "repaid": ""} for row in rows()],
        BASIC + 'unlabelled = "drop"\n',
        "every row",
    ),
    ("text in a column of numbers", rows(income="3x5"), BASIC, "'income' .*79 .*'3x5'"),
    ("a missing feature", rows(income="NA"), BASIC, "'income' in 1 of 80.*row 1 .*fill_missing"),
    (
        "a text column",
        [{**row, "income": ("high", "low")[i % 2]} for i, row in enumerate(rows())],
        BASIC,
        "'income' .*'high'.*encode",
    ),
    ("one row", rows(1), BASIC, "one row"),
    (
        "a group of five",
        rows() + rows(5)[:0] + [{**row, "sex": "x"} for row in rows(5)],
        BASIC,
        "'x' has 5",
    ),
    ("one group", [{**row, "sex": "f"} for row in rows()], BASIC, "group 'f'"),
    ("ids that repeat", rows(id="7"), BASIC + 'id = "id"\n', "id '7'"),
    ("the label as a feature", rows(), BASIC + 'features = ["repaid"]\n', "features"),
    ("an unknown key", rows(), BASIC + 'colour = "red"\n', "'colour'"),
    ("a wrong kind", rows(), BASIC + 'encode = "yes"\n', "true or false"),
    ("no label named", rows(), 'path = "loans.csv"\ngroup = "sex"\n', "'label'"),
    (
        "a column that is not there",
        rows(),
        BASIC.replace('"sex"', '"gender"'),
        "'gender'",
    ),
    ("label and group the same", rows(), BASIC.replace('"sex"', '"repaid"'), "two columns"),
    ("no TOML", rows(), "path = loans", "cannot be read as a description"),
    (
        "a file that is not there",
        rows(),
        BASIC.replace("loans.csv", "other.csv"),
        "there is no file",
    ),
    ("an unknown way with missing labels", rows(), BASIC + 'unlabelled = "keep"\n', 'it is "drop"'),
]


@pytest.mark.parametrize(
    ("table", "text", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refusals_name_the_thing_and_the_way_out(made, table, text, message):
    with pytest.raises(EvenhandError, match="(?s)" + message) as refused:
        made(table, text)
    if "true or false" not in message and "does not occur" not in message:
        assert refused.value.hint, "every refusal has a way out"


def test_kinds_of_errors(made):
    with pytest.raises(BadLabel):
        made(rows(repaid="partly"))
    with pytest.raises(MissingColumn):
        made(rows(), BASIC.replace('"sex"', '"gender"'))


def test_rejected_people_without_labels_are_left_out_on_demand_and_it_is_said(made):
    table = made(rows(repaid=""), BASIC + 'unlabelled = "drop"\nid = "id"\n')
    assert len(table) == 79
    assert "1 person without a label was left out" in str(table.notes[0])
    assert table.notes[0].kind == "people without a label"


def done(table):
    """What was done to the rows: the notes without the one about whose outcomes they hold."""
    return [note for note in table.notes if note.kind != "outcomes of all"]


DECIDED = [{**row, "granted": "yes"} for row in rows()]
MIXED = [{**row, "granted": ("yes", "no")[i % 2]} for i, row in enumerate(rows())]


@pytest.mark.parametrize(
    ("people", "more", "words"),
    [
        (rows(), "", "if these are the people who were accepted, every figure speaks of accepted"),
        (DECIDED, 'leave_out = ["granted"]\n', "accepted ('granted' is yes for all), every figure"),
        (DECIDED, 'decision = "granted"\n', "and 'granted' is yes for all: every figure speaks of"),
        (MIXED, 'decision = "granted"\n', None),
        (rows(repaid=""), 'unlabelled = "drop"\n', None),
    ],
)
def test_a_table_in_which_everybody_has_an_outcome_says_whom_it_speaks_of(
    made, people, more, words
):
    """It may hold the accepted alone: rows of the rejected removed, not cells emptied."""
    notes = made(people, BASIC + 'id = "id"\n' + more).notes
    said = [str(note) for note in notes if note.kind == "outcomes of all"]
    assert len(said) == (words is not None)
    assert words is None or words in said[0]


def test_rows_with_missing_values_are_left_out_on_demand(made):
    table = made(rows(income=""), BASIC + 'drop_missing = true\nid = "id"\n')
    assert len(table) == 79
    (note,) = done(table)
    assert "1 row with a missing value" in str(note)
    assert note.kind == "missing values"


def gappy(gaps):
    """A table in which so many rows lack an income, and every tenth the city."""
    return [
        {
            **row,
            "income": "" if i < gaps else row["income"],
            "city": "" if i % 10 == 0 else ("Bern", "Ulm")[i % 3 == 0],
            "owner": ("yes", "no", "n/a")[i % 3],
        }
        for i, row in enumerate(rows())
    ]


FILLED = BASIC + 'id = "id"\nencode = true\nfill_missing = "all"\n'


def test_what_is_missing_is_filled_in_on_demand_and_marked(made):
    table = made(gappy(5), FILLED)
    assert len(table) == 80
    assert table.names == (
        *("income", "income missing", "city=Bern", "city=Ulm", "city=missing"),
        *("owner", "owner missing"),
    )
    given = [float(row["income"]) for row in gappy(5) if row["income"]]
    assert set(table.features[:5, 0]) == {np.median(given)}
    assert table.features[:, 1].tolist() == [1.0] * 5 + [0.0] * 75
    assert table.features[:, 4].sum() == 8
    # of yes and no the more frequent one, not one half: 27 rows say yes, 27 no
    assert set(table.features[:, 5]) == {0.0, 1.0}
    assert table.gaps.per_column == {"owner": 26, "city": 8, "income": 5}
    assert table.sources == (
        *("income", "income", "city", "city", "city"),
        *("owner", "owner"),
    )
    assert {note.column for note in table.notes if note.kind == "filled"} == {
        *("income", "city", "owner"),
    }


def test_some_columns_are_filled_in_and_rows_that_lack_others_left_out(made):
    text = BASIC + 'id = "id"\nencode = true\nfill_missing = ["income", "owner"]\n'
    table = made(gappy(5), text + "drop_missing = true\n")
    assert len(table) == 72
    assert "income missing" in table.names
    assert "city=missing" not in table.names


def test_people_without_a_group_may_be_a_group(made):
    several = [{**row, "sex": "" if i % 4 == 0 else row["sex"]} for i, row in enumerate(rows())]
    text = BASIC + 'id = "id"\nfewest = 0\n'
    table = made(several, text + 'fill_missing = ["sex"]\n')
    assert set(table.group) == {"f", "m", "missing"}


GROUPLESS = [{**row, "sex": "" if i % 4 == 0 else row["sex"]} for i, row in enumerate(rows())]


@pytest.mark.parametrize("filled", ['"all"', '["all", "sex"]', '["sex", "all"]'])
def test_all_fills_the_group_too(made, filled):
    table = made(GROUPLESS, BASIC + f'id = "id"\nfewest = 0\nfill_missing = {filled}\n')
    assert set(table.group) == {"f", "m", "missing"}
    assert len(table) == 80


def test_people_without_a_group_are_left_out_where_all_else_is_filled(made):
    several = [
        {**row, "income": "" if i % 8 == 1 else row["income"]} for i, row in enumerate(GROUPLESS)
    ]
    table = made(
        several, BASIC + 'id = "id"\nfewest = 0\nfill_missing = "all"\ndrop_missing = true\n'
    )
    assert set(table.group) == {"f", "m"}
    assert len(table) == 60
    assert "income missing" in table.names


def test_a_column_of_identifiers_is_recognised(tmp_path):
    path = tmp_path / "loans.csv"
    lines = [f"K-{i},{i % 2},{'fm'[i // 2 % 2]},{i / 7}" for i in range(100)]
    path.write_text("\n".join(["number,repaid,sex,income", *lines]))
    with pytest.raises(InvalidInput, match="seems to name them") as caught:
        read_table(path, label="repaid", group="sex", encode=True).encoded()
    assert caught.value.column == "number"
    assert caught.value.remedies == ("id", "leave_out")
    assert len(read_table(path, label="repaid", group="sex", id="number")) == 100


def test_the_value_of_one_decision_settles_the_other(tmp_path):
    path = tmp_path / "stops.csv"
    path.write_text("cited,late\nYES,a\nNO,b\nNO,c\n")
    frame = read_frame(path)
    decided, value = two_values(frame, "cited", None, ("YES",), DECISION)
    assert (decided.tolist(), value) == ([-1.0, 1.0, 1.0], "NO")
    with pytest.raises(BadLabel, match="say which of its values"):
        two_values(frame, "late", None, ("a",), DECISION)


def test_zero_may_be_the_acceptance(tmp_path):
    path = tmp_path / "fines.csv"
    path.write_text("fined\n1\n0\n0\n")
    decided, value = two_values(read_frame(path), "fined", None, ("1",), DECISION)
    assert (decided.tolist(), value) == ([-1.0, 1.0, 1.0], "0")


def test_a_warning_is_loud_where_a_fifth_of_the_rows_goes(made):
    text = BASIC + 'id = "id"\nleave_out = ["city", "owner"]\ndrop_missing = true\nfewest = 0\n'
    (warning,) = data_warnings(made(gappy(17), text))
    assert warning.kind == "rows left out"
    assert warning.text.startswith("17 of 80 rows (21%) were left out")
    assert "'income' in 17 of 80 rows (21.2%)" in warning.text
    assert data_warnings(made(gappy(16), text)) == ()


@pytest.mark.parametrize("name", ["repaid", "shoe size"])
def test_outcomes_are_never_made_up(made, name):
    with pytest.raises(InvalidInput, match=f"fill_missing names '{name}'"):
        made(rows(), BASIC + f'fill_missing = ["{name}"]\n')


def test_a_column_without_any_value_is_an_error_even_where_it_is_filled(made):
    with pytest.raises(InvalidInput, match=r"'income' has no value in any of 80 rows"):
        made([{**row, "income": ""} for row in rows()], FILLED)


def test_a_mark_does_not_take_the_name_of_a_column(made):
    table = [{**row, "income missing": "1"} for row in rows(income="")]
    with pytest.raises(InvalidInput, match="would be marked in the column 'income missing'"):
        made(table, FILLED)


def test_all_errors_about_a_file_are_raised_at_once(made):
    wrong = [
        {
            **row,
            "id": "7",
            "income": "" if i == 3 else row["income"],
            "repaid": "partly" if i == 5 else row["repaid"],
            "street": f"street {i}",
            "city": ("Bern", "Ulm")[i % 2],
        }
        for i, row in enumerate(rows())
    ]
    with pytest.raises(SeveralErrors) as caught:
        made(wrong)
    said = [error.message for error in caught.value.errors]
    for part, text in zip(
        (
            "the id '7' occurs more than once",
            "'income' in 1 of 80 rows",
            "besides 'yes' the label 'repaid' has the values 'no', 'partly'",
            "'street' holds another text for each of 80 people",
            "'city' (for example 'Bern') is not numeric",
        ),
        said,
        strict=True,
    ):
        assert part in text
    assert all(error.hint for error in caught.value.errors)
    assert set(caught.value.remedies) >= {"id", "fill_missing", "bad", "leave_out", "encode"}


def test_several_outcomes_may_be_good(made):
    paid = [
        {**row, "repaid": ("Paid", "Current", "Late", "Lost")[i // 2 % 4]}
        for i, row in enumerate(rows())
    ]
    text = BASIC.replace('good = "yes"', 'good = {}\nbad = ["Late", "Lost"]\nid = "id"')
    as_text = made(paid, text.replace("{}", '"Paid, Current"'))
    as_list = made(paid, text.replace("{}", '["Paid", "Current"]'))
    assert (as_text.label == 1).sum() == 40
    assert as_text.label.tolist() == as_list.label.tolist()
    with pytest.raises(BadLabel, match="'Late' is named as good and as bad"):
        made(paid, text.replace("{}", '"Paid,Late"'))
    with pytest.raises(BadLabel, match=r"besides 'Paid'.*Hint: name every value that counts as go"):
        made(paid, BASIC.replace('"yes"', '"Paid"') + 'id = "id"\n')
    with pytest.raises(InvalidInput, match="'Gone' does not occur"):
        made(paid, text.replace("{}", '"Paid,Gone"'))


def test_an_outcome_with_a_comma_is_one_value(made):
    commas = [{**row, "repaid": {"yes": "yes; late", "no": "no"}[row["repaid"]]} for row in rows()]
    table = read_table(
        pandas.DataFrame(commas).replace("yes; late", "yes, late"),
        label="repaid",
        good="yes, late",
        group="sex",
        features=("income",),
    )
    assert (table.label == 1).sum() == 40
    assert table.good == "yes, late"


def test_text_columns_are_encoded_on_demand_and_it_is_said(made):
    coded = [{**row, "city": ("x", "y", "z")[i % 3]} for i, row in enumerate(rows())]
    table = made(coded, BASIC + 'encode = true\nid = "id"\n')
    assert table.names == ("income", "city=x", "city=y", "city=z")
    (note,) = done(table)
    assert "'city' became 3 columns" in str(note)
    assert (note.kind, note.column) == ("encoded", "city")


def test_rows_without_a_group_are_left_out_on_demand(made):
    table = made(rows(sex=""), BASIC + 'drop_missing = true\nid = "id"\n')
    assert len(table) == 79
    assert "1 row with a missing value was left out" in map(str, table.notes)


def test_a_column_that_may_name_people_is_reported_and_not_guessed_away(made):
    table = made(rows(), BASIC)
    assert table.names == ("id", "income")
    (note,) = done(table)
    assert (note.kind, note.column, note.remedies) == ("identifier", "id", ("id", "leave_out"))
    assert done(made(rows(), BASIC + 'id = "id"\n')) == []


def test_bad_values_may_be_several(made):
    table = made(rows(repaid="partly"), BASIC + 'bad = ["no", "partly"]\nid = "id"\n')
    assert table.label[0] == -1


def test_groups_may_be_chosen(made):
    more = rows() + [{**row, "sex": "x"} for row in rows(5)]
    assert set(made(more, BASIC + 'groups = ["f", "m"]\n').group) == {"f", "m"}


def test_a_decision_column_is_never_a_feature(made):
    told = [{**row, "granted": "1"} for row in rows()]
    assert made(told, BASIC + 'id = "id"\ndecision = "granted"\n').names == ("income",)


def test_a_csv_is_no_description(tmp_path):
    (tmp_path / "loans.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="label"):
        read_table(tmp_path / "loans.csv")


def test_paths_are_relative_to_the_description(tmp_path):
    (tmp_path / "loans.toml").write_text(BASIC)
    assert read_description(tmp_path / "loans.toml").path == tmp_path / "loans.csv"


@pytest.mark.parametrize(
    ("values", "meaning", "expected"),
    [
        ("0101", {}, [-1, 1, -1, 1]),
        (["-1", "1"], {}, [-1, 1]),
        (["0.0", "1.0"], {}, [-1, 1]),
        (["0.0", "1.0"], {"good": "0"}, [1, -1]),
        (["1", "1.0", "0"], {"good": "1"}, [1, 1, -1]),
        (["yes", "no", "late"], {"good": "yes", "bad": ("no", "late")}, [1, -1, -1]),
        (["yes", "", "no"], {"good": "yes", "unlabelled": "drop"}, [1, -1]),
        (["yes", "none", "no"], {"good": "yes", "bad": ("no", "none"), "missing": ()}, [1, -1, -1]),
    ],
)
def test_labels(tmp_path, values, meaning, expected):
    path = tmp_path / "y.csv"
    path.write_text("x,g,y\n" + "".join(f"1,{'ab'[i % 2]},{y}\n" for i, y in enumerate(values)))
    if len(expected) < len(values):  # the second row, the only one of group b, is left out
        path.write_text(path.read_text() + "1,b,no\n")
        expected = [*expected, -1]
    frame = read_table(path, label="y", group="g", fewest=0, **meaning)
    assert frame.label.tolist() == expected
    assert frame.label.dtype == np.int64


@pytest.mark.parametrize("values", ["12", "23", ["yes", "no"], ["1", "1.0", "0"]])
def test_labels_are_never_guessed(tmp_path, values):
    path = tmp_path / "y.csv"
    path.write_text("x,g,y\n" + "".join(f"1,{'ab'[i % 2]},{y}\n" for i, y in enumerate(values)))
    with pytest.raises(BadLabel) as caught:
        read_table(path, label="y", group="g", fewest=0)
    assert (caught.value.argument, caught.value.column) == ("good", "y")


def test_missing_values_matter_in_used_columns_only(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,z,g,y\n1,,a,1\n?,2,b,0\n3,NaN,b,0\n")
    common = {"label": "y", "group": "g", "features": ("x",), "fewest": 0}
    with pytest.raises(InvalidInput, match=r"'x'.*row 2 \(line 3\)"):
        read_table(path, **common)
    frame = read_table(path, **common, drop_missing=True)
    assert frame.frame["x"].texts == ("1", "3")
    assert frame.dropped == 1
    with pytest.raises(InvalidInput, match=r"'z'.*row 1"):
        read_table(
            path,
            **{**common, "features": ("x",)},
            needed=("z",),
            drop_missing=False,
            missing=("NaN",),
        )


def test_a_frame_of_another_library_is_a_table():
    pandas = pytest.importorskip("pandas")
    columns = {name: [row[name] for row in rows()] for name in ("income", "sex", "repaid")}
    columns["income"] = [float(value) for value in columns["income"]]
    table = read_table(pandas.DataFrame(columns), label="repaid", good="yes", group="sex").encoded()
    assert table.features[:, 0].tolist() == columns["income"]
    with pytest.raises(BadLabel, match="label"):
        read_table(pandas.DataFrame(columns), label="repaid", group="sex")


def test_what_is_said_comes_before_the_description(made, tmp_path):
    made(rows(income=""), BASIC + "drop_missing = true\nfewest = 3\n")
    path = tmp_path / "loans.toml"
    assert read_table(path).features == ("id", "income")
    assert read_table(path, features=("id",), fewest_by_default=40).features == ("id",)
    with pytest.raises(InvalidInput, match="40"):
        read_table(path, fewest=40)


def test_what_is_said_comes_before_what_a_name_says(made, tmp_path):
    made(rows())
    assert read_table("lending", features=("income",)).encoded().names == ("income",)
    with pytest.raises(MissingColumn, match="'age'"):
        read_table("lending", features=("age",))
    assert describe("lending", encode=True).encode is True
    assert describe(tmp_path / "loans.toml", encode=True).encode is True
    assert describe(tmp_path / "loans.toml", encode=False) == describe(tmp_path / "loans.toml")


def test_the_smallest_group_may_be_asked_for(made):
    more = rows() + [{**row, "sex": "x"} for row in rows(8)]
    assert set(made(more, BASIC + "fewest = 4\n").group) == {"f", "m", "x"}


class TestFromPython:
    """The fields of a description are checked wherever they come from."""

    FRAME = pandas.DataFrame(rows())

    def test_a_truth_value_is_a_label_like_any_other(self):
        frame = self.FRAME.assign(repaid=self.FRAME["repaid"] == "yes")
        read = read_table(frame, label="repaid", group="sex", good=True, leave_out="id")
        assert (read.label == np.where(frame["repaid"], 1, -1)).all()
        assert read.features == ("income",)
        numbers = self.FRAME.assign(repaid=np.where(self.FRAME["repaid"] == "yes", 1, 2))
        again = read_table(numbers, label="repaid", group="sex", good=1, leave_out=["id"])
        assert (again.label == read.label).all()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"label": "repaid", "group": "sex", "goood": "yes"}, "'goood'"),
            ({"group": "sex"}, "label"),
            ({"label": "repaid", "group": "sex", "good": {}}, "good is {}"),
            ({"label": "repaid", "group": "sex", "encode": "yes"}, "true or false"),
        ],
    )
    def test_what_is_not_understood_is_refused(self, given, message):
        with pytest.raises(InvalidInput, match=message):
            read_table(self.FRAME, **given)


class TestOneValueAlone:
    """A column of rejections alone is one; nothing is guessed from the alphabet."""

    @staticmethod
    def frame(*cells):
        return Frame("toy", {"d": TableColumn(cells)}, tuple(range(2, 2 + len(cells))))

    @pytest.mark.parametrize("cells", [("0", "0"), ("-1", "-1")])
    def test_nobody_is_accepted(self, cells):
        assert two_values(self.frame(*cells), "d", None, words=DECISION)[0].tolist() == [-1, -1]

    def test_the_value_that_does_not_occur_may_be_named_beside_the_others(self):
        values, first = two_values(self.frame("no", "No"), "d", "yes", ("no",), DECISION)
        assert (values.tolist(), first) == ([-1, -1], "yes")
        with pytest.raises(InvalidInput) as caught:
            two_values(self.frame("no", "No"), "d", "yes", (), DECISION)
        assert (caught.value.argument, caught.value.value) == ("accepted", "'yes'")

    def test_the_way_out_recommends_no_value(self):
        with pytest.raises(BadLabel) as refused:
            two_values(self.frame("employed", "quit"), "d", None)
        assert "for example" not in str(refused.value)
        assert refused.value.argument == "good"


def test_a_feature_that_is_left_out_is_named(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("sex,repaid,score,age\n" + "f,1,3,40\nm,0,2,30\n" * 20)
    with pytest.raises(InvalidInput, match="score is left out") as raised:
        read_table(path, label="repaid", group="sex", features=("score",), leave_out=("score",))
    assert raised.value.argument == "leave_out"
