"""The one place that looks for the programs that tests need and Python does not bring, and that
decides what their absence means.

A test asks `need("nginx")` and gets the path. Where the program is absent the test is skipped;
under CI=true, where everything is installed, it fails. EVENHAND_WITHOUT=nginx,browser hides
programs, EVENHAND_WITHOUT=everything all of them; EVENHAND_ASKED names a file to which each test
that asks is added, so that these alone can be repeated without the programs (.ci/run).
scripts/install_tools.py installs what is missing.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Tool:
    """`package`: Debian's. `commands`: any of them will do. `library`: a shared library instead.
    `folder`: where versions lie beside each other, the newest last.
    """

    package: str
    commands: tuple[str, ...] = ()
    library: str = ""
    folder: Path | None = field(default=None)


TOOLS = {
    "nginx": Tool("nginx", ("nginx",)),
    "postgresql": Tool("postgresql", ("pg_ctl",), folder=Path("/usr/lib/postgresql")),
    "psql": Tool("postgresql-client", ("psql",)),
    "browser": Tool("chromium", ("chromium", "google-chrome")),
    "strace": Tool("strace", ("strace",)),
    "promtool": Tool("prometheus", ("promtool",)),
    "systemd-analyze": Tool("systemd", ("systemd-analyze",)),
    "faketime": Tool("faketime", ("faketime",)),
    "ip": Tool("iproute2", ("ip",)),
    "mount": Tool("mount", ("mount",)),
    "setpriv": Tool("util-linux", ("setpriv",)),
    "curl": Tool("curl", ("curl",)),
    "openssl": Tool("openssl", ("openssl",)),
    "git": Tool("git", ("git",)),
    "libatomic": Tool("libatomic1", library="libatomic.so.1"),  # the driver of browsers needs it
    "libgomp": Tool("libgomp1", library="libgomp.so.1"),  # LightGBM needs it
}


def find(name: str) -> str | None:
    """The path of a program (the name of a library), or None where it is absent or hidden."""
    _remember_who_asks()
    if name in hidden():
        return None
    tool = TOOLS[name]
    if tool.library:
        return _loaded(tool.library)
    for command in tool.commands:
        if tool.folder is not None:
            versions = sorted(tool.folder.glob(f"*/bin/{command}"), key=_version)
            if versions:
                return str(versions[-1])
        found = shutil.which(command) or shutil.which(command, path="/usr/sbin:/sbin")
        if found is not None:
            return found
    return None


def need(name: str, *others: str) -> str:
    """The path of the first; without one of them the test is skipped, or fails in CI."""
    for one in (name, *others):
        if find(one) is None:
            absent(f"{one} is absent (Debian: apt-get install {TOOLS[one].package})")
    path = find(name)
    assert path is not None
    return path


def need_trace() -> str:
    """strace, where it may trace. Where it may not, that is the machine's choice, also in CI."""
    strace = need("strace")
    tried = subprocess.run([strace, "-o", "/dev/null", "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("strace may not trace here: give the container CAP_SYS_PTRACE")
    return strace


def absent(reason: str) -> None:
    """Skip; in CI, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; under CI nothing is left out: run scripts/install_tools.py")
    pytest.skip(reason)


def hidden() -> set[str]:
    """What EVENHAND_WITHOUT names."""
    names = {name.strip() for name in os.environ.get("EVENHAND_WITHOUT", "").split(",")} - {""}
    if "everything" in names:
        return set(TOOLS)
    if names - set(TOOLS):
        raise ValueError(
            f"EVENHAND_WITHOUT names {', '.join(sorted(names - set(TOOLS)))}, which no test asks "
            f"for. Hint: everything, or some of {', '.join(TOOLS)}."
        )
    return names


def _remember_who_asks() -> None:
    place, test = os.environ.get("EVENHAND_ASKED"), os.environ.get("PYTEST_CURRENT_TEST")
    if place and test:
        with open(place, "a", encoding="utf-8") as file:  # one write: workers share the file
            file.write(test.rpartition(" ")[0] + "\n")


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parts[-3].split(".") if part.isdigit())


def _loaded(library: str) -> str | None:
    if not sys.platform.startswith("linux"):
        return library  # other systems name it otherwise
    try:
        ctypes.CDLL(library)
    except OSError:
        return None
    return library
