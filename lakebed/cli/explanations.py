"""`lakebed explain`: what an error means, and what to do; pages of help beside."""

from __future__ import annotations

from importlib.resources import files

import click

from lakebed.cli.program import Command, Session, pass_session


@click.command(
    cls=Command,
    examples="""
    lakebed explain table-missing
    lakebed explain types
    lakebed explain --json job-id-reused
    lakebed explain
    """,
)
@click.argument("code", required=False)
@pass_session
def explain(session: Session, code: str | None) -> None:
    """Say what an error's code means: its cause, what was done, what you can do.

    Also pages: types, settings, processing, python, and more. Without a word it lists all.
    """
    from lakebed.cli.error_explanations import explanations
    from lakebed.errors import InvalidError, did_you_mean

    known = {one.code: one for one in explanations()}
    pages = {
        page.name.removesuffix(".md"): page for page in files("lakebed").joinpath("pages").iterdir()
    }
    if code is None:
        width = max(map(len, known))
        lines = [f"{one.code:<{width}}  {one.cause}" for one in known.values()]
        lines += ["", "pages:", f"  {', '.join(sorted(pages))}"]
        session.give([*known, *sorted(pages)], "\n".join(lines))
        return
    if code in pages:
        text = pages[code].read_text("utf-8")
        session.give({"page": code, "text": text}, text.rstrip())
        return
    if code not in known:
        hint = did_you_mean(code, [*known, *pages], what="code")
        raise InvalidError("no such code", code=code, hint=hint)
    one = known[code]
    session.give(one._asdict(), one.text())
