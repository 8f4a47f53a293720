"""The tables of an instance in DynamoDB: keys, index, expiry. The stacks make them so.

Each has the keys `pk`, a text, and `sk`; what else items hold is for who writes them to say.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PARTITION_KEY, SORT_KEY = "pk", "sk"


class IndexShape(msgspec.Struct, frozen=True, kw_only=True):
    """An index of all attributes.

    partition_key: a text.
    sort_key: a number.
    """

    name: str
    partition_key: str
    sort_key: str


class DynamoTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table.

    part: of its physical name.
    sort_key: N for a number, S for text.
    expiry: the attribute that holds the second, since 1970, after which an item may be removed.
    streamed: whether changes of its items can be read for a day. Unread, that costs nothing.
    """

    part: str
    sort_key: Literal["N", "S"]
    index: IndexShape | None = None
    expiry: str | None = None
    streamed: bool = False


LOG_TABLE = DynamoTable(part="log", sort_key="N")
"""pk: a table's id. sk: the number of an entry."""

REGISTRY_TABLE = DynamoTable(part="registry", sort_key="S")
"""pk: names, ids, marks or formats. sk: the name, the id, or the form.

Of feeds pk is feed-definitions, feed-connections, feed-policies, feed-number, feed-workers or
feed-owners; sk: a name."""

TRACKER_TABLE = DynamoTable(
    part="tracker",
    sort_key="S",
    index=IndexShape(name="by_state", partition_key="listed", sort_key="at"),
    expiry="expires",
    streamed=True,
)
"""Jobs, runs, tasks, processes, and the ledger of usage. listed: table and state. at: microseconds
since 1970."""

BATCHES_TABLE = DynamoTable(part="batches", sort_key="S", expiry="expires")
"""Files that wait to be ingested, and batches of them: `lakebed/backends/aws/batching`."""

PROCESS_PREFIX = "process#"
"""Prefix of a process's name in the tracker's pk."""
USAGE_PREFIX = "usage#"
"""Prefix of a table's id in the tracker's pk of entries of the ledger."""

DYNAMO_TABLES = (LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE, BATCHES_TABLE)
