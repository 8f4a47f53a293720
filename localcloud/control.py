"""Lets other commands reach a local cloud that runs: by a socket in its folder, a line each way."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from lakebed.errors import InvalidError, LakebedError

SOCKET = "control"
PATH_BYTES_MAX = 100
"""Most bytes of a socket's path: systems allow 104 to 108."""
READ_SECONDS_MAX = 10.0

Commands = Mapping[str, Callable[[dict[str, Any]], object]]


class ControlServer:
    """Obeys the commands of this machine's user, one after the other, until it is closed."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        self._commands = commands
        self._path = _path(folder)
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # for this user only
        try:
            self._socket.bind(str(self._path))
        finally:
            os.umask(before)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection:
                connection.settimeout(READ_SECONDS_MAX)
                try:
                    self._obey(connection)
                except OSError:  # the caller has gone
                    continue

    def _obey(self, connection: socket.socket) -> None:
        with connection.makefile("rw", encoding="utf-8") as stream:
            try:
                given = json.loads(stream.readline())
                answer = {"value": self._commands[given.pop("do")](given)}
            except (ValueError, KeyError) as error:
                answer = {"error": f"not a command: {error!r}"}
            except LakebedError as error:
                answer = {"error": error.message, "facts": error.facts, "hint": error.hint}
            stream.write(json.dumps(answer, default=str) + "\n")


def ask(folder: Path, command: str, **given: object) -> Any:  # noqa: ANN401 - each command's own
    """Return what the cloud that runs in a folder answers.

    Raises:
        InvalidError: none runs there, or it refuses.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(_path(folder)))
        except (FileNotFoundError, ConnectionRefusedError):
            hint = "start it: python -m localcloud up INSTANCE"
            raise InvalidError("no local cloud runs there", folder=folder, hint=hint) from None
        with connection.makefile("rw", encoding="utf-8") as stream:
            stream.write(json.dumps({"do": command, **given}) + "\n")
            stream.flush()
            line = stream.readline()
    answer = json.loads(line or '{"error": "the local cloud has ended"}')
    if "error" in answer:
        facts = answer.get("facts", {})
        raise InvalidError(answer["error"], hint=answer.get("hint"), **facts)
    return answer["value"]


def _path(folder: Path) -> Path:
    path = folder.resolve() / SOCKET
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        hint = "choose a folder with a shorter path: --folder"
        raise InvalidError("the path of a folder is too long for a socket", path=path, hint=hint)
    return path
