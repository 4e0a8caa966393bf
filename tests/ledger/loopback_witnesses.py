"""Real witnesses on loopback: an endpoint that appends, a time stamp authority (openssl ts), and a
witness of transparency logs by the letter of C2SP's tlog-witness.
"""

import base64
import contextlib
import http.server
import subprocess
import threading

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenhand.ledger.standalone_verifier import Note, consistent, key_id

CONFIG = """[tsa]
default_tsa = here
[here]
serial = serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
"""


@contextlib.contextmanager
def served(answer):
    """The URL of a server that answers (method, path, body) with (status, type, body)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _do(self):
            size = int(self.headers.get("Content-Length", 0))
            status, kind, body = answer(self.command, self.path, self.rfile.read(size))
            self.send_response(status)
            if status // 100 == 3:  # the body is where to
                self.send_header("Location", body.decode())
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = _do  # noqa: N815 - names of http.server

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Keeper:
    """Appends what is POSTed, keeps what is PUT under its path once, and shows both."""

    def __init__(self):
        self.lines, self.objects, self.away = b"", {}, False

    def __call__(self, method, path, body):
        if self.away:
            return 503, "text/plain", b"away"
        if method == "POST":
            self.lines += body
        elif method == "PUT":
            if path in self.objects:
                return 409, "text/plain", b"an object is kept as it is"
            self.objects[path] = body
        return 200, "application/json", self.lines if method == "GET" else b""


class TimestampAuthority:
    """openssl ts, behind HTTP; its root certificate is `root`."""

    def __init__(self, folder):
        self.folder, self.root = folder, folder / "root.pem"
        (folder / "tsa.cnf").write_text(CONFIG)
        (folder / "serial").write_text("01\n")
        (folder / "use.cnf").write_text(
            "extendedKeyUsage=critical,timeStamping\nbasicConstraints=CA:FALSE\n"
            "keyUsage=critical,digitalSignature\nsubjectKeyIdentifier=hash\n"
        )
        new = ["req", "-newkey", "rsa:2048", "-nodes"]
        self._run(*new, "-x509", "-subj", "/CN=root", "-keyout", "root.key", "-out", "root.pem")
        self._run(*new, "-subj", "/CN=tsa", "-keyout", "tsa.key", "-out", "tsa.csr")
        sign = ["x509", "-req", "-in", "tsa.csr", "-CA", "root.pem", "-CAkey", "root.key"]
        self._run(*sign, "-CAcreateserial", "-extfile", "use.cnf", "-out", "tsa.pem")

    def _run(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def __call__(self, method, path, body):
        (self.folder / "query").write_bytes(body)
        self._run(
            *("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-signer", "tsa.pem"),
            *("-inkey", "tsa.key", "-out", "reply"),
        )
        return 200, "application/timestamp-reply", (self.folder / "reply").read_bytes()


class Cosigner:
    """tlog-witness: it cosigns a checkpoint that continues the last one, and nothing else."""

    def __init__(self, log_key, name="witness.example/w1", at=1_700_000_000):
        self.log_key, self.name, self.at = bytes.fromhex(log_key), name, at
        self._key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        self.public_key = self._key.public_key().public_bytes_raw()
        self.seen = (0, b"")

    def __call__(self, method, path, body):
        if (method, path) != ("POST", "/add-checkpoint"):
            return 404, "text/plain", b""
        proof, _, checkpoint = body.decode().partition("\n\n")
        first, *lines = proof.splitlines()
        note, old = Note.parse(checkpoint), int(first.removeprefix("old "))
        if not note.signed_by(self.log_key):
            return 403, "text/plain", b""
        if old > note.size:
            return 400, "text/plain", b""
        if old != self.seen[0]:
            return 409, "text/x.tlog.size", f"{self.seen[0]}\n".encode()
        way = [base64.b64decode(line) for line in lines]
        if not consistent(self.seen, (note.size, note.root), way):
            return (409 if old == note.size else 422), "text/plain", b""
        self.seen = (note.size, note.root)
        message = f"cosignature/v1\ntime {self.at}\n{note.text}".encode()
        signature = self.at.to_bytes(8, "big") + self._key.sign(message)
        coded = base64.b64encode(key_id(self.name, 4, self.public_key) + signature).decode()
        return 200, "text/plain", f"\u2014 {self.name} {coded}\n".encode()
