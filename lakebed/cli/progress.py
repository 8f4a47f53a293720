"""Progress on a terminal: one line on stderr that is written over. Elsewhere nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

import click

COLUMNS_MAX = 79


class ProgressLine:
    """A line that says how far things are. Silent unless stderr is a terminal."""

    def __init__(self, *, silent: bool = False) -> None:
        self._on = not silent and sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._on:
            click.echo(f"\r\x1b[K{text[:COLUMNS_MAX]}", nl=False, err=True)
            self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False
