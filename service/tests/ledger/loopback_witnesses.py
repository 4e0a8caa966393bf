"""A real witness on loopback: an endpoint that appends."""

import contextlib
import http.server
import threading


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

        do_GET = do_POST = _do  # noqa: N815 - names of http.server

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
    """Appends what is POSTed, and shows it."""

    def __init__(self):
        self.lines, self.away = b"", False

    def __call__(self, method, path, body):
        if self.away:
            return 503, "text/plain", b"away"
        if method == "POST":
            self.lines += body
        return 200, "application/json", self.lines if method == "GET" else b""
