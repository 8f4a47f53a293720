"""Spools of feeds, in the folder of this process."""

from __future__ import annotations

import pyarrow as pa

from lakebed.backends.local.process_folder import remove_dead
from lakebed.backends.local.spool import LocalSpool
from lakebed.bootstrap.app import App
from lakebed.config.policies import Policy
from lakebed.decoding.raw_records import RawRecordsCodec
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.pacing.spilling import SpillingSource
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.open_table import OpenTable


def spilling_as(
    app: App,
    policy: Policy,
    source: RecordSource[pa.RecordBatch],
    table: OpenTable,
    connection: FeedConnection,
) -> RecordSource[pa.RecordBatch]:
    """Return a source whose records may wait on the disk, where a policy says so; else itself.

    What dead processes of this machine left is removed: nothing reads it.

    Raises:
        DeniedError, UnavailableError: the file system refuses.
    """
    if "spill" not in policy.on_congestion:
        return source
    remove_dead(app.spill.path.parent)
    folder = app.spill.path / f"feed-{connection.id}-{app.rng.getrandbits(64):016x}"
    return SpillingSource(
        source,
        LocalSpool(folder),
        RawRecordsCodec(),
        app.clock,
        bytes_max=policy.spill_bytes,
        table=table.name,
        connection=connection.id,
    )
