"""Every refusal of the command line: exit code 2, one message on stderr with a way out, nothing
written, no traceback.
"""

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from evenhand.cli import COMMANDS, OF_THE_SERVICE, main

COMMON = ("--label", "y", "--group", "g")
GOOD = (
    "x,z,g,y\n"
    + "\n".join(f"{i * 13 % 17},{i % 5},{'ab'[i % 2]},{i * 5 % 7 > 3:d}" for i in range(60))
    + "\n"
)


def changed(line, text):
    lines = GOOD.splitlines()
    lines[line - 1] = text
    return "\n".join(lines)


TABLES = {
    "missing label column": (
        GOOD,
        ("--label", "repaid", "--group", "g"),
        ["no column 'repaid'", "it has: x, z, g, y"],
    ),
    "missing group column": (
        GOOD,
        ("--label", "y", "--group", "sex"),
        ["no column 'sex'", "it has: x, z, g, y"],
    ),
    "missing features": (
        GOOD,
        (*COMMON, "--features", "x,w,v"),
        ["no column 'w', 'v'", "it has: x, z, g, y"],
    ),
    "missing price column": (
        GOOD,
        (*COMMON, "--price-false-accept", "amount"),
        ["no column 'amount'"],
    ),
    "empty file": ("", COMMON, ["no lines"]),
    "header only": ("x,g,y\n", COMMON, ["only a header"]),
    "ragged row": (changed(7, "1,2,a"), COMMON, ["line 7", "3 cells", "header has 4"]),
    "long delimiter": (
        GOOD,
        (*COMMON, "--delimiter", "::"),
        ["delimiter is '::'", "one character", "--delimiter"],
    ),
    "open quote": (changed(5, '"1,2,a,1'), COMMON, ["cannot be read as CSV"]),
    "missing value": (
        changed(9, "1,NA,a,1"),
        COMMON,
        ["'z' in 1 of 60 rows (1.67%)", "'z' in row 8 (line 9)", "--fill-missing z, --leave-out z"],
    ),
    "missing group": (
        changed(3, "1,2,,1"),
        COMMON,
        ["group 'g' is missing in 1 of 60 rows", "line 3", "--fill-missing g, --drop-missing"],
    ),
    "an option for a value": (
        GOOD,
        (*COMMON, "--fill-missing", "--drop-missing"),
        ["'--fill-missing': a value is missing before the option --drop-missing"],
    ),
    "filled by a word": (
        GOOD,
        (*COMMON, "--fill-missing", "True"),
        ["fill_missing names 'True'", "never made up. Option: --fill-missing"],
    ),
    "nothing but missing": (
        "x,z,g,y\n,1,a,1\n1,,b,0\n",
        (*COMMON, "--drop-missing"),
        ["every row lacks a value", "'x' in 1 of 2 rows", "--features"],
    ),
    "text feature": (
        changed(4, "1,red,a,1"),
        COMMON,
        ["'z' (for example 'red') is not numeric", "--encode"],
    ),
    "identifiers": (
        "x,g,y\n" + "\n".join(f"name{i},{'ab'[i % 2]},{i % 3 > 0:d}" for i in range(80)),
        (*COMMON, "--encode"),
        ["'x' holds another text for each of 80 people", "--id x", "--leave-out x"],
    ),
    "too many values": (
        "x,g,y\n" + "\n".join(f"job{i // 2},{'ab'[i % 2]},{i % 3 > 0:d}" for i in range(120)),
        (*COMMON, "--encode"),
        ["'x' has 60 distinct values", "at most 50"],
    ),
    "infinite feature": (
        changed(4, "inf,1,a,1"),
        COMMON,
        ["'x' holds 'inf' in row 3 (line 4)", "finite"],
    ),
    "text label": (
        GOOD.replace(",1\n", ",yes\n").replace(",0\n", ",no\n"),
        COMMON,
        ["holds no, yes", "--good"],
    ),
    "unknown good": (
        GOOD,
        (*COMMON, "--good", "yes"),
        ["good 'yes' does not occur", "0, 1", "--good"],
    ),
    "one outcome": (GOOD.replace(",0\n", ",1\n"), COMMON, ["every row has y = 1"]),
    "one group": (GOOD.replace(",b,", ",a,"), COMMON, ["all people are of group 'a' (60 people)"]),
    "unknown group": (
        GOOD,
        (*COMMON, "--groups", "a,c"),
        ["'c' does not occur", "a, b", "--groups"],
    ),
    "too many groups": (GOOD, ("--label", "y", "--group", "id"), None),
    "no negatives": (
        "\n".join(line[:-1] + "1" if ",b," in line else line for line in GOOD.splitlines()),
        COMMON,
        ["group 'b' has 30 people in the sample but 0 negatives"],
    ),
    "a small group": (
        GOOD,
        (*COMMON, "--fewest", "30"),
        ["group 'a' has 30 people", "at least 30 of each", "--fewest"],
    ),
    "label as feature": (GOOD, (*COMMON, "--features", "x,y"), ["'y' cannot be a feature"]),
    "group as feature": (
        GOOD,
        (*COMMON, "--features", "x,g"),
        ["'g' cannot be a feature", "--features, --group-use"],
    ),
    "label is group": (
        GOOD,
        ("--label", "y", "--group", "y"),
        ["both label and group", "--label, --group"],
    ),
    "no features left": ("g,y\na,1\nb,0\na,0\nb,1\n", COMMON, ["no column is left"]),
    "score elsewhere": (
        GOOD,
        (*COMMON, "--score", "x"),
        ["--score x belongs to --class thresholds"],
    ),
    "thresholds without score": (GOOD, (*COMMON, "--class", "thresholds"), ["--score is missing"]),
    "thresholds with features": (
        GOOD,
        (*COMMON, "--class", "thresholds", "--score", "x", "--features", "x"),
        ["--features was given"],
    ),
    "negative limit": (GOOD, (*COMMON, "--limit", "-0.1"), ["is -0.1", "in [0, 1]"]),
    "limit is no number": (GOOD, (*COMMON, "--limit", "nan"), ["is nan", "in [0, 1]"]),
    "negative price": (
        GOOD,
        (*COMMON, "--price-false-reject", "-2"),
        ["false_reject is -2", "at least 0"],
    ),
    "infinite price": (
        GOOD,
        (*COMMON, "--price-false-accept", "inf"),
        ["false_accept is inf", "finite"],
    ),
    "unknown class": (GOOD, (*COMMON, "--class", "forest"), ["'forest' is not one of", "stumps"]),
    "unknown rate": (GOOD, (*COMMON, "--rate", "ppv"), ["no rate 'ppv'", "fpr"]),
    "no label": (GOOD, ("--group", "g"), ["label is missing", "--label, --group"]),
    "wrong ending": (GOOD, (*COMMON, "--save", "answer.txt"), ["answer.txt must end in"]),
    "no such folder": (GOOD, (*COMMON, "--save", "nowhere/answer.{}"), ["nowhere does not exist"]),
}
TABLES["too many groups"] = (
    "x,id,y\n" + "\n".join(f"{i},p{i},{i % 2}" for i in range(40)),
    ("--label", "y", "--group", "id"),
    ["'id' has 40 distinct values"],
)


@pytest.mark.parametrize("command", ["solve", "frontier"])
@pytest.mark.parametrize("name", TABLES)
def test_refused_with_a_message(run, write, tmp_path, command, name):
    text, args, told = TABLES[name]
    data = write(text)
    ending = "json" if command == "solve" else "png"
    if command == "frontier":  # which keeps no policy
        args = ["--out" if one == "--save" else one for one in args]
    result = run(command, data, *(a.format(ending) for a in args))
    message = " ".join(result.stderr.split())
    assert result.exit_code == 2, result.output
    assert all(part in message for part in told), message
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == [data]


def test_no_such_file(run):
    result = run("solve", "nowhere.csv", *COMMON)
    assert result.exit_code == 2
    assert "nowhere.csv" in result.stderr


def test_other_encodings_are_named(run, tmp_path):
    (tmp_path / "latin.csv").write_bytes("x,g,y\n1,Züri,1\n".encode("latin-1"))
    result = run("solve", "latin.csv", *COMMON)
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


@pytest.mark.parametrize("limits", ["", "0:1", "0:1:2.5", "0:1:0", "a,b", "0:1:1e9", "0::3"])
def test_limits_that_cannot_be_read(run, write, limits):
    result = run("frontier", write(GOOD), *COMMON, "--limits", limits)
    assert result.exit_code == 2
    assert "start:stop:count" in result.stderr


@pytest.mark.parametrize("limits", ["-0.1,0.2", "0,nan", "0:inf:3"])
def test_limits_that_are_none(run, write, limits):
    result = run("frontier", write(GOOD), *COMMON, "--limits", limits)
    assert result.exit_code == 2
    assert "in [0, 1]" in " ".join(result.stderr.split())


def test_the_picture_compares_two_groups(run, write):
    result = run("frontier", write(GOOD.replace("3,a", "3,c")), *COMMON)
    assert result.exit_code == 2
    assert "3 groups (a, b, c)" in result.stderr
    assert "--groups A,B" in result.stderr


def test_hints_stand_on_their_own_line(run, write):
    result = run("solve", write(GOOD), *COMMON, "--limit", "-1")
    assert result.stderr.splitlines()[1].startswith("Hint: ")
    assert result.stderr.count("Hint:") == 1


def test_unwritable_output(run, write, tmp_path, monkeypatch):
    from pathlib import Path

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    data = write(GOOD)
    monkeypatch.setattr(Path, "write_text", refuse)
    result = run("solve", data, *COMMON, "--save", "p.json")
    assert result.exit_code == 2
    assert "p.json cannot be read or written: Permission denied" in result.stderr


def test_no_traceback_in_a_real_process(write):
    command = [
        sys.executable,
        "-m",
        "evenhand",
        "solve",
        str(write(GOOD)),
        "--label",
        "q",
        "--group",
        "g",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-16"])
def test_output_of_any_encoding(write, encoding):
    """A name that the terminal cannot show is written with question marks, and nothing fails."""
    table = write(GOOD.replace("x,z", "łódź→,z"), "łódź.csv")
    words = ["solve", str(table), "--label", "y", "--group", "g", "--limit", "0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *words],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    said = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    assert "error rate" in said
    assert "Traceback" not in done.stderr.decode(encoding)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_can_complete(shell):
    def asked(what, **words):
        variables = {"_EVENHAND_COMPLETE": f"{shell}_{what}", **words}
        return CliRunner().invoke(main, prog_name="evenhand", env=variables).stdout

    assert "_EVENHAND_COMPLETE" in asked("source")
    words = {"COMP_WORDS": "evenhand so", "COMP_CWORD": "1" if shell != "fish" else "so"}
    assert "solve" in asked("complete", **words)


def test_the_installed_program_completes():
    program = Path(sys.executable).with_name("evenhand")
    asking = {**os.environ, "_EVENHAND_COMPLETE": "zsh_source"}
    script = subprocess.run([program], capture_output=True, text=True, env=asking, check=True)
    assert "_EVENHAND_COMPLETE" in script.stdout


def other_commands(monkeypatch, *entries):
    """As if the packages beside this one added these commands and no others."""
    found = [EntryPoint(name, value, "evenhand.commands") for name, value in entries]
    monkeypatch.setattr("evenhand.cli.entry_points", lambda group: found)


@pytest.mark.parametrize("name", OF_THE_SERVICE)
def test_without_the_service_its_commands_say_what_to_install(run, monkeypatch, name):
    other_commands(monkeypatch)
    refused = run(name, "--config", "service.toml")
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert f"Error: {name} is a command of the decision service: install" in said
    assert "evenhand-service" in said
    assert "Traceback" not in refused.output
    assert refused.stdout == ""
    assert name not in re.findall(r"^  (\w+)  ", run("--help").stdout, re.M)


def test_another_package_adds_a_command_and_takes_the_place_of_none(run, monkeypatch):
    other_commands(monkeypatch, ("twin", "evenhand.cli.demo:command"), ("solve", "nobody:nothing"))
    assert "Solve a lending table" in run("twin", "--help").stdout
    assert run("solve", "--help").exit_code == 0
    assert list(main.list_commands(click.Context(main))) == [*COMMANDS, "twin"]
