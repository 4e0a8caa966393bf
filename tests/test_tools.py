"""Nothing but tests/tools.py looks for programs, and what it says of them decides: skipped, failed
under CI, hidden, remembered.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools import TOOLS, find, hidden, need

ROOT = Path(__file__).parents[1]
HELPER = ROOT / "tests" / "tools.py"
COMMANDS = {command for tool in TOOLS.values() for command in tool.commands} | {"initdb"}
FILES = sorted(
    path
    for folder in ("tests", "service/tests")
    for path in (ROOT / folder).rglob("*.py")
    if path not in (HELPER, Path(__file__))
)


@pytest.fixture
def plain(monkeypatch):
    for name in ("CI", "EVENHAND_WITHOUT", "EVENHAND_NO_SETUP"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def looks_itself(text):
    """The lines that look for a program, start one by a name that the helper knows, or ask whether
    this is CI.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr == "which":
            yield node.lineno
        if isinstance(node, ast.Constant) and node.value in ("CI", "/usr/sbin/nginx"):
            yield node.lineno
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and first.value in COMMANDS:
                yield node.lineno


def test_no_other_test_looks_for_a_program():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in FILES
        for line in looks_itself(path.read_text())
    ]
    assert found == []


def test_who_looks_is_seen():
    for text in ("shutil.which('x')", "os.environ.get('CI')", "run(['strace', '-o'])", "('git',)"):
        assert list(looks_itself(text)) == [1]
    assert list(looks_itself("run([need('strace'), '-o'])")) == []


def test_a_hidden_program_is_skipped_and_fails_under_ci(plain, tmp_path):
    for name in ("git", "openssl"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    plain.setenv("PATH", str(tmp_path))
    assert need("openssl", "git") == str(tmp_path / "openssl")
    plain.setenv("EVENHAND_WITHOUT", "openssl, nginx")
    assert find("openssl") is None
    assert find("git") == str(tmp_path / "git")
    with pytest.raises(pytest.skip.Exception, match=r"openssl is absent.*install openssl"):
        need("git", "openssl")
    plain.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="openssl is absent"):
        need("openssl")


def test_everything_can_be_hidden_and_a_typing_error_is_named(plain):
    plain.setenv("EVENHAND_WITHOUT", "everything")
    assert hidden() == set(TOOLS)
    assert [name for name in TOOLS if find(name)] == []
    plain.setenv("EVENHAND_WITHOUT", "ngnix")
    with pytest.raises(ValueError, match="ngnix"):
        find("git")


ASKING = """
import pytest
from tests.tools import find, need

@pytest.fixture(scope="module")
def server():
    need("git")

@pytest.mark.parametrize("word", ["a b", "c"])
def test_asks(word):
    find("nginx")

def test_asks_in_a_fixture(server):
    pass

def test_asks_nothing():
    pass
"""


def test_those_who_ask_can_be_repeated_alone(tmp_path, plain):
    (tmp_path / "test_asking.py").write_text(ASKING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "EVENHAND_ASKED": str(tmp_path / "asked")}
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    subprocess.run(words, cwd=tmp_path, env=environ, check=False, capture_output=True)
    asked = sorted(set((tmp_path / "asked").read_text().splitlines()))
    assert asked == [
        "test_asking.py::test_asks[a b]",
        "test_asking.py::test_asks[c]",
        "test_asking.py::test_asks_in_a_fixture",
    ]
    again = subprocess.run(
        [*words, "-rs", *asked],
        cwd=tmp_path,
        env={**environ, "EVENHAND_WITHOUT": "everything"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stdout
    assert "2 passed, 1 skipped" in again.stdout  # find() leaves it to the test


# the set-up of `make test`


@pytest.fixture
def apt(tmp_path, plain):
    """An apt-get that writes down what it is asked for, and installs nothing; the first on PATH."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "apt-get"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked; echo "no network"; exit 100\n')
    script.chmod(0o755)

    def setup(**environ):
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, "-m", "scripts.install_tools"],
            cwd=ROOT,
            env={**os.environ, "PATH": path, **environ},
            check=False,
            capture_output=True,
            text=True,
        )
        asked = tmp_path / "asked"
        return done.returncode, done.stdout, asked.read_text() if asked.exists() else ""

    return setup


def test_what_is_left_out_is_said_in_one_line(apt):
    code, said, asked = apt(EVENHAND_WITHOUT="everything", EVENHAND_NO_SETUP="1")
    assert (code, asked, said.count("\n")) == (0, "", 1)
    assert all(name in said for name in TOOLS)
    assert "EVENHAND_WITHOUT" in said


def test_under_ci_nothing_may_be_left_out(apt):
    code, said, _ = apt(EVENHAND_WITHOUT="nginx", EVENHAND_NO_SETUP="1", CI="true")
    assert (code, "nginx" in said) == (1, True)


def test_without_setup_nothing_is_installed(apt):
    assert apt(EVENHAND_NO_SETUP="1")[2] == ""
