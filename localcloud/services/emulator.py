"""MiniStack on loopback, started and stopped with a local cloud."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from lakebed.errors import InvalidError, UnavailableError
from lakebed.ports.clock import Clock
from localcloud.programs import shifted_time

ACCOUNT = "000000000000"
REGION = "eu-central-2"
"""A young one: in older regions version 1 of `aws` sends requests to SQS to names of its own
(`awscli/customizations/overridesslcommonname.py`), whatever `AWS_ENDPOINT_URL` says."""
ROOT_KEY = "test"
"""Access key of the account's root, whom nothing is forbidden: the user's own key, and ours."""

PROGRAM = Path(shifted_time.__file__).with_name("emulator_process.py")
"""Not imported: it changes MiniStack where it is loaded."""
READY_SECONDS_MAX = 120.0
POLL_SECONDS = 0.05
STOP_SECONDS_MAX = 15.0
LOG_CHARACTERS_SHOWN = 2_000


class Emulator:
    """A server of AWS's services. It ends with this process, however that ends.

    folder: for what it keeps and says. secured: signatures and permissions are checked, and
    connections are TLS. kept: what it holds is saved when it stops, and there when it starts again.
    """

    def __init__(
        self, folder: Path, *, clock: Clock, secured: bool = True, kept: bool = False
    ) -> None:
        if importlib.util.find_spec("ministack") is None:
            hint = "install it: pip install --require-hashes -r requirements/local.txt"
            raise InvalidError("a local cloud needs ministack, an emulator of AWS", hint=hint)
        self._clock = clock
        self._lock = threading.Lock()
        self.folder = folder.resolve()
        self.secured = secured
        self._log = self.folder / "emulator.log"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = _port_of(self.folder / "port") if kept else _free_port()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", shifted_time.__file__, str(PROGRAM)],
                cwd=self.folder,
                env=self._server_environment(kept=kept),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except UnavailableError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Return the URL at which the emulator listens."""
        return f"{'https' if self.secured else 'http'}://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        """Return the file of its certificate, which it made for itself."""
        return self.folder / "ministack-tls" / "server.crt"

    def environment(self) -> dict[str, str]:
        """Return the variables that lead programs here, without credentials."""
        trust = ("AWS_CA_BUNDLE", "SSL_CERT_FILE") if self.secured else ()
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            **dict.fromkeys(trust, str(self.certificate)),
        }

    def ask(self, command: str, **given: object) -> Any:  # noqa: ANN401 - each command's own
        """Let its process obey one command of `emulator_process`, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps({"do": command, **given}) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            raise self._failure("the emulator has ended")
        return json.loads(line)["answer"]

    def close(self) -> None:
        """Stop it, and wait until it has saved what it keeps."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # it has ended, and never read the last command
                pipe.close()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _server_environment(self, *, kept: bool) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        on = {True: "1", False: "0"}
        return {
            **inherited,
            "AWS_ACCESS_KEY_ID": ROOT_KEY,
            "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
            "AUTH": "true" if self.secured else "false",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "PERSIST_STATE": on[kept],
            "S3_DATA_DIR": str(self.folder / "objects"),
            "S3_PERSIST": on[kept],
            "SFTP_ENABLED": "0",
            "STATE_DIR": str(self.folder / "state"),
            "TMPDIR": str(self.folder),
            "USE_SSL": on[self.secured],
        }

    def _wait_until_ready(self) -> None:
        end = self._clock.monotonic() + READY_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or self._clock.monotonic() > end:
                    raise self._failure("the emulator does not start") from None
            self._clock.sleep(POLL_SECONDS)

    def _failure(self, what: str) -> UnavailableError:
        said = self._log.read_text("utf-8", errors="replace")[-LOG_CHARACTERS_SHOWN:]
        return UnavailableError(what, log=self._log, says=said.strip() or "nothing")


def _port_of(noted: Path) -> int:
    """Return the port of the last start, which is in the URLs of the queues that are kept; another
    one, noted for the next start, if there was none or another process has it."""
    last = noted.read_text() if noted.exists() else ""
    try:
        port = _free_port(int(last) if last.isdecimal() else 0)
    except OSError:
        port = _free_port()
    noted.write_text(str(port))
    return port


def _free_port(port: int = 0) -> int:
    with socket.create_server(("127.0.0.1", port)) as free:
        return int(free.getsockname()[1])
