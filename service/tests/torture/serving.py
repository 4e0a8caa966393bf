"""A real service in a process of its own, which can be killed; and a client that speaks HTTP/1.1
over one kept connection.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from service.tests.ports import free_port
from tests.without_clocks import until

ROOT = Path(__file__).parents[3]
TOML = """[service]
port = {port}
rate = 1e9
burst = 1e9
train_every = {train_every}
idle_transaction_seconds = 1
{more}
[[product]]
name = "loan"
features = ["score"]
class = "thresholds"
limit = 0.2
{product}
"""


def folder():
    """A new place."""
    return Path(tempfile.mkdtemp(prefix="evenhand-torture-"))


class Nursery:
    """A process that has imported everything and forks a service for each line on its input: a
    restart costs no imports.
    """

    def __init__(self):
        words = [sys.executable, "-m", "service.tests.torture.run", "--nursery"]
        self.process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self, *words):
        self.process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@cache
def nursery():
    """One per process."""
    return Nursery()


class Process:
    """A service in a folder: `kind` is real, mutant (answers before the commit), dry (writes
    nothing) or verbose (logs everything). With `under` (strace and its options) it is started as a
    command of its own, otherwise it is forked."""

    def __init__(
        self, folder, kind="real", under=(), log=None, train_every=0.5, more="", product=""
    ):
        self.folder, self.kind, self.under, self.train_every = (
            folder,
            kind,
            list(under),
            train_every,
        )
        self.log = log or folder / "log"
        self.pid, self.command, self.more, self.host = None, None, more, "127.0.0.1"
        self.product = product

    def start(self):
        self.port = free_port()
        config = self.folder / "service.toml"
        text = TOML.format(
            port=self.port, train_every=self.train_every, more=self.more, product=self.product
        )
        if "idle_transaction_seconds" in self.more:
            text = text.replace("idle_transaction_seconds = 1\n", "", 1)
        config.write_text(text)
        if self.under:
            words = [
                *self.under,
                sys.executable,
                "-m",
                "service.tests.torture.run",
                str(config),
                self.kind,
                str(self.log),
            ]
            (self.folder / "pid").unlink(missing_ok=True)
            self.command = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
        else:
            self.pid = nursery().fork(config, self.kind, self.log)
        until(lambda: self.answers() or not self.alive(), "the start of the service")
        if self.command is not None and (self.folder / "pid").exists():
            # the service itself: what it runs under may be its parent, and ends with it
            self.pid = int((self.folder / "pid").read_text())
        if not self.answers():
            shown = self.log.read_text()[-2000:] if self.log.exists() else ""
            raise RuntimeError(f"the service did not start: {shown}")
        return self

    def answers(self):
        """Whether somebody listens at the port."""
        try:
            socket.create_connection((self.host, self.port)).close()
        except OSError:
            return False
        return True

    def alive(self):
        if self.command is not None:
            return self.command.poll() is None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self):
        """kill -9, and wait until the kernel has let go of its files."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.command is not None:
            self.command.wait()
            self.command = None
        until(lambda: not self.alive(), "the end of the service")
        self.pid = None

    @contextlib.contextmanager
    def running(self):
        """Started, and killed at the end."""
        self.start()
        try:
            yield self
        finally:
            self.kill()

    def memory(self):
        """Resident megabytes."""
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

    @property
    def token(self):
        return (self.folder / "token").read_text()

    def client(self):
        return Client(self.port, self.token, self.host)


class Client:
    """One kept connection; `post` gives (status, body) or None if the connection broke."""

    def __init__(self, port, token, host="127.0.0.1"):
        self.port, self.token, self.host = port, token, host
        self.reader, self.writer = None, None

    async def post(self, path, body):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.call("POST", path, content)

    async def get(self, path):
        return await self.call("GET", path, b"")

    async def call(self, method, path, content):
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {self.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            self.writer.write(head.encode() + content)
            return await self._answer()
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError, StopIteration):
            self.close()
            return None

    async def _answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split()[1])
        size = next(
            int(line.split(":")[1])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length")
        )
        return status, await self.reader.readexactly(size)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None


def processor(process):
    """Seconds of processor that a service has used, all threads."""
    return sum(ticks(process.pid)[:2]) / os.sysconf("SC_CLK_TCK")


def ticks(pid):
    """(user, system, user of its ended children, system of them, parent) of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return [int(fields[place]) for place in (11, 12, 13, 14, 1)]


def application(key, person=None, score=0.5, **more):
    return {
        "key": key,
        "person": person or key,
        "product": "loan",
        "features": [score],
        "group": "a",
        **more,
    }
