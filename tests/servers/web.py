"""A web server on loopback that gives files, and fails as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class WebServer:
    """files: bodies by path. fails: status by path. cut: paths whose body ends too early."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)


@contextmanager
def web_server() -> Iterator[WebServer]:
    """Have one until the `with` ends."""
    told = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            status = told.fails.get(path, 200 if path in told.files else 404)
            body = told.files.get(path, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hash(body)}"')
            self.end_headers()
            if status == 200:
                self.wfile.write(body[: len(body) // 2] if path in told.cut else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
