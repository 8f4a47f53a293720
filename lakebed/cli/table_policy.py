"""`lakebed table policy`: the policy of IAM for one table of an instance."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lakebed.cli.program import Command, Session, pass_session
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.config.people.table_access import TableAccess


@click.command(
    "policy",
    cls=Command,
    examples="""
    lakebed --at dev table policy trips --may read
    lakebed --at dev table policy trips --may write > trips-writer.json
    """,
)
@click.argument("name")
@click.option(
    "--may",
    "access",
    type=click.Choice(["read", "write"]),
    required=True,
    help="`read`: query by the library. `write`: ingest by it, too.",
)
@pass_session
def policy(session: Session, name: str, *, access: TableAccess) -> None:
    """Write the policy of IAM that lets the library use table NAME, and no other.

    It names the table by its id, so it holds when the table is renamed, and ends when it is
    dropped. Changes nothing: attach it with the tools of AWS. Policies of feeds: `lakebed policy`.
    """
    from lakebed.bootstrap.app import INSTANCE_SCHEME

    if not session.lake_path.startswith(INSTANCE_SCHEME):
        hint = "name an instance on AWS: `lakebed --at INSTANCE table policy NAME --may read`"
        raise InvalidError("a directory has no policies of IAM", lake=session.lake_path, hint=hint)
    from lakebed.bootstrap.table_policy import policy_of_table

    found = policy_of_table(session.lake_path.removeprefix(INSTANCE_SCHEME), name, access)
    session.give(found, json.dumps(found, indent=2))
