"""Messy files: they are read to the same people as the tidy file where nothing is lost, or are an
error whose message names options that the command has.

All commands read with one reader, so each kind of file is tried on the reader and on `solve`; the
other commands are called once, to see that they hand their options on.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from evenhand.cli import main
from evenhand.tables import read_table

MEANING = ("--label", "repaid", "--good", "yes", "--group", "sex", "--features", "income,visits")
TABLE = (*MEANING, "--limit", "0.3")
COMMANDS = {
    "solve": ("solve", "{}", *TABLE),
    "frontier": ("frontier", "{}", *TABLE, "--limits", "0.3", "--out", "f.svg"),
    "plan": ("plan", "--data", "{}", *TABLE, "--people", "300", "--runs", "1"),
    "study": (
        *("study", "{}", *TABLE, "--learner", "accept-all", "--class", "stumps"),
        *("--rounds", "50", "--seeds", "1", "--jobs", "1", "--out", "s"),
    ),
    "data show": ("data", "show", "{}", *MEANING),
    "measure": (
        *("measure", "{}", "--decision", "approved", "--accepted", "yes", "--group", "sex"),
        *("--outcome", "repaid", "--good", "yes"),
    ),
    "evaluate": (
        *("evaluate", "{}", "--policy", "accept-all", "--column", "accept=approved"),
        *("--column", "label=repaid", "--column", "group=sex", "--good", "yes"),
        *("--features", "income,visits", "--limit", "0.3"),
    ),
    "apply": ("apply", "{policy}", "{}"),
    "test": ("test", "{policy}", "{}"),
}
FOLLOWING = ("apply", "test")
"""Commands that read a table as the policy's table was read."""
HEADER = ("income", "visits", "sex", "repaid", "approved", "acceptance")


def people(count=80, **changes):
    """Rows of texts; a callable in `changes` says what stands in row i instead of the old value."""
    for i in range(count):
        row = {
            "income": str(20_000 + i * 37 % 50 * 1000),
            "visits": str(i % 3),
            "sex": "fm"[i % 2],
            "repaid": ("no", "yes")[(i // 2 + i * 7 % 3) % 2],
            "approved": ("yes", "no")[i % 5 == 0],
            "acceptance": "0.5",
        }
        yield [
            str(change(i, row[name])) if (change := changes.get(name)) else row[name]
            for name in row
        ]


def text(delimiter=",", header=HEADER, rows=None, **changes):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(header)
    writer.writerows(rows if rows is not None else people(**changes))
    return out.getvalue()


def excel(rows=None, sheets=("people",)):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in rows or [HEADER, *people()]:
            sheet.append([float(c) if re.fullmatch(r"[\d.]+", str(c)) else c for c in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet():
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(HEADER, zip(*people(), strict=True), strict=True))
    columns |= {name: [float(v) for v in columns[name]] for name in ("income", "acceptance")}
    out = io.BytesIO()
    files.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def jsonl():
    rows = [dict(zip(HEADER, row, strict=True)) for row in people()]
    return "".join(
        json.dumps({**row, "income": float(row["income"]), "acceptance": 0.5}) + "\n"
        for row in rows
    )


def latin():
    rows = [[*row, "Zürich"] for row in people()]
    return text(header=(*HEADER, "town"), rows=rows).encode("cp1252")


def pounds(i, old):
    return f"${int(old):,}"


SAME = {  # read to the figures of the tidy file: contents, name, options
    "tidy": (text(), "t.csv", ()),
    "BOM": ("\ufeff" + text(), "t.csv", ()),
    "UTF-16": (text().encode("utf-16"), "t.csv", ()),
    "UTF-16 without a mark": (text().encode("utf-16-le"), "t.csv", ("--encoding", "utf-16-le")),
    "semicolons": (text(";"), "t.csv", ()),
    "tabs": (text("\t"), "t.tsv", ()),
    "bars": (text("|"), "t.txt", ()),
    "named delimiter": (text("\t"), "t.csv", ("--delimiter", "tab")),
    "another delimiter": (text("^"), "t.csv", ("--delimiter", "^")),
    "gzip": (gzip.compress(text().encode()), "t.csv.gz", ()),
    "bzip2": (bz2.compress(text().encode()), "t.csv.bz2", ()),
    "xz": (lzma.compress(text().encode()), "t.csv.xz", ()),
    "JSON lines": (jsonl, "t.jsonl", ()),
    "packed JSON lines": (lambda: gzip.compress(jsonl().encode()), "t.jsonl.gz", ()),
    "xlsx": (excel, "t.xlsx", ()),
    "one of two sheets": (
        lambda: excel(sheets=("people", "copy")),
        "t.xlsx",
        ("--sheet", "copy"),
    ),
    "Parquet": (parquet, "t.parquet", ()),
    "money": (text(income=pounds), "t.csv", ()),
    "euros": (
        text(
            ";",
            income=lambda i, old: f"{int(old):,} €".replace(",", "."),
            acceptance=lambda i, old: "0,5",
        ),
        "t.csv",
        ("--decimal", ","),
    ),
    "mixed case and blanks": (
        text(
            repaid=lambda i, old: (old, old.upper(), f" {old.title()} ", old[0])[i % 4],
            approved=lambda i, old: (old, old.title())[i % 2],
            sex=lambda i, old: old if i % 7 else f" {old.upper()}",
        ),
        "t.csv",
        (),
    ),
    "an index column": (
        text(header=("", *HEADER), rows=[[i, *row] for i, row in enumerate(people())]),
        "t.csv",
        (),
    ),
    "the index of pandas": (
        text(header=("Unnamed: 0", *HEADER), rows=[[i, *row] for i, row in enumerate(people())]),
        "t.csv",
        (),
    ),
    "an empty column": (
        text(header=(*HEADER, ""), rows=[[*row, ""] for row in people()]),
        "t.csv",
        (),
    ),
    "empty lines": (text().replace("\n", "\n\n") + ",,,,,\n", "t.csv", ()),
    "lines of Windows": (text().replace("\n", "\r\n"), "t.csv", ()),
    "quotes and line breaks": (
        text(
            header=(*HEADER, "why"),
            rows=[[*row, 'said "no",\nthen "yes"; | done'] for row in people()],
        ),
        "t.csv",
        (),
    ),
    "no header": (
        text(header=None).replace(",", ",", 1),
        "t.csv",
        "NO HEADER",
    ),
    "lines above the header": ("Export of May\n\n" + text(), "t.csv", ("--skip-lines", "2")),
    "Latin-1": (
        text(header=(*HEADER, "town"), rows=[[*row, "Zürich"] for row in people()]).encode(
            "cp1252"
        ),
        "t.csv",
        ("--encoding", "cp1252"),
    ),
    "a name twice": (
        text(header=(*HEADER, "visits"), rows=[[*row, "9"] for row in people()]),
        "t.csv",
        "VISITS.1",
    ),
}
REFUSED = {  # contents, name, a part of the message
    "Latin-1": (
        text(header=(*HEADER, "town"), rows=[[*row, "Zürich"] for row in people()]).encode(
            "cp1252"
        ),
        "t.csv",
        r"is not UTF-8.*cp1252.*'Zürich'.*--encoding",
    ),
    "UTF-16 without a mark": (text().encode("utf-16-le"), "t.csv", "utf-16-le.*--encoding"),
    "two sheets": (
        lambda: excel(sheets=("a", "b")),
        "t.xlsx",
        "2 sheets.*for example 'a'.*--sheet",
    ),
    "no such file": (None, "t.csv", "t.csv"),
    "no header": (text(header=None), "t.csv", "--no-header"),
    "a name that is not there": (text().replace("sex", "Sex_"), "t.csv", "has no column|no group"),
    "no lines": ("", "t.csv", "no lines"),
    "no rows": (text(rows=()), "t.csv", "only a header"),
    "no rows of a sheet": (lambda: excel(rows=[HEADER]), "t.xlsx", "only a header"),
    "lines of unequal length": (text() + "1,2\n", "t.csv", r"line 82 .* has 2 cells"),
    "an open quote": (text() + '"1,2\n', "t.csv", "cannot be read as CSV"),
    "two delimiters": (
        text().replace("0,f", "0;f").replace(",sex", ";sex"),
        "t.csv",
        "--delimiter",
    ),
    "broken gzip": (gzip.compress(text().encode())[:60], "t.csv.gz", "cannot be unpacked"),
    "a packed folder": (b"PK\x03\x04nonsense", "t.csv", "cannot be read as an Excel file"),
    "OpenDocument": (
        b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
        "t.ods",
        r"save it as \.xlsx or \.csv",
    ),
    "no Parquet": (b"PAR1nonsense", "t.parquet", "cannot be read as Parquet"),
    "no JSON": ('{"income": 1\n', "t.jsonl", "is no JSON"),
    "nested JSON": ('{"income": [1]}\n', "t.jsonl", "is a list"),
    "zero bytes": (text().replace("f", "\0", 1), "t.csv", "zero bytes"),
    "a group that is missing": (
        text(sex=lambda i, old: old if i else ""),
        "t.csv",
        "missing|group",
    ),
}
FEATURES = {  # only where features are read
    "days or months first": (
        text(visits=lambda i, old: f"{i % 9 + 1}/{i % 11 + 1}/2021"),
        "day-first or month-first.*--dates",
        ("--dates", "month-first"),
    ),
    "short years": (
        text(visits=lambda i, old: f"{i % 9 + 1}.3.21"),
        "--dates",
        ("--dates", "day-first"),
    ),
    "decimal comma or thousands": (
        text(
            ";",
            visits=lambda i, old: f"{i + 1},500",
            acceptance=lambda i, old: "1",
            approved=lambda i, old: "yes",
        ),
        "may be 1500 or 1.5.*--decimal",
        ("--decimal", ","),
    ),
    "two currencies": (
        text(visits=lambda i, old: "$€"[i % 2] + old),
        r"amounts are in \$ and €",
        None,
    ),
    "months in words": (
        text(visits=lambda i, old: f"Mar {i % 28 + 1}, 2021"),
        "write 2021-03-04",
        None,
    ),
    "percent and none": (text(visits=lambda i, old: old + "%" * (i % 2)), "percent sign", None),
    "a text": (text(visits=lambda i, old: ("red", "blue")[i % 2]), "numeric|number", None),
    "a date in a text": (
        text(visits=lambda i, old: "soon" if i == 3 else f"2021-01-{i % 28 + 1:02}"),
        "numeric|number",
        None,
    ),
}
READ = {  # read, each to its own figures
    "dates": text(visits=lambda i, old: f"2021-{i % 12 + 1:02}-03"),
    "dates and times": text(visits=lambda i, old: f"2021-{i % 12 + 1:02}-03 12:30:00"),
    "dates with points": text(visits=lambda i, old: f"{i % 28 + 1}.{i % 12 + 1}.2021"),
    "percent": text(visits=lambda i, old: f"{i}%"),
    "decimal comma": text(";", visits=lambda i, old: f"{i},5"),
    "True and False": text(visits=lambda i, old: i % 2 == 0),
    "0 and 1": text(visits=lambda i, old: i % 2),
    "Y and N": text(visits=lambda i, old: ("Y", " n", "y ", "N")[i % 4]),
    "a constant column": text(visits=lambda i, old: "7"),
    "a group of three": text(count=83, sex=lambda i, old: "x" if i >= 80 else old),
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Policies of the tidy people, under the names that a file may give their columns."""
    folder = tmp_path_factory.mktemp("policies")
    made = {}
    for kind, contents, words in (
        ("", text(), TABLE),
        ("NO HEADER", SAME["no header"][0], (*map(numbered, TABLE), "--no-header")),
        ("VISITS.1", SAME["a name twice"][0], [w.replace("visits", "visits.1") for w in TABLE]),
    ):
        (folder / "old.csv").write_text(contents)
        made[kind] = folder / f"policy{len(made)}.json"
        solve(folder / "old.csv", *words, "--save", made[kind])
    return made


def solve(*words):
    done = CliRunner().invoke(main, ["solve", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.fixture
def run(tmp_path, monkeypatch, policies):
    """Call a command on a file with these contents; a traceback fails the test."""
    monkeypatch.chdir(tmp_path)

    def run(command, contents, name, *options):
        made = contents() if callable(contents) else contents
        if made is not None:
            (tmp_path / name).write_bytes(made if isinstance(made, bytes) else made.encode())
        policy = policies.get("".join(options[:1]), policies[""])
        words = [word.format(name, policy=policy) for word in COMMANDS[command]]
        if options[:1] == ("NO HEADER",):
            words, options = [*map(numbered, words)], ("--no-header",)
        if options[:1] == ("VISITS.1",):
            words, options = [w.replace("visits", "visits.1") for w in words], ()
        return CliRunner().invoke(main, [*words, *options], catch_exceptions=False)

    return run


def numbered(word):
    """The names of columns as --no-header has them."""
    if word.startswith(("-", "yes", "no")) or "{" in word:
        return word
    for place, name in enumerate(HEADER, 1):
        word = re.sub(rf"\b{name}\b", f"column{place}", word)
    if word.startswith("column5=") or word in ("measure", "evaluate"):
        return word
    return word


def options_of(command):
    found = main
    for part in command.split():
        found = found.get_command(click.Context(found), part)
    return {flag for param in found.params for flag in param.opts}


def figures(result):
    """All numbers that were printed, without those that name the file or take time."""
    shown = re.sub(r"(?m)^.*(\bt\.\w+|note:|Note:|written|s/run).*$", "", result.stdout)
    return re.findall(r"\d+\.\d\d+", shown)


def decided():
    """(probability, decision) of all people, as `evenhand apply` wrote them; the file is gone."""
    with Path("decisions.csv").open(newline="") as file:
        rows = [(row["probability"], row["decision"]) for row in csv.DictReader(file)]
    Path("decisions.csv").unlink()
    return rows


NAMES = ("income", "visits", "sex", "repaid")


def read_people(path, names, **reading):
    """The people of a file whose columns have these names, by the reader and not by a command."""
    income, visits, sex, repaid = names
    frame = read_table(
        path, label=repaid, good="yes", group=sex, features=(income, visits), **reading
    )
    return frame.encoded()


def as_keywords(words):
    """("--skip-lines", "2") -> {"skip_lines": 2}."""
    reading = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        name = option.removeprefix("--").replace("-", "_")
        reading[name] = int(value) if name == "skip_lines" else value
    return reading


@pytest.mark.parametrize("kind", SAME)
def test_read_to_the_same_people(tmp_path, kind):
    contents, name, options = SAME[kind]
    made = contents() if callable(contents) else contents
    path = tmp_path / name
    path.write_bytes(made if isinstance(made, bytes) else made.encode())
    names = NAMES
    if options == "NO HEADER":
        names = ("column1", "column2", "column3", "column4")
        found = read_people(path, names, header=False)
    elif options == "VISITS.1":
        names = ("income", "visits.1", "sex", "repaid")
        found = read_people(path, names)
    else:
        found = read_people(path, names, **as_keywords(options))
    (tmp_path / "tidy.csv").write_text(text())
    tidy = read_people(tmp_path / "tidy.csv", NAMES)
    assert np.array_equal(found.features, tidy.features)
    assert [str(group).lower() for group in found.group] == tidy.group.tolist()
    assert found.label.tolist() == tidy.label.tolist()
    assert found.names == names[:2]


@pytest.mark.parametrize(
    "kind", ["semicolons", "xlsx", "money", "mixed case and blanks", "no header", "a name twice"]
)
def test_a_command_reads_it_to_the_same_figures(run, kind):
    contents, name, options = SAME[kind]
    words = (options,) if isinstance(options, str) else options
    done = run("solve", contents, name, *words)
    assert done.exit_code == 0, done.output
    assert figures(done) == figures(run("solve", text(), "t.csv"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_hands_its_options_to_the_reader(run, command):
    contents, name, options = SAME["euros"]
    done = run(command, contents, name, *options)
    assert done.exit_code == 0, done.output
    decisions = decided() if command == "apply" else None
    tidy = run(command, text(), "t.csv")
    assert figures(done) == figures(tidy)
    if decisions is not None:
        assert decisions == decided()
        assert len(set(decisions)) > 1


@pytest.mark.parametrize("kind", REFUSED)
def test_an_error_names_options_that_exist(run, kind):
    contents, name, message = REFUSED[kind]
    check_refusal(run("solve", contents, name), "solve", message)


def test_a_group_that_no_decision_needs_may_be_missing(run):
    """People without a group count for the cost; a policy that ignores the group decides."""
    contents, name, _ = REFUSED["a group that is missing"]
    assert run("evaluate", contents, name).exit_code == 0
    assert run("apply", contents, name).exit_code == 0


def check_refusal(refused, command, message):
    assert refused.exit_code == 2, refused.output
    assert refused.stdout == ""
    assert not Path("decisions.csv").exists()
    words = " ".join(refused.stderr.split())
    assert re.search(message, words), words
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", words))
    assert named <= options_of(command), f"{command} has no {named - options_of(command)}"


@pytest.mark.parametrize("kind", FEATURES)
def test_ambiguous_features_are_refused_and_settled(run, kind):
    contents, message, options = FEATURES[kind]
    check_refusal(run("solve", contents, "t.csv"), "solve", message)
    if options is not None:
        settled = run("solve", contents, "t.csv", *options)
        assert settled.exit_code == 0, settled.output


@pytest.mark.parametrize("kind", READ)
def test_read(run, kind):
    done = run("solve", READ[kind], "t.csv")
    assert done.exit_code == 0, done.output


def test_a_small_group_needs_a_choice_where_rates_are_estimated(run):
    check_refusal(run("data show", READ["a group of three"], "t.csv"), "data show", "--groups")


AS_BEFORE = ("decimal comma", "0 and 1", "a constant column", "a group of three")
"""Kinds of READ whose columns mean what those of the tidy table mean."""


@pytest.mark.parametrize("kind", [*FEATURES, *READ])
def test_what_the_policy_has_not_seen_so_is_refused(run, kind):
    command = "apply"  # `test` reads new people in the same way
    contents = FEATURES[kind][0] if kind in FEATURES else READ[kind]
    done = run(command, contents, "t.csv")
    if kind in AS_BEFORE:
        assert done.exit_code == 0, done.output
    elif kind in ("decimal comma or thousands", "two currencies"):
        check_refusal(done, command, FEATURES[kind][1])
    else:
        check_refusal(done, command, "'visits' is not written as in the table that the policy")


@pytest.mark.parametrize("kind", [*READ, *(kind for kind in FEATURES if FEATURES[kind][2])])
def test_a_policy_of_the_same_file_settles_it(tmp_path, monkeypatch, kind):
    """What was said to `solve` need not be said again, and gives the cost that `solve` found."""
    contents, said = (READ[kind], ()) if kind in READ else FEATURES[kind][::2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text(contents)
    own = tmp_path / "own.json"
    features = ("--features", "visits", "--limit", "1")  # so that the rule looks at this column
    solve("old.csv", *TABLE, *features, *said, "--save", own)
    for command in FOLLOWING:
        words = [word.format("old.csv", policy=own) for word in COMMANDS[command]]
        done = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
    assert told["numbers"]["cost"] == pytest.approx(
        told["facts"]["cost on the table it was chosen on"]
    )
    labels = [row["repaid"] for row in csv.DictReader(io.StringIO(contents), delimiter=contents[6])]
    chances = [float(chance) for chance, _ in decided()]
    lost = [1 - p if y == "yes" else p for p, y in zip(chances, labels, strict=True)]
    assert sum(lost) / len(lost) == pytest.approx(told["numbers"]["cost"])


BY_GROUP = {  # contents, what apply and test say: None if they read it as the tidy table
    "capitals and blanks": (text(sex=lambda i, old: f" {old.upper()}"), None),
    "missing": (text(sex=lambda i, old: old if i else ""), "'sex'.*is missing in 1 of 80 rows"),
    "absent": (text().replace("sex", "Sex_"), "did you mean 'Sex_'"),
    "of a third kind": (
        READ["a group of three"],
        "'x'(, which the policy has never seen| has no rule)",
    ),
}


@pytest.mark.parametrize("kind", BY_GROUP)
def test_groups_that_the_policy_looks_at(run, policies, tmp_path, monkeypatch, kind):
    meaning = TABLE[: TABLE.index("--features")]
    words = ("--class", "thresholds", "--score", "income", "--group-use", "decide")
    (tmp_path / "old.csv").write_text(text())
    solve("old.csv", *meaning, "--limit", "0.05", *words, "--save", "own.json")
    monkeypatch.setitem(policies, "", tmp_path / "own.json")
    contents, message = BY_GROUP[kind]
    for command in FOLLOWING:
        done = run(command, contents, "t.csv")
        if message is not None:
            check_refusal(done, command, message)
            continue
        assert done.exit_code == 0, done.output
        before = decided() if command == "apply" else None
        assert figures(done) == figures(run(command, text(), "t.csv"))
        assert before == (decided() if command == "apply" else None)
    if kind == "missing":
        assert run("apply", contents, "t.csv", "--drop-missing").exit_code == 0
        first, *others = decided()
        assert first == ("", "")
        assert len(others) == 79
        assert all(chance for chance, _ in others)


def test_one_group_shows_nothing_of_a_gap(run):
    women = [row for row in people() if row[2] == "f"]
    done = run("test", text(rows=women), "t.csv")
    assert done.exit_code == 0, done.output
    assert "nobody here is of the group m: no gap to it is tested" in done.stdout
    assert "Nothing is compared" in done.stdout
    assert "Within" not in done.stdout
    told = json.loads(run("test", text(rows=women), "t.csv", "--json").stdout)
    assert told["verdict"]["status"] == "not shown"
    assert told["numbers"]["rates"][0]["gap_interval"] == [0.0, 1.0]
    done = run("measure", text(rows=women), "t.csv", "--json")
    rates = json.loads(done.stdout)["numbers"]["rates"]
    assert {tuple(rate["gap_interval"]) for rate in rates} == {(0, 1)}


def test_a_name_twice_is_reported_as_such(run):
    for command in FOLLOWING:
        check_refusal(
            run(command, SAME["a name twice"][0], "t.csv"),
            command,
            "several columns are called 'visits'.*'visits.1', 'visits.2'",
        )


@pytest.mark.parametrize("command", ["measure", "evaluate", *FOLLOWING])
def test_one_row_is_enough_to_measure(run, command):
    done = run(command, text(rows=[list(people())[1]]), "t.csv")
    assert done.exit_code == 0, done.output


def test_one_row_is_not_enough_to_solve(run):
    check_refusal(run("solve", text(rows=[list(people())[1]]), "t.csv"), "solve", "has one row")


@pytest.mark.parametrize("command", ["solve", "measure", "test"])
def test_several_group_columns(run, command):
    rows = [[*row, "ab"[i // 2 % 2]] for i, row in enumerate(people())]
    contents = text(header=(*HEADER, "race"), rows=rows)
    few = () if command in ("measure", "test") else ("--fewest", "5")
    done = run(command, contents, "t.csv", "--group", "sex,race", *few)
    assert done.exit_code == 0, done.output
    assert "f & a" in done.output
    check_refusal(
        run(command, contents, "t.csv", "--group", "sex,rice"), command, "did you mean 'race'"
    )
