"""The measures of `scripts/house.py` on a package that is small enough to count by hand."""

import pytest
from scripts.house import Follower, Walk, sizes

TOP = '''"""A module."""

import math


def area(radius):
    """Two
    lines."""
    return _square(radius) * math.pi


def _square(side):  # called once
    return side * side


def _never(a, b, c, d, e, f, g):
    return _twice(_twice(a))


def _twice(x):
    return 2 * x


class Same: ...
'''


@pytest.fixture
def package(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "top.py").write_text(TOP)
    (tmp_path / "inner" / "other.py").write_text(f"class Same: ...\n# {'x' * 120}\n")
    return tmp_path


def test_sizes_are_counted_by_folder(package):
    measured = sizes(package)
    top, inner = measured.folders["(top)"], measured.folders["inner"]
    assert (top.files, top.lines, top.code) == (1, TOP.count("\n"), 10)
    assert (top.private, top.called_once) == (3, 1)
    assert sorted(top.function_lengths) == [2, 2, 2, 4]
    assert (inner.files, inner.lines, inner.code) == (1, 2, 1)
    assert (measured.whole.files, measured.whole.code) == (2, 11)
    assert measured.repeated_classes == {"Same": 2}
    assert measured.many_parameters == {"top.py:_never": 7}
    assert measured.long_lines == {"inner/other.py:2": 122}
    assert measured.long_functions == {}


def test_a_walk_counts_changes_of_file():
    walk = Walk(["cli/a.py", "words.py", "cli/a.py", "cli/b.py"], functions=9)
    assert walk.files == ["cli/a.py", "words.py", "cli/b.py"]
    assert (walk.switches, walk.folder_switches) == (3, 2)
    assert Walk().switches == 0


def test_a_function_is_read_once_and_only_during_the_walk(tmp_path):
    import sys

    code = compile("def one():\n    two()\n\n\ndef two():\n    pass\n", f"{tmp_path}/m.py", "exec")
    names = {}
    exec(code, names)
    follower = Follower(tmp_path)
    before = sys.getprofile()
    sys.setprofile(follower.profile)
    try:
        names["one"]()
        with follower.walk("twice"):
            names["one"]()
            names["two"]()
    finally:
        sys.setprofile(before)
    assert follower.walks["twice"] == Walk(["m.py"], 2)
