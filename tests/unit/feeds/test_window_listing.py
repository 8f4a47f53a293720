"""Windows of event time, as those see them who wait for one to be complete (R19)."""

import random

import pytest

from lakebed.errors import InvalidError
from lakebed.feeds.operating.window_listing import FeedTime, KnownWindow, watermarks, windows
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.statestore.open_table import OpenTable
from tests.dsl.windowed_table import FEED, WindowedTable


def test_sealed_and_open_windows_are_listed_with_the_entry_as_of_which_they_are_complete() -> None:
    fed = WindowedTable()
    table = OpenTable(
        id_=TableId("t"), name=TableName("t"), head=fed.story.head, rng=random.Random(0)
    )
    assert watermarks(table) == [FeedTime(feed=FEED, watermark=None, sealed=None)]
    fed.take("0", 3, 12)
    fed.take("0", 4, 25)
    first = KnownWindow(
        feed=FEED,
        start=fed.at(0),
        end=fed.at(10),
        rows=2,
        late=1,
        sealed=TransactionNumber(3),
        revision=2,
        number=TransactionNumber(4),
    )
    assert watermarks(table) == [FeedTime(feed=FEED, watermark=fed.at(25), sealed=fed.at(25))]
    found = windows(table)
    assert found[0] == first
    assert [(w.start, w.rows, w.sealed) for w in found[1:]] == [
        (fed.at(10), 1, 4),
        (fed.at(20), 1, None),
    ]
    assert windows(table, sealed=True) == found[:2]
    assert windows(table, FEED, sealed=False) == found[2:]
    assert windows(table, after=fed.at(10)) == found[1:]
    assert windows(table, windows_max=1) == [first]
    with pytest.raises(InvalidError, match="no such feed"):
        windows(table, "other")
