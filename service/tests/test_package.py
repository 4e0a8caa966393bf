"""The distribution of the service: the version of the library, and what it imports is declared."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

SERVICE = Path(__file__).parents[1]
PROJECT = tomllib.loads((SERVICE / "pyproject.toml").read_text())["project"]
LIBRARY = tomllib.loads((SERVICE.parent / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_library_s():
    version = LIBRARY["version"]
    assert PROJECT["version"] == version
    assert f"evenhand=={version}" in PROJECT["dependencies"]
    assert f"## [{version}] - " in (SERVICE / "CHANGELOG.md").read_text()
    assert (SERVICE / "LICENSE").read_text() == (SERVICE.parent / "LICENSE").read_text()


def test_the_readme_works_on_an_index():
    """Its links lead to the addresses, if there are any, and to nothing else."""
    pytest.importorskip("hatchling", reason="the metadata are written with hatchling's help")
    copy = (SERVICE / "hatch_build.py").read_text(encoding="utf-8")
    assert copy == (SERVICE.parent / "hatch_build.py").read_text(encoding="utf-8")
    spec = importlib.util.spec_from_file_location("service_hatch_build", SERVICE / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = (SERVICE / "README.md").read_text(encoding="utf-8")
    urls = {"Source": "https://x.test/s", "Documentation": "https://x.test/d"}
    shown = hook.on_an_index(text, urls, "1.2", hook.FOLDERS[PROJECT["name"]])
    targets = re.findall(r"\]\(([^)]+)\)", shown)
    assert "https://x.test/s/blob/v1.2/README.md" in targets
    assert "https://x.test/d/service/first-service.html" in targets
    assert [one for one in targets if not one.startswith("https://x.test/")] == []
    assert "](" not in hook.on_an_index(text, {}, "1.2", "service")


def test_what_is_imported_is_declared():
    names = {
        "prometheus_client": "prometheus-client",
        "evenhand_service": "evenhand",
        "opentelemetry": "opentelemetry-sdk",
    }
    given = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["traces"]]
    declared = {re.split(r"[><=\[ ]", one)[0] for one in given}
    imported = set()
    for path in (SERVICE / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    foreign = {names.get(name, name) for name in imported} - set(sys.stdlib_module_names)
    assert {name.replace("_", "-") for name in foreign} <= declared


def test_the_commands_are_those_that_the_library_names():
    from evenhand.cli import OF_THE_SERVICE

    assert set(PROJECT["entry-points"]["evenhand.commands"]) == set(OF_THE_SERVICE)


def test_no_server_is_asked_for_by_the_library():
    groups = [LIBRARY["dependencies"], *LIBRARY["optional-dependencies"].values()]
    asked = {re.split(r"[><=\[ ]", one)[0] for group in groups for one in group}
    servers = {"fastapi", "starlette", "uvicorn", "httptools", "sqlalchemy", "psycopg", "pydantic"}
    assert not servers & asked
    assert servers <= {re.split(r"[><=\[ ]", one)[0] for one in PROJECT["dependencies"]}


def test_compose_builds_what_there_is():
    compose = yaml.safe_load((SERVICE / "compose.yaml").read_text())
    build = compose["x-service"]["build"]
    assert (SERVICE / build["context"] / build["dockerfile"]).resolve() == SERVICE / "Dockerfile"
