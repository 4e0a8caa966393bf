"""What pages and docstrings of public names write down passes `mypy --strict` where it calls
evenhand: one run over all of it.
"""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import evenhand as eh

api = pytest.importorskip("mypy.api")

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "service" / "docs").glob("*.md")),
]
CODE = re.compile(r"```(?:python|\{code-cell\}[^\n]*)\n(.*?)```", re.DOTALL)
ONE_LINERS = """
import numpy as np
import pandas
import polars
import evenhand as eh
sample = eh.LabelledSample([[1.0]], ["a"], [1])
eh.LabelledSample([[1.0], [2.0]], np.array(["a", "b"]), (1, -1), count=[3, 2])
eh.LabelledSample(pandas.DataFrame({"x": [1.0]}), pandas.Series(["a"]), pandas.Series([1]))
eh.LabelledSample(polars.DataFrame({"x": [1.0]}), ["a"], np.array([1]))
eh.CostSensitiveProblem([[1.0]], None, [1.0], [0.0])
eh.measure([True], ["a"], [1])
eh.measure(np.array([True]), np.array(["a"]), rates="selection")
eh.measure(pandas.Series([True]), pandas.Series(["a"]), pandas.Series([1]))
sample.features.mean() + sample.label.sum()
"""
TYPES_OF_A_CALL = ("arg-type", "call-arg", "call-overload", "misc", "operator")
"""The errors that a signature may cause. A reader's own functions without annotations, names that
stand on another part of a page, and values that may be None are not ours."""
CACHE = ROOT / ".mypy_cache" / "snippets"
NOT_OURS = re.compile(r'of "(?:Axes|Figure)"|"round"')


def code_of(page: Path) -> str:
    """All code of a page, in its order, without options of cells and magics of notebooks."""
    cells = (
        re.sub(r"\A(?:---\n.*?---\n|(?::[\w-]+:.*\n)+)", "", cell, flags=re.DOTALL)
        for cell in CODE.findall(page.read_text(encoding="utf-8"))
    )
    return "\n".join(cell for cell in cells if not re.search(r"^\s*[%!]", cell, re.MULTILINE))


def example_of(thing: object) -> str:
    """The example of a docstring, with the names that it takes from its module."""
    source = "".join(
        one.source for one in doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    )
    home = inspect.getmodule(thing)
    names = set(re.findall(r"\b[A-Za-z_]\w*\b", source)) & set(vars(home) if home else ())
    lines = []
    for name in sorted(names):
        value = vars(home)[name]
        if inspect.ismodule(value):
            lines.append(f"import {value.__name__} as {name}")
        elif inspect.isclass(value) or inspect.isfunction(value):
            lines.append(f"from {value.__module__} import {name}")
    return "\n".join([*lines, source])


def written(folder: Path) -> int:
    """One module for each page and for each public name; how many."""
    modules = {"one_liners": ONE_LINERS}
    modules |= {f"page_{n}_{page.stem}": code_of(page) for n, page in enumerate(PAGES)}
    modules |= {f"example_{name}": example_of(getattr(eh, name)) for name in eh.__all__}
    modules = {re.sub(r"\W", "_", name): code for name, code in modules.items() if code.strip()}
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return len(modules)


@pytest.mark.thorough
def test_calls_that_are_written_down_have_the_types_of_their_functions(tmp_path, monkeypatch):
    folder = tmp_path / "snippets"
    folder.mkdir()
    assert written(folder) > 40
    (folder / "wrong.py").write_text("import evenhand as eh\neh.measure(1, 2, delta='small')\n")
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = true\nfollow_imports = silent\n")
    source = Path(eh.__file__).parents[1]
    monkeypatch.setenv("MYPYPATH", f"{source}:{ROOT / 'service' / 'src'}")
    words = [f"--config-file={settings}", f"--cache-dir={CACHE}", str(folder)]
    told = api.run([*words, "--hide-error-context", "--no-error-summary"])[0].splitlines()
    found = [
        line.removeprefix(f"{folder}/")
        for line in told
        if line.endswith(tuple(f"[{kind}]" for kind in TYPES_OF_A_CALL))
        and not NOT_OURS.search(line)
    ]
    assert [line for line in found if "wrong.py" not in line] == []
    assert any("delta" in line for line in found)  # the control
