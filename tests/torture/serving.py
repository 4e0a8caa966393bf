"""A real service in a process of its own, which can be killed; and a client that speaks HTTP/1.1 over one kept connection."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time

TOML = """[service]
port = {port}
rate = 1e9
burst = 1e9
train_every = 0.5

[[product]]
tenant = "bank"
name = "loan"
features = ["score"]
class = "thresholds"
limit = 0.2
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """`python -m tests.torture.run` in a folder; `kind` is real, mutant (answers before the commit) or dry (writes nothing)."""

    def __init__(self, folder, kind="real"):
        self.folder, self.kind, self.port = folder, kind, free_port()
        self.seconds = 0.0
        self.process = None

    def start(self):
        self.port = free_port()
        (self.folder / "service.toml").write_text(TOML.format(port=self.port))
        began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.run", str(self.folder / "service.toml"), self.kind],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while time.monotonic() - began < 60:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.2):
                    self.seconds = time.monotonic() - began
                    return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the service did not start")

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def memory(self):
        """Resident megabytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

    @property
    def token(self):
        return (self.folder / "token").read_text()


class Client:
    """One kept connection; `post` gives (status, body) or None if the connection broke."""

    def __init__(self, port, token):
        self.port, self.token, self.reader, self.writer = port, token, None, None

    async def post(self, path, body):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            self.writer.write(head.encode() + content)
            return await self._answer()
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError):
            self.close()
            return None

    async def _answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split()[1])
        size = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length"))
        return status, await self.reader.readexactly(size)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None


def application(key, person=None, score=0.5):
    return {"key": key, "person": person or key, "product": "loan", "features": [score], "group": "a"}
