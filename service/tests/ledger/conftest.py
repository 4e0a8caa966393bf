"""Ledgers for the tests: SQLite in a temporary directory, PostgreSQL from a server that is started
once.
"""

import contextlib
import os
import pathlib
import pwd
import shlex
import shutil
import subprocess
import tempfile
import uuid

import pytest
from service.tests.ledger.helpers import Clock, opened, published
from service.tests.ports import free_port
from tests.tools import absent, need


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
    """A new database of its own, dropped after the test: a folder of hundreds of databases takes a
    minute to remove.
    """
    import psycopg

    need("postgresql")  # each test by itself, not only the first for whom the server is started
    name = f"ledger_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres_server}/{name}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_server():
    """initdb and pg_ctl as an unprivileged user, on loopback, on a free port; fsync off, for nobody
    pulls the plug of a test.
    """
    need("postgresql")
    home = pathlib.Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp"))
    run, port, data = _runner(home), free_port(), home / "data"
    options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
    with ends_with_this_process(home, data):
        run(tools() / "initdb", "-D", data, "-U", "evenhand", "-A", "trust", "-N")
        words = ("-w", "-t", "300", "-o", f"{options} -p {port}", "-l", home / "log", "start")
        run(tools() / "pg_ctl", "-D", data, *words)
        yield f"postgresql://evenhand@127.0.0.1:{port}"


@contextlib.contextmanager
def ends_with_this_process(home, data):
    """Stop the server in `data` and remove `home` at the end of the block, or of this process.

    A shell beside us waits for the end of a pipe whose other end only this process holds. So it
    does its work however we end, SIGKILL included; signals to a whole group of processes, such as
    Ctrl-C, do not reach it.
    """
    stop = shlex.join(map(str, [tools() / "pg_ctl", "-D", data, "-m", "immediate"]))
    script = f"read -r _; {stop} stop; rm -rf {shlex.quote(str(home))}"
    shell = subprocess.Popen(
        [*_unprivileged(home), "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        shell.communicate()
        shutil.rmtree(home, ignore_errors=True)  # what another user has put there


def tools():
    """The folder of initdb, pg_ctl and the other tools of a server."""
    return pathlib.Path(need("postgresql")).parent


def _unprivileged(home):
    """What stands before a command, and who owns `home`: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return []
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = users.get("postgres", users.get("nobody"))
    setpriv = need("setpriv")
    if entry is None:
        absent("an unprivileged user who could run PostgreSQL is absent")
    os.chown(home, entry.pw_uid, entry.pw_gid)
    return [setpriv, f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def _runner(home):
    """Run a command; root becomes somebody else first."""
    prefix = _unprivileged(home)
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)

    def run(*words):
        subprocess.run([*prefix, *map(str, words)], check=True, cwd=home, **quiet)

    return run
