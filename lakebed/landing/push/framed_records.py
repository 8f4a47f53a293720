"""Cuts what comes through a socket into whole records. It holds no socket."""

from __future__ import annotations

from typing import Literal

from lakebed.errors import InvalidError
from lakebed.landing.push.segments import LENGTH_BYTES

SocketFraming = Literal["lines", "lengths"]
_LINE_FEED = b"\n"


class FramedRecords:
    """Gathers what comes until records are whole. What is no whole record yet waits, at most one
    record's bytes."""

    def __init__(self, framing: SocketFraming, record_bytes_max: int) -> None:
        self.framing: SocketFraming = framing
        self._max = record_bytes_max
        self._rest = bytearray()

    def take(self, data: bytes) -> bytes:
        """Return all records that are whole now, as they came; b"": there is none.

        Raises:
            InvalidError: a record is too large. Nothing of this call is to be landed.
        """
        begin = len(self._rest)
        self._rest += data
        end = self._end_of_lines(begin) if self.framing == "lines" else self._end_of_lengths()
        whole = bytes(self._rest[:end])
        del self._rest[:end]
        return whole

    @property
    def is_between(self) -> bool:
        """Return whether no record has begun."""
        return not self._rest

    def _end_of_lines(self, begin: int) -> int:
        end = self._rest.rfind(_LINE_FEED, begin) + 1
        self._check(len(self._rest) - end)
        if end > self._max:
            self._check(max(map(len, self._rest[:end].split(_LINE_FEED))))
        return end

    def _end_of_lengths(self) -> int:
        at, size = 0, len(self._rest)
        while at + LENGTH_BYTES <= size:
            length = int.from_bytes(self._rest[at : at + LENGTH_BYTES], "big")
            self._check(length)
            if at + LENGTH_BYTES + length > size:
                break
            at += LENGTH_BYTES + length
        return at

    def _check(self, size: int) -> None:
        if size > self._max:
            raise InvalidError(
                "the record is too large", bytes_max=self._max, hint="send smaller records"
            )
