"""What the service uses of the library: promised modules (the contract `service` of lint-imports),
and of them no name with a leading underscore.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
(CONTRACT,) = (one for one in SETTINGS["contracts"] if one["id"] == "service")
PROMISED = {line.partition(" -> ")[2] for line in CONTRACT["ignore_imports"]}
MODULES = sorted((ROOT / "service" / "src").rglob("*.py"))


def strange_imports(text):
    """Imports of the library outside the list, private names, and attributes of its modules."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.split(".")[0] == "evenhand"]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "evenhand":
            names = [one.name for one in node.names]
            found += [f"{node.module}.{name}" for name in names if name.startswith("_")]
            if node.module not in PROMISED:
                found.append(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_promised_modules_and_public_names_are_imported(path):
    assert strange_imports(path.read_text()) == []


def test_what_is_not_promised_is_seen():
    assert strange_imports("from evenhand.bounds import betting") == ["evenhand.bounds"]
    assert strange_imports("from evenhand.rounds import _rows") == ["evenhand.rounds._rows"]
    assert strange_imports("import evenhand.rounds") == ["evenhand.rounds"]
    assert strange_imports("from evenhand.rounds import Rounds") == []
