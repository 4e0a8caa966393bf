"""Install what the tests need beyond Python (tests/tools.py), or say in one line what is left out.

`make test` runs this first. As root, and by sudo under CI, it installs Debian's packages: no
service is started or set up to start, and PostgreSQL gets no cluster, for tests start their own.
Everywhere else, and with EVENHAND_NO_SETUP=1, it installs nothing.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tools import TOOLS, find, hidden

NOTHING_STARTS = (Path("/usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", 0o755)
NO_CLUSTER = (
    Path("/etc/postgresql-common/createcluster.conf"),
    "create_main_cluster = false\n",
    0o644,
)
SERVICES = {"nginx": "nginx.service", "prometheus": "prometheus.service"}


def main() -> int:
    """0, also where something is left out; under CI, 1 then."""
    under_ci = os.environ.get("CI") == "true"
    missing = [name for name in TOOLS if find(name) is None]
    wanted, failure = [name for name in missing if name not in hidden()], ""
    if wanted and not os.environ.get("EVENHAND_NO_SETUP") and shutil.which("apt-get"):
        if os.geteuid() == 0:
            failure = install(packages(wanted))
        elif under_ci and shutil.which("sudo"):
            as_root = ["sudo", "-n", "env", "CI=true", "PYTHONDONTWRITEBYTECODE=1"]
            again = [*as_root, sys.executable, "-m", "scripts.install_tools"]
            return subprocess.run(again, check=False).returncode
        missing = [name for name in TOOLS if find(name) is None]
    if not missing:
        return 0
    way_out = "EVENHAND_WITHOUT hides them"
    if wanted:
        way_out = f"To run them too: apt-get install {' '.join(packages(wanted))}"
    print(f"Left out{failure}: the tests that need {', '.join(missing)}. {way_out}", flush=True)
    return int(under_ci)


def packages(names: list[str]) -> list[str]:
    """Debian's packages of these tools, each once."""
    return list(dict.fromkeys(TOOLS[name].package for name in names))


def install(wanted: list[str]) -> str:
    """Install packages as root; what failed and why, or nothing."""
    print(f"Installing {' '.join(wanted)} (EVENHAND_NO_SETUP=1 installs nothing) ...", flush=True)
    steps = (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
    )
    with written(*NOTHING_STARTS), written(*NO_CLUSTER):
        for step in steps:
            done = subprocess.run(
                step,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                said = done.stdout.strip().splitlines() or ["it says nothing"]
                return f" ({' '.join(step[:2])}: {said[-1]})"
    systemctl = shutil.which("systemctl")
    for package in wanted:
        if systemctl is not None and package in SERVICES:  # nor at the machine's next start
            stop = [systemctl, "disable", "-q", SERVICES[package]]
            subprocess.run(stop, check=False, capture_output=True)
    return ""


@contextlib.contextmanager
def written(path: Path, text: str, mode: int) -> Iterator[None]:
    """The file has this text and mode during the block, and afterwards what it had before."""
    before = (path.read_bytes(), path.stat().st_mode) if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    try:
        yield
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before[0])
            path.chmod(before[1])


if __name__ == "__main__":
    sys.exit(main())
