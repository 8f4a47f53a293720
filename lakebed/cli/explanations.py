"""`lakebed explain`: what an error means, and what to do."""

from __future__ import annotations

import click

from lakebed.cli.program import Command, Session, pass_session


@click.command(
    cls=Command,
    examples="""
    lakebed explain table-missing
    lakebed explain --json job-id-reused
    lakebed explain
    """,
)
@click.argument("code", required=False)
@pass_session
def explain(session: Session, code: str | None) -> None:
    """Say what an error's code means: its cause, what was done, what you can do.

    Without a code it lists all of them.
    """
    from lakebed.errors import InvalidError, did_you_mean, explanations

    known = {one.code: one for one in explanations()}
    if code is None:
        width = max(map(len, known))
        lines = [f"{one.code:<{width}}  {one.cause}" for one in known.values()]
        session.give([one.code for one in known.values()], "\n".join(lines))
        return
    if code not in known:
        raise InvalidError("no such code", code=code, hint=did_you_mean(code, known, what="code"))
    one = known[code]
    session.give(one._asdict(), one.text())
