"""Prints on stderr what the library logs and no handler takes: errors, and who is waited for."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

import click

from lakebed.observe import events

CLEAR_LINE = "\r\x1b[K"
"""Removes a line of progress."""


class WarningLines(logging.Handler):
    """Takes the place of `logging.lastResort`. Commands write other warnings on their own, as
    sentences."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if getattr(record, "event", "") == events.LOCK_AWAITED:
            before = CLEAR_LINE if sys.stderr.isatty() else ""
            click.echo(before + waiting_text(getattr(record, "facts", {})), err=True)
        elif record.levelno >= logging.ERROR:
            click.echo(self.format(record), err=True)


def waiting_text(facts: Mapping[str, object]) -> str:
    """Return who holds a database, in a sentence. facts: those of the event."""
    holder = "another process"
    if facts["process"] is not None:
        about = [f"{facts['command'] or 'a program'} on {facts['host']}"]
        if facts["started"]:
            about.append(f"running since {facts['started']}")
        holder = f"process {facts['process']} ({', '.join(about)})"
    return f"waiting for {facts['database']}: {holder} writes to it"
