"""The reference of the command line is written from the commands; each help has an example that
runs.
"""

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from evenhand.cli import COMMANDS, main
from evenhand.simulation.named import LEARNERS, POPULATIONS

ROOT = Path(__file__).parents[2]
OPTION = re.compile(r"--[a-z][a-z-]+")


def written() -> str:
    place = ROOT / "docs" / "command_pages.py"
    spec = importlib.util.spec_from_file_location("command_pages", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


TEXT = written()
SECTIONS = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", TEXT, flags=re.M | re.S))


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def params(found: click.Command) -> list[click.Parameter]:
    """Those of a command, or of all commands of a group."""
    below = found.commands.values() if isinstance(found, click.Group) else ()
    return [*found.params, *(param for one in below for param in params(one))]


def options(name: str) -> set[str]:
    return {
        flag
        for param in params(command(name))
        if isinstance(param, click.Option)
        for flag in param.opts
        if flag.startswith("--")
    } - {"--help"}


def listed(name: str) -> set[str]:
    """The options in the tables of a command, of its subcommands, and of the shared sections that
    they refer to.
    """
    own = [text for heading, text in SECTIONS.items() if f"{heading} ".startswith(f"{name} ")]
    named = re.findall(r"\[(Options for [^\]]+)\]", "\n".join(own))
    texts = [*own, *(SECTIONS[heading] for heading in named)]
    cells = re.findall(r"^\| `(--[^` ]+)", "\n".join(texts), flags=re.M)
    return {found[0] for cell in cells if (found := OPTION.match(cell))}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_option_of_a_command(name):
    assert options(name) == listed(f"evenhand {name}")


def test_an_option_that_is_not_on_the_page_is_seen():
    assert "--limit" in listed("evenhand solve")
    assert "--limit" not in listed("evenhand data")


def test_every_environment_and_learner_is_on_the_page_with_its_options():
    for name, entry in {**POPULATIONS, **LEARNERS}.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", TEXT, flags=re.M)
        assert set(re.findall(r"`(\w+)`", row.split("|")[3])) == set(entry.options), name


SMALLER = {"--rounds": "2000", "--people": "2000", "--runs": "1", "--days": "40"}


def quick(words: list[str]) -> list[str]:
    """The same options at smaller sizes; the demo without its last act, which has its own tests."""
    if words[0] == "demo":
        return [*words, "--seeds", "0"]
    before = ["", *words]
    return [SMALLER.get(option, word) for option, word in zip(before, words, strict=False)]


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
