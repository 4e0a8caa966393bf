"""All commands read tables with one reader: its errors name the option that settles them, every
command has these options, and the answer is the same whatever the table is stored in.
"""

import json
import re

import pytest
from click.testing import CliRunner

from evenhand.cli import main
from evenhand.cli.demo import lending_csv

COMMON = ("--label", "repaid", "--good", "yes", "--group", "sex")
COMMANDS = {
    "solve": ("solve", "{}", *COMMON),
    "frontier": ("frontier", "{}", *COMMON, "--limits", "0.1,0.3", "--out", "f.svg"),
    "plan": (
        *("plan", "--data", "{}", *COMMON),
        *("--limit", "0.3", "--people", "500", "--runs", "1"),
    ),
    "study": (
        *("study", "{}", *COMMON, "--learner", "accept-all"),
        *("--rounds", "100", "--seeds", "1", "--jobs", "1", "--out", "s"),
    ),
    "data show": ("data", "show", "{}", *COMMON),
}


def rows(**changes):
    """80 people; a callable in `changes` says what stands in row i instead of (i, old value)."""
    lines = ["income,purpose,sex,repaid"]
    for i in range(80):
        row = {
            "income": str(20 + i * 37 % 50),
            "purpose": str(i % 3),
            "sex": "fm"[i % 2],
            "repaid": ("no", "yes")[(i // 2 + i * 7 % 3) % 2],
        }
        changed = {name: change(i, row[name]) for name, change in changes.items()}
        lines.append(",".join({**row, **changed}.values()))
    return "\n".join(lines) + "\n"


def in_row(place, text):
    return lambda i, old: text if i == place else old


LAWS = {  # the table, a part of the refusal, the options that settle it
    "a third outcome": (
        rows(repaid=in_row(3, "late")),
        r"has the values 'late', 'no'; an outcome is good or bad",
        ("--bad", "no,late"),
    ),
    "a missing outcome": (
        rows(repaid=in_row(3, "")),
        r"label 'repaid' is missing in 1 of 80 rows \(first: line 5\)",
        ("--drop-unlabelled",),
    ),
    "a missing group": (
        rows(sex=in_row(3, "?")),
        r"group 'sex' is missing in 1 of 80 rows \(first: line 5\)",
        ("--drop-missing",),
    ),
    **{
        f"a value missing as {marker!r}": (
            rows(income=in_row(3, marker)),
            r"'income' in 1 of 80 rows \(1.25%\); .*'income' in row 4 \(line 5\)",
            (("--drop-missing",), ("--fill-missing", "income"))[len(marker) % 2],
        )
        for marker in ("", "?", "NA", "n/a", "NaN", "null", "None")
    },
    "a value that looks missing": (
        rows(purpose=lambda i, old: ("car", "none")[i % 2]),
        r"'purpose' in 40 of 80 rows .*--missing",
        ("--missing", "NA", "--encode"),
    ),
    "a text column": (
        rows(purpose=lambda i, old: ("car", "house", "study")[i % 3]),
        r"'purpose' \(for example 'car'\) is not numeric",
        ("--encode",),
    ),
    "no such group": (
        rows(),
        r"groups 'x' does not occur in the group column 'sex'; its values are: f, m.*--groups",
        ("--groups", "f,m"),
    ),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call a command on a table."""
    monkeypatch.chdir(tmp_path)

    def run(command, text, *options, name="loans.csv"):
        (tmp_path / "loans.csv").write_text(text, encoding="utf-8")
        words = [word.format(name) for word in COMMANDS[command]]
        return CliRunner().invoke(main, [*words, *options], catch_exceptions=False)

    return run


@pytest.mark.parametrize("law", LAWS)
def test_an_error_is_settled_by_the_option_that_it_names(run, law):
    text, message, options = LAWS[law]
    first = ("--groups", "x") if law == "no such group" else ()
    refused = run("solve", text, *first)
    assert refused.exit_code == 2, refused.output
    words = " ".join(refused.stderr.split())
    assert re.search(message, words), words
    assert first or any(option in words for option in options), words
    assert refused.stdout == ""
    settled = run("solve", text, *options)
    assert settled.exit_code == 0, settled.output


@pytest.mark.parametrize("command", COMMANDS)
def test_all_options_together_settle_everything(run, command):
    text = rows(
        repaid=lambda i, old: {3: "", 8: "late"}.get(i, old),
        income=in_row(5, "-99"),
        purpose=lambda i, old: ("car", "none")[i % 2],
        sex=in_row(9, "x"),
    ).replace(",", ";")
    options = (
        *("--bad", "no,late", "--groups", "f,m", "--encode", "--drop-missing"),
        *("--drop-unlabelled", "--missing", "-99", "--delimiter", ";", "--fewest", "5"),
    )
    done = run(command, text, *options)
    assert done.exit_code == 0, done.output


def test_equal_numbers_are_one_outcome(run):
    text = rows(repaid=lambda i, old: {"no": "0", "yes": ("1", "1.0")[i % 2]}[old])
    assert run("solve", text).exit_code == 2  # --good yes does not occur
    done = run("solve", text, "--good", "1")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_small_group_is_refused_where_rates_are_estimated(run, command):
    text = rows(sex=lambda i, old: "x" if i < 8 and i % 2 else old)
    done = run(command, text, "--groups", "f,x")
    measured = command in ("solve", "frontier")
    assert done.exit_code == (0 if measured else 2), done.output
    if not measured:
        assert "group 'x' has 4 people" in done.stderr
        assert "--fewest" in done.stderr
    assert run(command, text, "--groups", "f,x", "--fewest", "9").exit_code == 2
    if command in ("solve", "data show"):
        assert run(command, text, "--groups", "f,x", "--fewest", "1").exit_code == 0


def test_a_table_reads_the_same_whatever_it_is_stored_in(run, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("narwhals")
    header, *lines = [line.split(",") for line in rows().splitlines()]
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    columns["income"] = [float(value) for value in columns["income"]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "loans.parquet")
    (tmp_path / "loans.toml").write_text(
        'path = "loans.csv"\nlabel = "repaid"\ngood = "yes"\ngroup = "sex"\n'
    )

    def figures(result):
        assert result.exit_code == 0, result.output
        return re.sub(r"loans\.\w+", "loans", result.stdout)

    runner = CliRunner()
    for command in ("solve", "data show"):
        first = figures(run(command, rows()))
        assert figures(run(command, rows(), name="loans.parquet")) == first
        words = [*COMMANDS[command][: -len(COMMON) - 1], "loans.toml"]
        assert figures(runner.invoke(main, words)) == first


@pytest.mark.parametrize("command", ["solve", "data show"])
def test_a_table_by_name_needs_no_options(run, command):
    words = [word.format("lending") for word in COMMANDS[command][: -len(COMMON)]]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "1,200" in done.stdout


LOG = "id,group,accept,acceptance,label,x\n" + "".join(
    f"k{i},{'ab'[i % 2]},{accept},0.5,{i % 3 % 2 if accept else ''},{i}\n"
    for i, accept in enumerate([0, 1, 1, 0] * 50)
)


@pytest.mark.parametrize(
    ("text", "message", "options"),
    [
        (LOG.replace(",,", ",-99,"), "labels of the accepted are", ("--missing", "-99")),
    ],
    ids=["another marker"],
)
def test_a_log_is_read_by_the_same_reader(tmp_path, monkeypatch, text, message, options):
    monkeypatch.chdir(tmp_path)
    accepted = [line for line in LOG.splitlines()[1:] if line.split(",")[2] == "1"]
    assert all(line.split(",")[4] != "" for line in accepted)
    shown = text if ";" in text else text.replace("k1,b,1,0.5,1", "k1,b,1,0.5,-99")
    (tmp_path / "log.csv").write_text(shown)
    words = ["evaluate", "log.csv", "--policy", "accept-all"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2, refused.output
    assert message in " ".join(refused.stderr.split())
    settled = CliRunner().invoke(main, [*words, *options])
    assert settled.exit_code == 0, settled.output


NAMED = {
    "measure": ("--decision", "repaid", "--accepted", "yes", "--group", "group"),
    "impact": ("--selected", "repaid", "--accepted", "yes", "--group", "group"),
    "certify": (),
    "test": (),
    "explain": ("--row", "3"),
    "apply": ("--out", "decided.csv"),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    done = CliRunner().invoke(main, ["solve", "lending", "--save", str(path)])
    assert done.exit_code == 0, done.output
    return path


@pytest.mark.parametrize("name", NAMED)
def test_a_table_by_name_is_read_as_its_file_is(policy, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(lending_csv(), encoding="utf-8", newline="")
    by_policy = () if name in ("measure", "impact") else (str(policy),)
    columns = ("--label", "repaid", "--good", "yes", "--group", "group")
    spelled = columns if name in ("certify", "test") else ()
    answers = []
    said = []
    for table, more in (("lending", ()), ("people.csv", spelled)):
        words = [name, *by_policy, table, *NAMED[name], *more, "--json"]
        done = CliRunner().invoke(main, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        document = json.loads(done.stdout)
        answers.append(document.get("numbers", document))
        said.append(document.get("read", []))
    named, filed = answers
    told = {"measure": "rates", "impact": "rows", "certify": "cost", "test": "rates"}
    kept = told.get(name, {"explain": "people", "apply": "accepted"}.get(name))
    assert named[kept] == filed[kept] or name in ("measure", "explain")
    if name == "measure":  # the table knows its outcomes, of the file nobody named them
        assert [one["symbol"] for one in named["rates"]] == ["SR", "FPR", "FNR", "PPV"]
    if name in ("certify", "test"):
        assert any("was chosen on lending" in one for one in said[0])
        assert not any("was chosen on" in one for one in said[1])


@pytest.mark.parametrize("name", [*NAMED, "solve", "alternatives", "data show", "plan"])
def test_a_mistyped_name_is_answered_with_the_nearest(policy, name):
    table = ("--data", "lendnig") if name == "plan" else ("lendnig",)
    by_policy = (str(policy),) if name in ("certify", "test", "explain", "apply") else ()
    incumbent = ("--incumbent", "credit_score>=600") if name == "alternatives" else ()
    words = [*name.split(), *by_policy, *table, *NAMED.get(name, ()), *incumbent]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "Did you mean 'lending'?" in done.output
