"""Ledgers for the tests: SQLite in a temporary directory, PostgreSQL from a server that is started
once.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid

import pytest
from tests.ledger.helpers import Clock, opened, published


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path, clock):
    with opened(path, clock) as found:
        yield found


@pytest.fixture
def policy(ledger):
    return published(ledger)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """Both kinds of databases, empty."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def postgres_url(postgres_server):
    """A new database of its own."""
    import psycopg

    name = f"ledger_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"


@pytest.fixture(scope="session")
def postgres_server():
    """initdb and pg_ctl as an unprivileged user, on loopback, on a free port; fsync off, for nobody
    pulls the plug of a test.
    """
    tools = _postgres_tools()
    if tools is None:
        skip(
            "PostgreSQL's initdb and pg_ctl are not installed (Debian: apt-get install postgresql)"
        )
    home = pathlib.Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp"))
    run, port = _runner(home), _free_port()
    try:
        run(tools / "initdb", "-D", home / "data", "-U", "evenhand", "-A", "trust", "-N")
        settings = (
            f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={home} "
            f"-c fsync=off -p {port}"
        )
        run(
            tools / "pg_ctl",
            "-D",
            home / "data",
            "-w",
            "-t",
            "300",
            "-o",
            settings,
            "-l",
            home / "log",
            "start",
        )
        yield f"postgresql://evenhand@127.0.0.1:{port}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run(tools / "pg_ctl", "-D", home / "data", "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)


def skip(reason):
    """Skip; in CI, fail: there everything is installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; in CI a skip is a failure: run scripts/ci-setup.sh")
    pytest.skip(reason)


def _postgres_tools():
    found = sorted(
        pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda p: int(p.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("pg_ctl")
    return pathlib.Path(on_path).parent if on_path else None


def _runner(home):
    """Run a command; root becomes somebody else first, for PostgreSQL refuses root."""
    prefix = []
    if os.geteuid() == 0:
        user = next(
            (u for u in ("postgres", "nobody") if u in {p.pw_name for p in pwd.getpwall()}), None
        )
        if user is None or shutil.which("setpriv") is None:
            skip("there is no unprivileged user to run PostgreSQL")
        entry = pwd.getpwnam(user)
        os.chown(home, entry.pw_uid, entry.pw_gid)
        prefix = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]

    def run(*words):
        quiet = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.STDOUT,
            "stdin": subprocess.DEVNULL,
        }
        subprocess.run([*prefix, *map(str, words)], check=True, cwd=home, **quiet)

    return run


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
