"""Calls of functions through the emulator: by `aws lambda invoke`, and by users of boto3.

The emulator knows each function by name and role, judges who may call it, and hands the event on to
a server of ours on loopback (MiniStack's proxy mode), which lets the runner do it. The answer tells
value and error, which `emulator_process` takes apart.
"""

from __future__ import annotations

import hmac
import random
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

from localcloud.resources.calls import RUNTIME, empty_code
from localcloud.resources.stores import taken_over
from localcloud.runner.workers import LOAD_SECONDS_MAX, Outcome
from localcloud.services.amazon import Amazon
from localcloud.templates.running import MIB, FunctionSpec

PROXY_VARIABLE = "MINISTACK_LAMBDA_PROXY_URL"
"""Variable that says to the emulator where a function is."""
SECRET_BITS = 256
TIMEOUT_SECONDS_MAX = 900
"""Greatest timeout of any function, in seconds. The emulator waits longer than the runner, who ends
what takes too long: loading a function has time of its own."""

Invoke = Callable[[str, object], Outcome]


class InvocationServer:
    """Calls functions for the emulator until it is closed. invoke: calls one by its name.

    Its address holds a secret, which only the emulator knows. rng: makes it.
    """

    def __init__(self, invoke: Invoke, *, rng: random.Random) -> None:
        secret = f"{rng.getrandbits(SECRET_BITS):x}"

        class Answers(BaseHTTPRequestHandler):
            """One call: the event is the body, the function's name the path."""

            def do_POST(self) -> None:
                given, _, name = self.path.strip("/").partition("/")
                if not hmac.compare_digest(given.encode(), secret.encode()):
                    self.send_error(HTTPStatus.FORBIDDEN)
                    return
                event = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
                body = msgspec.json.encode(invoke(name, event))
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing: the address holds the secret."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._url = f"http://127.0.0.1:{self._server.server_port}/{secret}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def register(self, functions: Mapping[str, FunctionSpec], amazon: Amazon) -> None:
        """Tell the emulator of functions; those of the same names are taken over."""
        client = amazon.client("lambda")
        for function in functions.values():
            configuration = self._configuration(function)
            with taken_over("ResourceConflictException"):
                client.create_function(Code={"ZipFile": empty_code()}, **configuration)
            client.update_function_configuration(**configuration)

    def _configuration(self, function: FunctionSpec) -> dict[str, Any]:
        called_at = {PROXY_VARIABLE: f"{self._url}/{function.name}"}
        return {
            "FunctionName": function.name,
            "Runtime": RUNTIME,
            "Role": function.role,
            "Handler": function.handler,
            "Timeout": _waited_seconds(function),
            "MemorySize": function.memory_bytes // MIB,
            "Environment": {"Variables": {**function.environment, **called_at}},
        }


def _waited_seconds(function: FunctionSpec) -> int:
    return min(function.timeout_seconds + int(LOAD_SECONDS_MAX), TIMEOUT_SECONDS_MAX)


def forget_functions(functions: Mapping[str, FunctionSpec], amazon: Amazon) -> None:
    """Let the emulator know none of these functions."""
    for name in functions:
        with taken_over("ResourceNotFoundException"):
            amazon.client("lambda").delete_function(FunctionName=name)
