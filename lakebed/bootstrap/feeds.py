"""Feeds, put together from the services of a lake."""

from __future__ import annotations

import pyarrow as pa

from lakebed.backends.local.file_tail import FileTail
from lakebed.bootstrap.app import App
from lakebed.config.feeds import Feed, landing_table_name
from lakebed.errors import InvalidError, TableExistsError, TableMissingError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.rotation import RotationLimits
from lakebed.feeds.row_makers import LandRecords
from lakebed.feeds.run_feeds import RunningFeed
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TableName, digest_of
from lakebed.statestore.open_table import OpenTable


def running_feed(app: App, feed: Feed) -> RunningFeed[pa.RecordBatch]:
    """Return a feed with its landing table, which is created where there is none.

    Raises:
        InvalidError: a table of that name is no landing table.
        UnavailableError: try again.
    """
    table = _landing_table(app, landing_table_name(feed.name))
    digest = digest_of(b"feed", feed.name.encode(), table.id.encode())
    pipeline = Pipeline[pa.RecordBatch](
        table=table,
        connection=FeedConnection(connection_id(digest.hex()), feed.version),
        source=FileTail(feed.files),
        rounds=CommitRound(stage=StageRows(files=app.files), make_rows=LandRecords()),
        clock=app.clock,
        limits=RotationLimits(size=feed.rotate_bytes),
    )
    return RunningFeed(feed.name, pipeline)


def _landing_table(app: App, name: TableName) -> OpenTable:
    try:
        table = app.catalog.find(name)
    except TableMissingError:
        try:
            return app.catalog.create(name, LANDING_SCHEMA)
        except TableExistsError:  # another process was faster
            table = app.catalog.find(name)
    if table.schema.fields != LANDING_SCHEMA.fields:
        hint = "give the feed another name, or the table"
        raise InvalidError("a table of that name is no landing table", table=name, hint=hint)
    return table
