"""docs/cli.md cannot rot: its options are those of the commands, and its examples run."""

import re
import shlex
from pathlib import Path

import click
import pytest

from evenhand.cli import COMMANDS, main
from evenhand.cli.capacity import capacity_options
from evenhand.cli.gating import gate_options
from evenhand.cli.options import column_options, file_options, problem_options
from evenhand.cli.reporting import report_option
from evenhand.simulation.named import LEARNERS, POPULATIONS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.M | re.S))
JSON = "JSON"
TABLE = "The table"
FILE = "The file"
PROBLEM = "The problem"
RUN = "The run"
GATE = "The gate"
PAGE = "The page"
CAPACITY = "The capacity"
OPTION = re.compile(r"--[a-z][a-z-]+")


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def params(found: click.Command) -> list[click.Parameter]:
    """Those of a command, or of all commands of a group."""
    below = found.commands.values() if isinstance(found, click.Group) else ()
    return [*found.params, *(param for one in below for param in params(one))]


def options(name: str) -> set[str]:
    found = params(command(name))
    return {
        flag
        for p in found
        if isinstance(p, click.Option)
        for flag in p.opts
        if flag.startswith("--")
    } - {"--help"}


def listed(section: str) -> set[str]:
    """The options that a section's tables explain."""
    return {
        OPTION.match(cell)[0]
        for cell in re.findall(r"^\| `(--[^`]+)`", SECTIONS[section], flags=re.M)
    }


def test_every_command_has_a_section_and_every_section_a_command():
    assert {f"evenhand {name}" for name in COMMANDS} | {
        JSON,
        TABLE,
        FILE,
        PROBLEM,
        RUN,
        GATE,
        PAGE,
        CAPACITY,
    } == set(SECTIONS)


COMMON = {
    "demo": (JSON,),
    "solve": (JSON, TABLE, FILE, PROBLEM),
    "frontier": (JSON, TABLE, FILE, PROBLEM),
    "alternatives": (JSON, TABLE, FILE, PAGE),
    "plan": (JSON, TABLE, FILE, CAPACITY, PAGE),
    "study": (JSON, TABLE, FILE, CAPACITY),
    "data": (JSON, TABLE, FILE),
    "apply": (JSON, FILE),
    "explain": (JSON, FILE),
    "certify": (JSON, FILE, GATE, PAGE),
    "test": (JSON, FILE, GATE, PAGE),
    "measure": (JSON, FILE, GATE, PAGE),
    "impact": (JSON, FILE, GATE, PAGE),
    "evaluate": (JSON, FILE, GATE, PAGE),
    "simulate": (JSON, RUN, CAPACITY),
    "compare": (JSON, RUN, TABLE, FILE),
}


def test_shared_options_belong_to_all_their_commands():
    for name, sections in COMMON.items():
        assert set().union(*map(listed, sections)) <= options(name)


@pytest.mark.parametrize(
    ("group", "documented"),
    [
        (file_options, listed(FILE)),
        (gate_options, listed(GATE)),
        (report_option, listed(PAGE)),
        (capacity_options, listed(CAPACITY)),
        (column_options, listed(TABLE) | listed(FILE)),
        (problem_options, listed(PROBLEM) - {"--rate"}),
    ],
)
def test_a_group_of_options_is_documented_in_its_section(group, documented):
    decorated = click.command()(group(lambda: None))
    assert {param.opts[0] for param in decorated.params} == documented


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_s_options_are_the_documented_ones(name):
    shared = set().union(*map(listed, COMMON.get(name, ())))
    assert options(name) == listed(f"evenhand {name}") | shared


def test_every_environment_and_learner_is_documented_with_its_options():
    for name, entry in {**POPULATIONS, **LEARNERS}.items():
        row = next(
            line
            for line in SECTIONS[RUN].splitlines()
            if line.startswith("| ") and f"`{name}`" in line.split("|")[1]
        )
        inherited = LEARNERS["two-phase"].options if "those of `two-phase`" in row else ()
        assert set(re.findall(r"`(\w+)`", row.split("|")[3])) | set(inherited) == set(
            entry.options
        ), name


def test_every_option_mentioned_anywhere_exists():
    known = set().union(*(options(name) for name in COMMANDS)) | {"--help"}
    assert set(OPTION.findall(TEXT)) <= known


def test_every_choice_is_documented():
    for name in COMMANDS:
        for param in params(command(name)):
            if isinstance(param.type, click.Choice):
                assert all(choice in TEXT for choice in param.type.choices)


SMALLER = {"--rounds": "2000", "--people": "2000", "--runs": "1", "--days": "40"}


def quick(words: list[str]) -> list[str]:
    """The same options at smaller sizes; the demo without its last act, which has its own tests."""
    if words[0] == "demo":
        return [*words, "--seeds", "0"]
    before = ["", *words]
    return [SMALLER.get(option, word) for option, word in zip(before, words, strict=False)]


def test_the_examples_run(run):
    lines = re.findall(r"^\$ (evenhand .+)$", TEXT, flags=re.M)
    assert len(lines) >= 6
    for line in lines:
        result = run(*quick(shlex.split(line)[1:]))
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_teaches_with_an_example_that_runs(run, lending, decisions, name):
    text = (command(name).help or "").replace("\\\n", " ")
    found = re.search(r"Example.*?(evenhand .+?)\n", text, flags=re.S)
    assert found is not None
    words = shlex.split(found[1])[1:]
    known = {"loans.csv": str(lending), "sex": "group"} if "loans.csv" in words else {}
    swapped = [known.get(word, word) for word in words]
    assert run(*quick(swapped)).exit_code == 0
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "Example" in shown.stdout


def test_help_lists_the_commands(run):
    shown = run("--help").stdout
    assert all(name in shown for name in COMMANDS)
    assert run("--version").stdout.startswith("evenhand, version ")
    assert run("nonsense").exit_code == 2


def test_help_loads_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys; from click.testing import CliRunner; from evenhand.cli import main; "
        "CliRunner().invoke(main, ['solve', '--help']); CliRunner().invoke(main, ['--help']); "
        "heavy = ('sklearn', 'matplotlib', 'scipy.optimize', 'rich.table', 'numba'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
