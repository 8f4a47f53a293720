"""All that topics have, into a table, in a process of its own: `feed_ours LAKE SERVERS [WINDOWS]`.

WINDOWS: seconds of the windows of event time in which rows are counted; none: they are not.
"""

from __future__ import annotations

from benchmarks.feeding.rides import SCHEMA, TABLE
from benchmarks.processes import run_measured
from lakebed.feed import Feeds
from lakebed.lake import connect

TEXT = """
[feed.{table}]
source = {{ kafka = "{servers}", topics = "{table}-[0-9]+", topic_ids = false }}
decoder = {{ format = "json"{time} }}
[connection.{table}]
feed = "{table}"
table = "{table}"
window_seconds = {windows}
"""


def main(lake: str, servers: str, windows: str = "0") -> None:
    with connect(lake, create=True) as opened:
        opened.create_table(TABLE, SCHEMA)
        time = ', time = { path = "at", as = "iso" }' if int(windows) else ""
        text = TEXT.format(servers=servers, table=TABLE, time=time, windows=windows)
        (done,) = Feeds(opened, text).run()
        assert not done.code, done.reason


if __name__ == "__main__":
    run_measured(main)
