"""All that topics have, into a table, in a process of its own: `feed_ours LAKE SERVERS TABLE`.

Topics are called as the table, with a number.
"""

from __future__ import annotations

from benchmarks.processes import run_measured
from lakebed.feed import Feeds
from lakebed.lake import connect
from lakebed.model.schema import schema_of

TEXT = """
[feed.{table}]
source = {{ kafka = "{servers}", topics = "{table}-[0-9]+", topic_ids = false }}
decoder = {{ format = "json" }}
[connection.{table}]
feed = "{table}"
table = "{table}"
"""
SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={"at": "timestamp[us, UTC]", "fare": "float64", "vehicle": "string", "note": "string"},
)


def main(lake: str, servers: str, table: str) -> None:
    with connect(lake, create=True) as opened:
        opened.create_table(table, SCHEMA)
        (done,) = Feeds(opened, TEXT.format(servers=servers, table=table)).run()
        assert not done.code, done.reason


if __name__ == "__main__":
    run_measured(main)
