"""A PostgreSQL server and a standby that follows it by streaming replication, on loopback."""

import contextlib
import pathlib
import tempfile

import psycopg
from service.tests.ledger import conftest as postgres
from service.tests.ports import free_port
from tests.without_clocks import until

NAME = "standby1"
_OPTIONS = "-c listen_addresses=127.0.0.1 -c fsync=off -c unix_socket_directories="


class Replicated:
    """Both servers; `url` finds whichever of them can be written."""

    def __init__(self, stack):
        self.tools = postgres.tools()
        self.homes = []
        for name in ("primary", "standby"):
            home = pathlib.Path(tempfile.mkdtemp(prefix=f"evenhand-{name}-", dir="/tmp"))
            stack.enter_context(postgres.ends_with_this_process(home, home / "data"))
            self.homes.append(home)
        self.ports = [free_port(), free_port()]
        hosts = "&".join(f"host=127.0.0.1:{port}" for port in self.ports)
        self.url = f"postgresql://evenhand@/ledger?{hosts}&target_session_attrs=read-write"

    def run(self, which, tool, *words):
        home = self.homes[which]
        postgres._runner(home)(self.tools / tool, "-D", home / "data", *words)

    def start(self, which):
        home = self.homes[which]
        options = f"{_OPTIONS}{home} -p {self.ports[which]}"
        self.run(which, "pg_ctl", "-w", "-t", "300", "-o", options, "-l", home / "log", "start")

    def ask(self, which, question, database="postgres"):
        place = f"postgresql://evenhand@127.0.0.1:{self.ports[which]}/{database}"
        with psycopg.connect(place, autocommit=True) as connection:
            found = connection.execute(question)
            return found.fetchall() if found.description else None

    def begin(self):
        self.run(0, "initdb", "-U", "evenhand", "-A", "trust", "-N")
        self.start(0)
        self.ask(0, "CREATE DATABASE ledger")
        primary = f"host=127.0.0.1 port={self.ports[0]} user=evenhand"
        self.run(1, "pg_basebackup", "-d", primary, "-R", "-X", "stream", "-c", "fast")
        follows = f"primary_conninfo = '{primary} application_name={NAME}'\n"
        with open(self.homes[1] / "data" / "postgresql.auto.conf", "a") as settings:
            settings.write(follows)
        self.start(1)
        return self

    def synchronous(self, names):
        """Whether a commit waits until the standby has it."""
        self.ask(0, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.ask(0, "SELECT pg_reload_conf()")
        state = "sync" if names else "async"
        question = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        until(lambda: self.ask(0, question) == [(state,)], f"replication is {state}")

    def fail_over(self):
        """The server is gone without a word, and the standby takes its place."""
        self.run(0, "pg_ctl", "-m", "immediate", "stop")
        self.run(1, "pg_ctl", "-w", "-t", "300", "promote")


@contextlib.contextmanager
def replicated():
    """A server with a standby; both end with the block, or with this process."""
    with contextlib.ExitStack() as stack:
        yield Replicated(stack).begin()
