"""Debian's nginx in front of a service, with the configuration that is shipped."""

import contextlib
import os
import re
import subprocess

from service.tests.ports import free_port
from service.tests.torture.serving import ROOT, folder
from tests.tools import need
from tests.without_clocks import until

SHIPPED = ROOT / "service" / "deploy" / "nginx.conf"


def configuration(place, port, upstreams, change=(), secure=False):
    """The shipped text for a port of loopback, with everything that is written in `place`. secure:
    with TLS. change: (before, after), for a mutant or a certificate.
    """
    text = SHIPPED.read_text(encoding="utf-8")
    temporary = "".join(
        f"    {kind}_temp_path {place}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""  # a folder of root's is closed to others
    shipped = "server 127.0.0.1:8377 "
    options = text[text.index(shipped) + len(shipped) :].split(";")[0]
    servers = " ".join(f"server 127.0.0.1:{one} {options};" for one in upstreams)
    changes = [
        ("pid /run/nginx.pid;", f"{user}pid {place}/pid;"),
        ("worker_processes auto;", "worker_processes 1;"),
        ("http {\n", f"http {{\n{temporary}"),
        (f"{shipped}{options};", servers),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port}{' ssl' if secure else ''};"),
        *change,
    ]
    for before, after in changes:
        if before not in text:
            raise ValueError(f"{SHIPPED} has no {before!r}")
        text = text.replace(before, after)
    return text if secure else re.sub(r"^ +ssl_.*\n", "", text, flags=re.M)


@contextlib.contextmanager
def nginx(*upstreams, change=(), secure=False):
    """The port at which an nginx passes on to these ports of this machine."""
    program = need("nginx")
    place, port = folder(), free_port()
    (place / "nginx.conf").write_text(configuration(place, port, upstreams, change, secure))
    words = [program, "-p", str(place), "-c", str(place / "nginx.conf"), "-g", "daemon off;"]
    with (place / "log").open("w") as log, subprocess.Popen(words, stderr=log) as running:
        try:
            until(
                lambda: (place / "pid").exists() or running.poll() is not None,
                "the start of nginx",
            )
            if running.poll() is not None:
                raise RuntimeError(f"nginx did not start: {(place / 'log').read_text()[-1000:]}")
            yield port
        finally:
            running.terminate()


@contextlib.contextmanager
def behind(process):
    """The service running behind nginx, which its clients then ask; the mutant `unproxied` is asked
    itself.
    """
    with process.running():
        if process.kind == "unproxied":
            yield process
            return
        with nginx(process.port) as port:
            process.port = port
            yield process
