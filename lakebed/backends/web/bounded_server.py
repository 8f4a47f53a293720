"""Servers with a bounded number of connections, one thread each, which end when they are asked to:
what is in hand is finished, and who is idle is not waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from lakebed.errors import InvalidError
from lakebed.ports.clock import Clock

DRAIN_SECONDS = 20.0
POLL_SECONDS = 0.1


class BoundedServer(ThreadingTCPServer):
    """Takes connections, a bounded number at a time.

    handler: of one connection.
    busy: what one hears beyond that number.

    Raises:
        InvalidError: it cannot listen there.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseRequestHandler],
        *,
        clock: Clock,
        connections_max: int,
        busy: bytes,
    ) -> None:
        self.clock = clock
        self._free = threading.BoundedSemaphore(connections_max)
        self._busy = busy
        self._changed = threading.Condition()
        self._open = 0
        self._idle: set[socket.socket] = set()
        self.is_ending = False
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            super().__init__(address, handler)
        except (OSError, OverflowError) as error:
            hint = "choose another port, or an address of this machine"
            host, port = address
            raise InvalidError(
                "cannot listen there", host=host, port=port, problem=error, hint=hint
            ) from None

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        return int(self.server_address[1])

    def serve(self, should_stop: Callable[[], bool]) -> None:
        """Take connections until it is to stop; then finish what is in hand, and close them all."""
        thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
        thread.start()
        try:
            while not should_stop() and thread.is_alive():
                self.clock.sleep(POLL_SECONDS)
        finally:
            self.shutdown()
            self.end()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - a socket
        """Begin a thread for a connection, or say that there are too many."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.setblocking(False)
                request.sendall(self._busy)
            self.shutdown_request(request)
            return
        with self._changed:
            self._open += 1
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._ended()
            raise

    def process_request_thread(self, *given: Any) -> None:  # noqa: ANN401 - a socket
        """Handle a connection to its end."""
        try:
            super().process_request_thread(*given)
        finally:
            self._ended()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - a socket
        """Say nothing of a connection that broke: its sender repeats."""

    def be_idle(self, connection: socket.socket, *, idle: bool) -> None:
        """Note that a connection waits for a request, or does no longer."""
        with self._changed:
            if idle and not self.is_ending:
                self._idle.add(connection)
            else:
                self._idle.discard(connection)

    def end(self) -> None:
        """Close what waits for requests, and wait for what answers one."""
        self.server_close()
        end = self.clock.monotonic() + DRAIN_SECONDS
        with self._changed:
            self.is_ending = True
            for connection in self._idle:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
            while self._open and (left := end - self.clock.monotonic()) > 0:
                self._changed.wait(left)

    def _ended(self) -> None:
        self._free.release()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()
