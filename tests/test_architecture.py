"""ARCHITECTURE.md names the layers that the import contract holds."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_layers_are_those_of_the_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    told = TEXT.split("## What may import what")[1].split("\n\n")[2]
    assert [line.strip() for line in told.splitlines()] == [layer.strip("()") for layer in layers]
