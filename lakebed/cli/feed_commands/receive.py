"""`lakebed feed receive`: senders push records into a feed, and hear when they are landed."""

from __future__ import annotations

from pathlib import Path

import click

from lakebed.cli.program import Command, Session, pass_session
from lakebed.cli.row_commands.key_text import text_in
from lakebed.cli.work import stop_signals
from lakebed.errors import UnreadableInputError


@click.command(
    cls=Command,
    examples="""
    lakebed feed receive orders --port 8080
    lakebed feed receive orders --file feeds.toml --host 0.0.0.0 --port 8080
    """,
)
@click.argument("feed")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="P",
    help="Where to listen; 0: a free one.  [default: as the definition says]",
)
@click.option("--host", help="On which address.  [default: as the definition says, else 127.0.0.1]")
@click.option("--file", type=click.Path(path_type=Path), help="That defines the feed.")
@pass_session
def receive(
    session: Session, *, feed: str, port: int | None, host: str | None, file: Path | None
) -> None:
    """Let senders push records into FEED by HTTP, until a signal comes.

    A sender hears 200 when what it pushed is landed, and not before: it may be killed, and so may
    this. With an Idempotency-Key it may repeat a request as often as it likes: its records are
    there once. Workers (`lakebed feed run`) take from there. Several receivers may run at once.
    There is no TLS: let a proxy in front do that.
    """
    from lakebed.bootstrap.feeds.receivers import FeedReceiver

    text = None if file is None else _text_of(file)
    with session.open() as lake, stop_signals() as stopped:
        receiver = FeedReceiver(lake, feed, text=text, host=host, port=port)
        at = {"feed": feed, "host": receiver.host, "port": receiver.port}
        session.give(at, f"listening on {receiver.host}, port {receiver.port}")
        receiver.serve(stopped.is_set)


def _text_of(file: Path) -> str:
    try:
        return text_in(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInputError("not a file of feeds", file=file, problem=error) from None
