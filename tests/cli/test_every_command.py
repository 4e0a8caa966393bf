"""Requirements of all commands: --json is one document with the figures of the text, tables fit 80
columns, a missing extra is a sentence before any work, and no figure is a negative zero.
"""

import json
import re
import sys

import pytest
from tests.cli.conftest import LENDING

from evenhand.cli import COMMANDS, main
from evenhand.cli.demo import make_lending_table

PLAYED = ("--rounds", "2000", "--environment", "lending")
CALLS = {
    "demo": ("demo", "--seeds", "0"),
    "solve": ("solve", "l.csv", *LENDING, "--holdout", "0.3"),
    "frontier": ("frontier", "l.csv", *LENDING, "--limits", "0,0.1"),
    "alternatives": ("alternatives", "l.csv", *LENDING, "--incumbent", "credit_score>=600"),
    "simulate": ("simulate", "--learner", "fair-on-gathered", *PLAYED),
    "compare": ("compare", "--learner", "accept-all", *PLAYED, "--seeds", "2", "--jobs", "1"),
    "plan": (
        *("plan", "--shares", "a=0.6,b=0.4", "--bad-rates", "a=0.2,b=0.3", "--auc", "0.76"),
        *("--people", "2000", "--runs", "1"),
    ),
    "data show": ("data", "show", "l.csv", *LENDING),
    "study": (
        *("study", "l.csv", *LENDING, "--learner", "accept-all", "--rounds", "500"),
        *("--seeds", "1", "--jobs", "1"),
    ),
    "apply": ("apply", "p.json", "new.csv"),
    "explain": ("explain", "p.json", "new.csv", "--row", "3"),
    "measure": (
        *("measure", "d.csv", "--decision", "approved", "--accepted", "yes", "--group", "sex"),
    ),
    "impact": ("impact", "d.csv", "--selected", "approved", "--accepted", "yes", "--group", "sex"),
    "test": ("test", "p.json", "new.csv"),
    "certify": ("certify", "p.json", "new.csv"),
    "evaluate": ("evaluate", "demo", "--policy", "accept-all"),
}


@pytest.fixture
def call(run, lending, tmp_path, monkeypatch):
    (tmp_path / "l.csv").write_text(lending.read_text())
    (tmp_path / "new.csv").write_text(make_lending_table(7, 400))
    (tmp_path / "d.csv").write_text("sex,approved\n" + "f,yes\nf,no\nm,yes\nm,yes\n" * 20)
    monkeypatch.setenv("COLUMNS", "80")

    def call(name, *more):
        if "p.json" in CALLS[name]:
            assert run("solve", "l.csv", *LENDING, "--save", "p.json").exit_code == 0
        return run(*CALLS[name], *more)

    return call


def test_every_command_is_called():
    assert {name.split()[0] for name in CALLS} >= set(COMMANDS)
    assert main.commands == {}


def numbers(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, str):
        yield from (float(text) for text in re.findall(r"\d+\.\d+", value))


@pytest.mark.parametrize("name", CALLS)
def test_the_text_fits_and_json_is_one_document_with_its_figures(call, name):
    told = call(name, "--json")
    assert told.exit_code == 0, told.output
    known = list(numbers(json.loads(told.stdout)))
    done = call(name)
    assert done.exit_code == 0, done.output
    fits_80_columns(done.stdout)
    text = done.stdout
    if name == "demo":
        text = text.partition("2. Now the gap")[2].partition("3. And other")[0]
    text = re.sub(r"(?m)^.*(/run|\d s\.|\[default|worth |Forecast|probability 0\.95).*$", "", text)
    for figure in re.findall(r"(?<![\d.,\w/])\d+\.\d{3,4}(?![\d%])", text):
        digits = len(figure.partition(".")[2])
        close = 0.5000001 * 10**-digits
        assert any(abs(abs(value) - float(figure)) <= close for value in known), figure


def fits_80_columns(text):
    """Nothing is cut off, no row of a table is wider, and no zero is negative."""
    assert "…" not in text
    assert not re.search(r"-0\.0+(?!\d)", text)
    wide = [line for line in text.splitlines() if len(line) > 80 and "  " in line.strip()]
    assert not [line for line in wide if "evenhand " not in line and "/" not in line], wide


EXTRAS = {"study": ("matplotlib", "jinja2", "pyarrow")}
FIGURES = {
    "alternatives": "--out",
    "explain": "--out",
    "simulate": "--figure",
    "evaluate": "--out",
    "plan": "--out",
    "frontier": "--out",
}


@pytest.mark.parametrize(
    ("name", "package"),
    [(name, package) for name, several in EXTRAS.items() for package in several],
)
def test_a_missing_extra_is_a_sentence_before_the_work(call, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    refused_at_once(call(name), package)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_matplotlib_is_refused_at_once(call, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused_at_once(call(name, FIGURES[name], "f.png"), "matplotlib")


def refused_at_once(done, package):
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert re.search(rf"{package}.*not installed", " ".join(done.stderr.split()))
    assert "pip install -e '.[" in " ".join(done.stderr.split())


@pytest.mark.parametrize("package", ["python_calamine", "pyarrow"])
@pytest.mark.parametrize("name", ["solve", "apply"])
def test_a_format_without_its_package(call, run, monkeypatch, tmp_path, name, package):
    """Of a table with a meaning, and of new rows for a policy: all commands read one of the two."""
    call("apply")
    monkeypatch.setitem(sys.modules, package, None)
    magic = b"PAR1" if package == "pyarrow" else b"PK\x03\x04"
    for place in ("l.csv", "new.csv"):
        (tmp_path / place).write_bytes(magic)
    refused = run(*CALLS[name])
    assert refused.exit_code == 2, refused.output
    assert "not installed" in refused.stderr
    assert "pip install -e '.[tables]'" in " ".join(refused.stderr.split())


ALONE = {
    "measure": ("measure", "d.csv", "--decision", "hired", "--group", "sex", "--drop-missing"),
    "impact": ("impact", "d.csv", "--selected", "hired", "--group", "sex"),
    "columns": ("data", "show", "one.csv"),
    "table": ("data", "show", "d.csv", "--label", "hired", "--group", "sex", "--drop-missing"),
    "solve": ("solve", "d.csv", "--label", "hired", "--group", "sex", "--drop-missing"),
    "left out": (
        *("solve", "d.csv", "--label", "hired", "--group", "sex", "--drop-missing"),
        *("--groups", "f,m", "--limit", "0.5", "--save", "p.json"),
    ),
    "applied": ("apply", "p.json", "one.csv", "--out", "decided.csv"),
    "test": ("test", "p.json", "one.csv", "--label", "hired", "--group", "sex"),
    "explained": ("explain", "p.json", "one.csv", "--row", "3"),
}


def test_one_person_is_no_people_and_one_row_is_no_rows(run, write):
    """A person who is alone in a group, a row that lacks something, a table of one row."""
    rows = [f"{'fm'[i % 2]},{int(i % 3 > 0)},{i % 5},{i}" for i in range(60)]
    write("\n".join(["sex,hired,score,income", *rows, "x,1,3,1", ",1,2,7"]), "d.csv")
    write("sex,hired,score,income\nf,1,3,1\n", "one.csv")
    said = {name: run(*words).output for name, words in ALONE.items()}
    assert {n: re.findall(r".*\b1 (?:people|rows)\b.*", text) for n, text in said.items()} == {
        name: [] for name in ALONE
    }
    assert sum(bool(re.search(r"\b1 (person|row)\b", text)) for text in said.values()) >= 6, said


WITH_ALL_OUTCOMES = (
    "solve", "frontier", "alternatives", "data show", "test", "certify",
)  # fmt: skip


@pytest.mark.parametrize("name", WITH_ALL_OUTCOMES)
def test_outcomes_of_all_may_be_those_of_accepted_people_alone(call, name):
    """No cell is empty: the rows of the rejected may simply not be there."""
    told = " ".join(call(name).stdout.split())
    assert "every figure speaks of accepted people only" in told
