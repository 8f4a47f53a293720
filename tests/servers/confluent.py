"""A schema registry on loopback, which speaks Confluent's HTTP API and misbehaves when asked to."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Misbehave = Callable[[BaseHTTPRequestHandler], bool]
"""Answers in the registry's stead. Returns whether it did."""


@dataclass
class ConfluentServer:
    """schemas: answers by id. subjects: answers of all versions of each. asked: paths, in order.
    login: user and password that it wants. serialized: of Protobuf, what it gives in the stead of
    texts when it is asked for that."""

    url: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    serialized: dict[str, str] = field(default_factory=dict)
    login: tuple[str, str] | None = None
    misbehave: Misbehave | None = None

    def register(
        self,
        text: str,
        *,
        kind: str = "avro",
        subject: str = "",
        references: tuple[tuple[str, int], ...] = (),
    ) -> int:
        """Return the id of a schema. references: subjects and versions."""
        said: dict[str, Any] = {"schema": text}
        if kind != "avro":
            said["schemaType"] = kind.upper()
        if references:
            said["references"] = [
                {"name": subject, "subject": subject, "version": version}
                for subject, version in references
            ]
        known = {json.dumps(schema): id_ for id_, schema in self.schemas.items()}
        id_ = known.get(json.dumps(said), len(self.schemas) + 1)
        self.schemas[id_] = said
        self.subjects.setdefault(subject, []).append(said)
        return id_

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        path, _, query = path.partition("?")
        status, said = self._found(path)
        if query and status == 200:
            if query != "format=serialized" or said.get("schemaType") != "PROTOBUF":
                return 500, {"error_code": 500, "message": f"Unsupported format {query}"}
            said = said | {"schema": self.serialized.get(said["schema"], said["schema"])}
        return status, said

    def _found(self, path: str) -> tuple[int, dict[str, Any]]:
        match path.strip("/").split("/"):
            case ["schemas", "ids", id_] if int(id_) in self.schemas:
                return 200, self.schemas[int(id_)]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", name, "versions", version]:
                return self._version(unquote(name), version)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _version(self, name: str, version: str) -> tuple[int, dict[str, Any]]:
        versions = self.subjects.get(name)
        if versions is None:
            return 404, {"error_code": 40401, "message": f"Subject '{name}' not found."}
        number = len(versions) if version == "latest" else int(version)
        if not 0 < number <= len(versions):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        return 200, {"subject": name, "version": number, "id": 0} | versions[number - 1]


@contextmanager
def confluent_server(tls: ssl.SSLContext | None = None) -> Iterator[ConfluentServer]:
    """Have one until the `with` ends."""
    registry = ConfluentServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.asked.append(self.path)
            if registry.misbehave is not None and registry.misbehave(self):
                self.close_connection = True
                return
            status, said = registry.answer(self.path)
            if registry.login is not None:
                wanted = base64.b64encode(":".join(registry.login).encode()).decode()
                if self.headers["Authorization"] != f"Basic {wanted}":
                    status, said = 401, {"error_code": 401, "message": "Unauthorized"}
            reply(self, status, json.dumps(said).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that went away

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
    thread.start()
    registry.url = f"{scheme}://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Send a whole answer."""
    handler.send_response(status)
    handler.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def drip(handler: BaseHTTPRequestHandler, head: bytes, piece: bytes, *, every: float) -> None:
    """Send a little, again and again, until the other side has gone."""
    try:
        handler.wfile.write(head)
        while True:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(every)
    except OSError:
        pass
