"""The same lakes and tables for programs with an event loop: each call is awaited.

import lakebed

async with await lakebed.aio.connect("./lake") as lake:
    table = await lake.table("trips")
    async for batch in table.query(keys=["b7"]):
        print(batch.num_rows)

Names and arguments are those of `lakebed.connect`, `lakebed.Lake` and `lakebed.Table`. Calls run in
threads, at most so many at once as `connect` is told; callbacks are called in these. A property is
awaited, too: `await table.schema`. What gives rows (`query`, `scan`, `sql`) is an async iterator of
batches, of which two are read ahead, and `changes()` and a follower are iterated in the same way;
cancelling the task that waits for it, `aclose()`, or dropping it ends the read. What `dataset()`
and `to_duckdb()` give is read by an engine in the thread that asks it. `Table.wait` is missing:
`asyncio.sleep`. A call that takes `should_stop` stops when its task is cancelled; any other one
that has begun goes on to its end, and what it commits stays.
"""

from lakebed.aio.batches import AsyncItems, Batches
from lakebed.aio.followed_table import Follower, RowChange
from lakebed.aio.lake import Lake, connect
from lakebed.aio.table import Table

__all__ = ["AsyncItems", "Batches", "Follower", "Lake", "RowChange", "Table", "connect"]
