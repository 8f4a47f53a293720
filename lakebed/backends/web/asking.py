"""Questions to servers on the web, each bounded in time and bytes, whatever the server does."""

from __future__ import annotations

import base64
import io
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final

from lakebed.config.web_addresses import check_address
from lakebed.errors import InvalidError, UnavailableError
from lakebed.ports.clock import Clock
from lakebed.ports.secrets import Secret

_PIECE_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The response of a web server.

    status: of HTTP.
    body: as it came.
    location: where it sends us instead, as far as it may be shown; empty: nowhere.
    """

    status: int
    body: bytes
    location: str = ""


class WebServer:
    """One server. It is asked by GET; no redirect is followed and no proxy is used.

    url: HTTPS, whose certificates are checked, or HTTP; asked is what is below its path.
    user, password: sent with each request, if there is a user; to this server and no other.
    ca_file: certificates to trust beside those of the machine.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        user: str = "",
        password: Secret | None = None,
        ca_file: str = "",
    ) -> None:
        """Raises: InvalidError: not such an address, or no such certificates."""
        self.url = url
        self._clock = clock
        parts = check_address(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self._tls = _tls(ca_file) if parts.scheme == "https" else None
        self._headers = {"Accept": "*/*", "User-Agent": "lakebed", "Connection": "close"}
        if user:
            login = f"{user}:{password.reveal() if password else ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"

    def get(self, path: str, *, seconds: float, bytes_max: int) -> WebAnswer:
        """Return the answer to a GET. path: below the server's own, with its query.

        Raises:
            UnavailableError: no whole answer came in time, or a larger one.
        """
        until = self._clock.monotonic() + seconds
        connection = self._connection(seconds)
        try:
            connection.connect()
            with closing(connection.sock) as opened:
                connection.sock = _UntilThen(opened, until, self._clock)
                connection.request("GET", self._path + path, headers=self._headers)
                return self._read(connection.getresponse(), bytes_max)
        except (OSError, HTTPException, ValueError) as error:
            raise self._away(_reason_of(error)) from None
        finally:
            connection.close()

    def _connection(self, seconds: float) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=seconds)
        return HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)

    def _read(self, response: HTTPResponse, bytes_max: int) -> WebAnswer:
        body = bytearray()
        while piece := response.read(_PIECE_BYTES):
            body += piece
            if len(body) > bytes_max:
                raise self._away(f"it gives more than {bytes_max:,} bytes")
        if response.length:
            raise self._away("its answer was cut off")
        location = response.getheader("Location") or ""
        return WebAnswer(response.status, bytes(body), ascii(location)[1:201])

    def _away(self, why: str) -> UnavailableError:
        return UnavailableError("a server on the web gives no answer", url=self.url, why=why)


class _UntilThen:
    """A socket whose reads end at one time, however often the server says a little more."""

    def __init__(self, inner: socket.socket, until: float, clock: Clock) -> None:
        self._inner, self._until, self._clock = inner, until, clock

    def sendall(self, data: bytes) -> None:
        self._inner.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Received(self._inner, self._until, self._clock))

    def close(self) -> None:
        """Leave it open: http.client closes it before it has read what came."""


class _Received(io.RawIOBase):
    def __init__(self, inner: socket.socket, until: float, clock: Clock) -> None:
        super().__init__()
        self._inner, self._until, self._clock = inner, until, clock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        left = self._until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("it takes too long")
        self._inner.settimeout(left)
        return self._inner.recv_into(buffer)


def _tls(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            hint = "name a file of certificates in PEM"
            raise InvalidError(
                "no certificates to trust", file=ca_file, why=error, hint=hint
            ) from None
    return context


def _reason_of(error: Exception) -> str:
    return ascii(str(error) or type(error).__name__)[1:201]
