"""The commands of the service are in the reference of the command line; each help has an example
that runs, and what is printed as JSON is one document.
"""

import json
import re
import shlex

import pytest
from service.tests.ports import free_port
from tests.cli.test_docs import command, listed, options

from evenhand.cli import OF_THE_SERVICE


def on_a_free_port(words):
    if words[0] != "serve":
        return words
    return [*words, "--port", str(free_port())]


@pytest.mark.parametrize("name", OF_THE_SERVICE)
def test_the_page_has_every_option_of_a_command(name):
    assert options(name) == listed(f"evenhand {name}")


@pytest.mark.parametrize("name", OF_THE_SERVICE)
def test_each_help_teaches_with_an_example_that_runs(run, service_toml, name):
    text = (command(name).help or "").replace("\\\n", " ")
    found = re.search(r"Example.*?(evenhand .+?)\n", text, flags=re.S)
    assert found is not None
    assert run(*on_a_free_port(shlex.split(found[1])[1:])).exit_code == 0
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "Example" in shown.stdout


MADE = ("keys", "create", "--scope", "audit", "--name", "an auditor")


@pytest.mark.parametrize("words", [("keys", "list"), ("audit", "verify")])
def test_json_is_one_document(run, service_toml, words):
    assert run(*MADE, "--config", "service.toml").exit_code == 0
    told = run(*words, "--config", "service.toml", "--json")
    assert told.exit_code == 0, told.output
    assert isinstance(json.loads(told.stdout), dict)
    lines = run(*words, "--config", "service.toml").stdout.splitlines()
    assert [line for line in lines if len(line) > 80 and "  " in line.strip()] == []
