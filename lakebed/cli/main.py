"""The command `lakebed`. Commands import what needs pyarrow when they run, so that help is
instant."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NoReturn

import click

from lakebed.cli.backups import backup, restore
from lakebed.cli.batches import batches, send, submit
from lakebed.cli.bulk_import import bulk_import
from lakebed.cli.completion import complete_words, completion
from lakebed.cli.cost_commands.costs import cost
from lakebed.cli.dead_letters import dead_letters
from lakebed.cli.declared_commands.config import config
from lakebed.cli.declared_commands.tables import apply, diff
from lakebed.cli.doctor import doctor
from lakebed.cli.explanations import explain
from lakebed.cli.feed_commands.definitions import COMMANDS as FEED_COMMANDS
from lakebed.cli.feed_commands.flush import flush as feed_flush
from lakebed.cli.feed_commands.landed import verify, where
from lakebed.cli.feed_commands.policies import policy
from lakebed.cli.feed_commands.printing import print_ as feed_print
from lakebed.cli.feed_commands.quarantine import quarantine as feed_quarantine
from lakebed.cli.feed_commands.receive import receive as feed_receive
from lakebed.cli.feed_commands.segments import segments as feed_segments
from lakebed.cli.feed_commands.status import status as feed_status
from lakebed.cli.feed_commands.tap import tap as feed_tap
from lakebed.cli.feeds import feed
from lakebed.cli.inspection import fsck, status
from lakebed.cli.jobs import jobs, keep_jobs, tasks
from lakebed.cli.program import Program
from lakebed.cli.reports import report
from lakebed.cli.row_commands.deletes import delete
from lakebed.cli.row_commands.exports import export
from lakebed.cli.row_commands.looks import count, files, head, sample
from lakebed.cli.row_commands.rows import ingest, query
from lakebed.cli.row_commands.sql import sql
from lakebed.cli.row_commands.upserts import upsert
from lakebed.cli.states import state
from lakebed.cli.table_changes import (
    alter,
    clear,
    history,
    offline,
    online,
    quarantine,
    rename,
    set_,
    split_points,
)
from lakebed.cli.table_policy import policy as table_policy
from lakebed.cli.tables import table
from lakebed.cli.upgrades import upgrade
from lakebed.cli.version_commands.changes import changes
from lakebed.cli.version_commands.tags import tag, tags, untag
from lakebed.cli.warning_lines import WarningLines
from lakebed.cli.watched_tables import watch
from lakebed.cli.work import commit, compact, run


@click.command(
    cls=Program,
    examples="""
    lakebed table create trips --row-key id:string --value count:int64?
    lakebed ingest trips trips.parquet
    lakebed run
    lakebed query trips --key b7
    lakebed status
    """,
)
@click.version_option(package_name="lakebed")
def program() -> None:
    """Tables of rows sorted by key, in a directory that needs no server."""


for _command in (
    *FEED_COMMANDS,
    feed_flush,
    feed_print,
    feed_segments,
    feed_status,
    feed_quarantine,
    feed_receive,
    feed_tap,
    where,
    verify,
):
    feed.add_command(_command)
for _command in (table, ingest, upsert, feed, policy, bulk_import, query, sql, delete):
    program.add_command(_command)
for _command in (count, head, sample, files):
    program.add_command(_command)
for _command in (send, submit, batches):
    program.add_command(_command)
for _command in (run, commit, compact, status, fsck, doctor, state, explain):
    program.add_command(_command)
for _command in (diff, apply, config):
    program.add_command(_command)
for _command in (backup, restore, export):
    program.add_command(_command)
for _command in (jobs, tasks, keep_jobs, dead_letters, report, upgrade, cost):
    program.add_command(_command)
for _command in (
    set_,
    alter,
    history,
    split_points,
    clear,
    rename,
    offline,
    online,
    quarantine,
    watch,
):
    table.add_command(_command)
table.add_command(table_policy)
program.add_command(changes)
for _command in (tag, tags, untag):
    table.add_command(_command)
program.add_command(completion)
complete_words(program)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit. args: None for those of this process."""
    logging.lastResort = WarningLines()
    program.main(args, prog_name="lakebed")
