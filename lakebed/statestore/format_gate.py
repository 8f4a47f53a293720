"""Decides which forms may be written now: by the lake's record, asked when it matters."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lakebed.errors import FormatGateError
from lakebed.model.formats import NEWEST, OLDEST, Formats
from lakebed.ports.clock import Clock
from lakebed.ports.table_registry import TableRegistry

KEPT_SECONDS = 60.0
"""Seconds that a record is believed which may still be raised."""

AskFormats = Callable[[], Formats]
"""Returns the forms that may be written. Raises: UnavailableError, DeniedError."""


def newest_formats() -> Formats:
    """Return the forms of a lake in which everything may be written."""
    return NEWEST


class FormatGate:
    """Asks a lake's registry. Safe to share among threads. The record only rises, so that the
    newest forms, once allowed, stay so."""

    def __init__(self, registry: TableRegistry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[float, Formats] | None = None

    def __call__(self) -> Formats:
        """Return the forms that may be written. Raises: UnavailableError, DeniedError."""
        with self._lock:
            known, now = self._known, self._clock.monotonic()
            if known is None or (known[1] != NEWEST and now - known[0] >= KEPT_SECONDS):
                stored = self._registry.formats() or OLDEST
                entry, state = min(stored.entry, NEWEST.entry), min(stored.state, NEWEST.state)
                known = self._known = now, Formats(entry=entry, state=state)
            return known[1]


def check_entry_format(needed: int, formats: AskFormats) -> None:
    """Raise FormatGateError if a log entry of this format may not be written. Formats that lakes of
    all ages allow are not asked for."""
    if needed <= OLDEST.entry:
        return
    allowed = formats().entry
    if needed > allowed:
        raise FormatGateError("the lake does not allow this log entry", needs=needed, to=allowed)
