"""Keeps how many bytes the tables of a lake have, where the lake keeps usage."""

from __future__ import annotations

from typing import Literal

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.bootstrap.app import App
from lakebed.schedules.stored_bytes import KeepStoredBytes


def stored_bytes_of(app: App) -> KeepStoredBytes | None:
    """Return what keeps how many bytes tables have; None: the lake has no ledger."""
    if app.paying.ledger is None:
        return None
    is_here = isinstance(app.objects, LocalObjectStore)
    counter: Literal["local_byte_days", "stored_byte_days"] = (
        "local_byte_days" if is_here else "stored_byte_days"
    )
    return KeepStoredBytes(app.paying.ledger, clock=app.clock, counter=counter)
