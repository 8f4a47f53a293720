"""A receiver's core: the request of a sender in, what it hears out. It speaks no protocol and holds
no socket, so a server calls it, and a function behind a URL does, too.

A sender hears success after its segment was put or read back, and not before (protocol R9).
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from lakebed.errors import (
    DeniedError,
    LakebedError,
    NewerFormatError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import (
    Framing,
    Segment,
    prefix_of_key,
    segment_of_key,
    segment_without_key,
)
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.secrets import Secret

FRAMINGS: Mapping[str, Framing] = {
    "application/x-ndjson": "lines",
    "text/plain": "lines",
    "application/json": "whole",
    "application/octet-stream": "whole",
}
KEY_BYTES_MAX = 255
SEGMENTS_WAITING_MAX = 10_000
"""Most waiting segments of a feed: beyond it senders are to wait until workers have landed some."""
SAME_KEY_MAX = 10
"""Segments of one key: there is one, or a few after a race."""
COUNTED_SECONDS = 2.0
"""Seconds that a count of waiting segments holds."""
BUSY_SECONDS, WAITING_SECONDS = 1, 10
"""Seconds that a sender is asked to wait: for the buffer or the store; for workers."""
LAND_AGAIN_SECONDS, LAND_AGAIN_SECONDS_MAX = 0.05, 2.0
COMMITTED_SECONDS_MAX, COMMITTED_POLL_SECONDS = 30.0, 0.2

_ONCE = ("authorization", "content-encoding", "content-length", "content-type", "idempotency-key")
_AWAY = (UnavailableError, UnknownOutcomeError, DeniedError, NewerFormatError)


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request, which comes before its body.

    headers: by names in lower case, in their order.
    """

    method: str
    path: str
    headers: Sequence[tuple[str, str]]


class Answer(msgspec.Struct, frozen=True):
    """The answer that a sender gets.

    retry_after: seconds to wait before the request is repeated; None: it is not to be.
    is_body_read: whether the request's body was read: else its connection is of no use any more.
    """

    status: int
    said: Mapping[str, object]
    retry_after: int | None = None
    is_body_read: bool = False


class ReceiverRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which a receiver answers.

    feed: its name, which a path may have.
    token: what senders show; None: it does not matter who they are.
    body_bytes_max: of one request.
    buffer_bytes: of all bodies in hand.
    answer: "landed": success means that a segment was put; "committed": that its records are in the
        landing table.
    """

    feed: str
    token: Secret | None = None
    body_bytes_max: int = 16 << 20
    buffer_bytes: int = 64 << 20
    answer: Literal["landed", "committed"] = "landed"


class BodyLostError(Exception):
    """The sender went away, or was too slow, before its body was there: there is no answer."""


class _RefusedError(Exception):
    def __init__(
        self, status: int, problem: str, *, hint: str, retry_after: int | None = None
    ) -> None:
        super().__init__(problem)
        self.answer = Answer(status, {"problem": problem, "hint": hint}, retry_after)


class _Admitted(msgspec.Struct, frozen=True):
    size: int
    framing: Framing
    key: bytes | None


ReadBody = Callable[[int], bytes]
"""Reads a body of so many bytes, or fewer if no more come. Raises: BodyLostError."""
ItemsOf = Callable[[bytes], Sequence[bytes]]
"""Returns the items that begin with some bytes and are in the landing table, as its log is now."""


class Receiver:
    """Answers the senders of one feed, any number at the same time.

    items_of: of the landing table.
    token: returns 128 random bits.
    """

    def __init__(
        self,
        rules: ReceiverRules,
        segments: SegmentStore,
        items_of: ItemsOf,
        *,
        clock: Clock,
        token: Callable[[], int],
    ) -> None:
        self._rules = rules
        self._segments = segments
        self._items_of = items_of
        self._clock = clock
        self._token = token
        self._lock = threading.Lock()
        self._in_hand = 0
        self._counted: float | None = None
        self._is_full = False

    def respond(self, head: RequestHead, read_body: ReadBody) -> Answer:
        """Return what the sender of a request hears. The body is read only if it is wanted.

        Raises:
            BodyLostError: no answer can be given.
        """
        is_read = False
        try:
            if head.method == "GET" and self._is_path(head.path):
                return Answer(200, {"feed": self._rules.feed})
            admitted = self._admitted(head)
            with self._reserved(admitted.size):
                body = read_body(admitted.size)
                is_read = True
                return self._landed(admitted, body)
        except _RefusedError as refused:
            return msgspec.structs.replace(refused.answer, is_body_read=is_read)
        except LakebedError as error:
            return failed_answer(error, self._rules.feed, is_body_read=is_read)

    def land(self, framing: Framing, body: bytes, *, should_stop: Callable[[], bool]) -> None:
        """Land a body without a key: the same segment again and again, until it is there and there
        was room for it.

        should_stop: asked between tries.

        Raises:
            UnavailableError, UnknownOutcomeError: it is to stop. It may be landed, now or later.
        """
        segment = segment_without_key(self._token(), framing, self._clock.now(), body)
        wait = LAND_AGAIN_SECONDS
        while True:
            try:
                if self._has_room_for_segments():
                    self._segments.put(segment)
                    return
                error: LakebedError = UnavailableError("too many segments wait")
            except _AWAY as away:
                events.emit(events.PUSH_REFUSED, feed=self._rules.feed, code=away.code())
                error = away
            if should_stop():
                raise error
            self._clock.sleep(wait)
            wait = min(2 * wait, LAND_AGAIN_SECONDS_MAX)

    # before the body

    def _is_path(self, path: str) -> bool:
        return path.partition("?")[0] in {"/", f"/{self._rules.feed}"}

    def _admitted(self, head: RequestHead) -> _Admitted:
        """Return what is known of a request whose body is wanted. Raises: _RefusedError."""
        if not self._is_path(head.path):
            raise _RefusedError(404, "no such feed here", hint=f"push to /{self._rules.feed}")
        headers = _headers_of(head.headers)
        self._check_token(headers.get("authorization", ""))
        if head.method != "POST":
            raise _RefusedError(405, "records are pushed by POST", hint="use POST")
        return _Admitted(
            self._length_of(headers), _framing_of(headers), _key_of(headers.get("idempotency-key"))
        )

    def _check_token(self, given: str) -> None:
        if self._rules.token is None:
            return
        scheme, _, token = given.partition(" ")
        wanted = self._rules.token.reveal().encode()
        shown = token.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() != "bearer" or not hmac.compare_digest(shown, wanted):
            hint = "send `Authorization: Bearer TOKEN`"
            raise _RefusedError(401, "the token is not the feed's", hint=hint)

    def _length_of(self, headers: Mapping[str, str]) -> int:
        length = headers.get("content-length")
        if length is None or "transfer-encoding" in headers:
            hint = "send a Content-Length and the body in one piece"
            raise _RefusedError(411, "a body without a length", hint=hint)
        if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) < 1:
            raise _RefusedError(400, "a request without records", hint="send at least one byte")
        if int(length) > self._rules.body_bytes_max:
            hint = f"send at most {self._rules.body_bytes_max} bytes at once"
            raise _RefusedError(413, "the body is too large", hint=hint)
        return int(length)

    @contextmanager
    def _reserved(self, size: int) -> Iterator[None]:
        """Keep a share of the buffer for a body. Raises: _RefusedError: there is no room."""
        if not self._has_room_for_segments():
            hint = "repeat the request after a while; workers land what waits"
            raise _RefusedError(
                429, "too many segments wait", hint=hint, retry_after=WAITING_SECONDS
            )
        with self._lock:
            if self._in_hand and self._in_hand + size > self._rules.buffer_bytes:
                hint = "repeat the request after a while"
                raise _RefusedError(
                    429, "too many bodies at once", hint=hint, retry_after=BUSY_SECONDS
                )
            self._in_hand += size
        try:
            yield
        finally:
            with self._lock:
                self._in_hand -= size

    def _has_room_for_segments(self) -> bool:
        now = self._clock.monotonic()
        if self._counted is None or now - self._counted >= COUNTED_SECONDS:
            self._counted = now
            waiting = sum(1 for _ in self._segments.names(SEGMENTS_WAITING_MAX))
            self._is_full = waiting >= SEGMENTS_WAITING_MAX
        return not self._is_full

    # behind it

    def _landed(self, admitted: _Admitted, body: bytes) -> Answer:
        if len(body) != admitted.size:
            hint = "send as many bytes as Content-Length says"
            raise _RefusedError(400, "the body is shorter than its length", hint=hint)
        now = self._clock.now()
        if admitted.key is None:
            segment = segment_without_key(self._token(), admitted.framing, now, body)
        else:
            segment = segment_of_key(admitted.key, admitted.framing, now, body)
            prefix = prefix_of_key(admitted.key)
            landed = self._items_of(prefix)
            if segment.item in landed:
                return self._success(segment, "committed")
            waiting = self._segments.names(SAME_KEY_MAX, prefix)
            if landed or any(name.item != segment.item for name in waiting):
                hint = "give each request a key of its own, and repeat it with the same body"
                raise _RefusedError(409, "the key came before with another body", hint=hint)
        self._segments.put(segment)
        if self._rules.answer == "committed":
            return self._committed(segment)
        return self._success(segment, "landed")

    def _committed(self, segment: Segment) -> Answer:
        """Wait until a worker has landed a segment."""
        end = self._clock.monotonic() + COMMITTED_SECONDS_MAX
        while self._clock.monotonic() < end:
            if self._items_of(segment.item):
                return self._success(segment, "committed")
            self._clock.sleep(COMMITTED_POLL_SECONDS)
        said = {"records": segment.count, "state": "landed"}
        return Answer(202, said, WAITING_SECONDS, is_body_read=True)

    def _success(self, segment: Segment, state: str) -> Answer:
        if self._rules.answer == "landed":
            state = "landed"
        return Answer(200, {"records": segment.count, "state": state}, None, is_body_read=True)


def failed_answer(error: LakebedError, feed: str, *, is_body_read: bool) -> Answer:
    """Return what a sender hears of an error that kept its records from being put; it is logged."""
    events.emit(events.PUSH_REFUSED, feed=feed, code=error.code())
    if isinstance(error, _AWAY):
        said = {"problem": "the store cannot take it now", "code": error.code()}
        return Answer(503, said, BUSY_SECONDS, is_body_read)
    said = {"problem": "it was not landed", "code": error.code()}
    return Answer(500, said, None, is_body_read)


def _headers_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name. Raises: _RefusedError: one that may be there once comes twice."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        if name in _ONCE and name in headers:
            raise _RefusedError(400, f"two headers {name}", hint="send it once")
        headers[name] = value.strip()
    return headers


def _framing_of(headers: Mapping[str, str]) -> Framing:
    """Return how a body is cut into records. Raises: _RefusedError: that is not known."""
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    if said not in FRAMINGS:
        hint = f"send one of {', '.join(FRAMINGS)}"
        raise _RefusedError(415, "not a content type that is taken", hint=hint)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _RefusedError(415, "an encoded body is not taken", hint="send it as it is")
    return FRAMINGS[said]


def _key_of(said: str | None) -> bytes | None:
    """Return the bytes of a key. Raises: _RefusedError: it is none."""
    if said is None:
        return None
    if not (said.isascii() and said.isprintable()) or not 0 < len(said) <= KEY_BYTES_MAX:
        hint = f"use 1 to {KEY_BYTES_MAX} printable characters of ASCII, such as a UUID"
        raise _RefusedError(400, "not an Idempotency-Key", hint=hint)
    return said.encode()
