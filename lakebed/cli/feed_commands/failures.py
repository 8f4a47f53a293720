"""Feeds and connections that fail while a command goes on with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lakebed.cli.program import Session
    from lakebed.errors import LakebedError
    from lakebed.feeds.run_feeds import FeedDone


class ShownFailures:
    """Shows each failure on stderr, and knows the exit code of the gravest.

    kind: of what fails, in words.
    """

    def __init__(self, session: Session, kind: str) -> None:
        self._session = session
        self._kind = kind
        self.exit_code = 0

    def add(self, done: FeedDone, error: LakebedError) -> None:
        """Show what failed, and why."""
        self.exit_code = max(self.exit_code, error.exit_code)
        if not self._session.as_json:
            text = f"failed: {self._kind} {done.name}: {done.code}: {error}"
            click.echo(text, err=True)
