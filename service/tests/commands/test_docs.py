"""service/docs/commands.md cannot rot: its options are those of the commands, its examples run, and
what is printed as JSON is one document.
"""

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from service.tests.ports import free_port
from tests.cli.test_docs import OPTION, command, options, params

from evenhand.cli import OF_THE_SERVICE

TEXT = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.M | re.S))


def listed(section):
    """The options that a section's table explains."""
    cells = re.findall(r"^\| `(--[^`]+)`", SECTIONS[section], flags=re.M)
    return {OPTION.match(cell)[0] for cell in cells}


def on_a_free_port(words):
    if words[0] != "serve":
        return words
    return [*words, "--port", str(free_port())]


def test_every_command_has_a_section_and_every_section_a_command():
    assert {f"evenhand {name}" for name in OF_THE_SERVICE} == set(SECTIONS)


@pytest.mark.parametrize("name", OF_THE_SERVICE)
def test_a_command_s_options_are_the_documented_ones(name):
    shared = {"--json", "--json-file"} & options(name)  # explained with those of the library
    assert options(name) == listed(f"evenhand {name}") | shared


def test_every_choice_is_documented():
    for name in OF_THE_SERVICE:
        for param in params(command(name)):
            if isinstance(param.type, click.Choice):
                assert all(choice in TEXT for choice in param.type.choices)


def test_the_examples_run(run, service_toml):
    lines = re.findall(r"^\$ (evenhand .+)$", TEXT, flags=re.M)
    assert len(lines) >= 6
    for line in lines:
        result = run(*on_a_free_port(shlex.split(line)[1:]))
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("name", OF_THE_SERVICE)
def test_each_help_teaches_with_an_example_that_runs(run, service_toml, name):
    text = (command(name).help or "").replace("\\\n", " ")
    found = re.search(r"Example.*?(evenhand .+?)\n", text, flags=re.S)
    assert found is not None
    assert run(*on_a_free_port(shlex.split(found[1])[1:])).exit_code == 0
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "Example" in shown.stdout


@pytest.mark.parametrize("words", [("keys", "list"), ("audit", "verify")])
def test_json_is_one_document(run, service_toml, words):
    assert run("keys", "first", "--config", "service.toml").exit_code == 0
    told = run(*words, "--config", "service.toml", "--json")
    assert told.exit_code == 0, told.output
    assert isinstance(json.loads(told.stdout), dict)
    lines = run(*words, "--config", "service.toml").stdout.splitlines()
    assert [line for line in lines if len(line) > 80 and "  " in line.strip()] == []
