"""What is published says the same everywhere."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import evenhand

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    assert recipe["context"]["version"] == version
    assert f"## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()
    assert evenhand.__version__ == version


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    asked = {one.replace(" ", "") for one in recipe["requirements"]["run"]}
    assert asked - {f"python{PROJECT['requires-python']}"} == set(PROJECT["dependencies"])


def test_the_changelog_has_a_date_for_every_version():
    for version, rest in re.findall(
        r"^## \[(.*?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ):
        assert version == "Unreleased" or re.fullmatch(r" - \d{4}-\d\d-\d\d", rest), version


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_there_is(path):
    """Every make target and every script that a workflow calls exists; no token is stored."""
    text = path.read_text()
    workflow = yaml.safe_load(text)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            for words in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                assert words in targets
            for script in re.findall(r"scripts/\S+", step.get("run", "")):
                assert (ROOT / script).exists()
    assert "secrets." not in text
    matrix = workflow["jobs"].get("test", {}).get("strategy", {}).get("matrix", {})
    declared = [word[-4:] for word in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", word)]
    assert matrix.get("python", declared) == declared


def test_issue_forms_are_forms():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= set(form)


def test_what_is_imported_is_declared():
    """Every package that the source imports is a dependency of the core or of an extra."""
    names = {"sklearn": "scikit-learn", "prometheus_client": "prometheus-client"}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    declared = {
        re.split(r"[><=\[ ]", one)[0].replace("_", "-") for group in groups for one in group
    }
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    imported = {names.get(name, name) for name in imported}
    foreign = imported - set(sys.stdlib_module_names) - {"evenhand", "__future__"}
    assert {name.replace("_", "-") for name in foreign} <= declared | OPTIONAL


OPTIONAL = {"xgboost", "catboost", "IPython"}
"""Used only where they are installed; nothing asks for them."""
