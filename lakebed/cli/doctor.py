"""`lakebed doctor`: whether an account of AWS has room for an instance."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, pass_session
from lakebed.errors import InvalidError, UnavailableError

if TYPE_CHECKING:
    from lakebed.doctor.examine_account import QuotaFinding

SCHEME = "aws:"


@click.command(
    cls=Command,
    examples="""
    lakebed --at dev doctor
    lakebed --at dev doctor --json
    """,
)
@pass_session
def doctor(session: Session) -> None:
    """Compare quotas of an instance's account with what the instance needs.

    Says of each quota what the account has, what the instance was deployed to use at one time, and
    what to ask AWS for. Reads only. Exits with the code of `invalid` if a quota is too small, else
    with that of `unavailable` if one could not be read.
    """
    if not session.lake_path.startswith(SCHEME):
        hint = "name an instance on AWS: `lakebed --at INSTANCE doctor`"
        raise InvalidError("a directory has no account", lake=session.lake_path, hint=hint)
    from lakebed.bootstrap.doctor import examine_instance

    found = examine_instance(session.lake_path.removeprefix(SCHEME))
    session.give(msgspec.to_builtins(found), findings_text(found))
    sys.exit(exit_code_of(found))


def exit_code_of(found: list[QuotaFinding]) -> int:
    """Return the code of the gravest finding; 0 for none."""
    states = {one.state for one in found}
    if "too little" in states:
        return InvalidError.exit_code
    return UnavailableError.exit_code if "not read" in states else 0


def findings_text(found: list[QuotaFinding]) -> str:
    """Return a table of findings, and below it what to do."""
    rows = [
        (
            f"{one.service}: {one.name}",
            one.code,
            "unknown" if one.has is None else f"{one.has:g}",
            f"{one.needs:g}",
            one.state,
        )
        for one in found
    ]
    advice = [f"{one.service} {one.code}: {one.advice}" for one in found if one.advice]
    return "\n".join([aligned(("quota", "code", "has", "needs", ""), rows), *advice])
