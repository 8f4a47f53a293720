"""Records that are left out because they are known (policy `dedupe`), also across rounds, crashes
and workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import lakebed
from lakebed.decoding.raw_records import raw_records
from lakebed.errors import InvalidError
from lakebed.feeds.pacing.left_out import are_as_before, digest_of_record
from lakebed.model.feeds.positions import Position, decode_position, encode_position
from tests.unit.feeds.test_decoded_feeds import Orders

ADJACENT = 'policy = "once"\n[policy.once]\ndedupe = "adjacent"\n'


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    made = Orders(tmp_path)
    yield made
    made.lake.close()


def row(id_: int) -> str:
    return f'{{"id": {id_}, "fare": 1}}'


@pytest.mark.parametrize(
    ("values", "keys", "equal"),
    [
        ([b"a", b"a", b"b", b"a"], None, [False, True, False, False]),
        ([b"a", b"a", b"a"], None, [False, True, True]),
        ([None, None, b""], None, [False, True, False]),
        ([b"a", b"a", b"a"], [b"k", b"l", b"l"], [False, False, True]),
        ([b"a", b"a", b"a"], [None, b"", b""], [False, False, True]),
        ([], None, []),
    ],
)
def test_a_record_is_as_the_one_before_if_key_and_value_are(
    values: list[bytes | None], keys: list[bytes | None] | None, equal: list[bool]
) -> None:
    given = raw_records(
        value=pa.array(values, pa.binary()),
        key=None if keys is None else pa.array(keys, pa.binary()),
        position=pa.array(range(len(values)), pa.int64()),
    )
    assert are_as_before(given, b"").tolist() == equal


def test_the_digest_of_a_record_says_where_its_key_ends_and_whether_it_is_there() -> None:
    pairs = [(b"ab", b"c"), (b"a", b"bc"), (None, b"abc"), (b"", b"abc"), (b"abc", None)]
    batch = raw_records(
        key=pa.array([key for key, _ in pairs], pa.binary()),
        value=pa.array([value for _, value in pairs], pa.binary()),
        position=pa.array(range(len(pairs)), pa.int64()),
    )
    assert len({digest_of_record(batch, index) for index in range(len(pairs))}) == len(pairs)


def test_a_record_that_is_equal_to_the_one_before_is_left_out_and_counted(orders: Orders) -> None:
    orders.write(row(1), row(1), row(2), row(1), "bad", "bad")
    done = orders.run(ADJACENT)
    assert (done.tally.read, done.tally.stored, done.tally.deduplicated) == (6, 3, 2)
    assert done.tally.quarantined == 1
    assert [row["id"] for row in orders.rows()] == [1, 1, 2]
    orders.check()


def test_without_the_policy_each_record_is_a_row(orders: Orders) -> None:
    orders.write(row(1), row(1))
    assert orders.run().tally.stored == 2


def test_the_next_round_knows_the_record_before_it(orders: Orders) -> None:
    """Whoever commits it: it is in the position."""
    orders.write(row(1))
    orders.run(ADJACENT)
    orders.write(row(1), row(2))
    done = orders.run(ADJACENT)
    assert (done.tally.stored, done.tally.deduplicated) == (1, 1)
    orders.write(row(2))
    assert orders.run(ADJACENT).tally.deduplicated == 1, "also behind one that was left out"


def test_equal_bad_records_in_a_row_count_as_one_error(orders: Orders) -> None:
    orders.write("bad", "bad", "bad", row(1))
    assert orders.run(ADJACENT + "errors_in_row_max = 1").code == ""


def test_what_is_left_out_in_front_of_a_refused_record_is_counted_and_no_more(
    orders: Orders,
) -> None:
    orders.write(row(1), row(1), "bad", row(2), row(2))
    done = orders.run(ADJACENT + 'on_record_error = "fail"')
    assert done.code == "record-refused"
    with orders.lake._app.catalog.find("orders").head.reading() as state:
        ((read, deduplicated),) = state.connection.execute(
            "SELECT read, deduplicated FROM tallies"
        ).fetchall()
    assert (read, deduplicated) == (2, 1)
    done = orders.run(ADJACENT)
    assert (done.tally.read, done.tally.deduplicated) == (3, 1)


def test_a_position_without_a_record_before_it_has_the_bytes_that_it_always_had() -> None:
    plain = Position(3, 7, "made", b"r")
    assert encode_position(plain) == msgspec.msgpack.encode([1, 3, 7, "made", b"r"])
    for is_pending in (False, True):
        knows = Position(3, 7, "made", b"r", is_pending, b"digest")
        assert decode_position(encode_position(knows)) == knows


def test_by_key_is_of_tables_that_keep_the_latest(tmp_path: Path, orders: Orders) -> None:
    by_key = 'policy = "once"\n[policy.once]\ndedupe = "key"\n'
    orders.write(row(1))
    with pytest.raises(InvalidError, match=r"connection\.all-orders\.policy"):
        orders.run(by_key)
    text = f'[feed.orders]\nfiles = "{tmp_path}/x"\ndecoder = {{ format = "json" }}\n'
    text += f'[connection.all-orders]\nfeed = "orders"\ntable = "orders"\n{by_key}'
    with pytest.raises(InvalidError, match="keeps the latest"):
        lakebed.FeedDefinitions(orders.lake).apply(text)
    schema = lakebed.schema_of(
        row_keys={"id": "int64"}, values={"fare": "float64", "n": "int64", "gone": "bool"}
    )
    orders.lake.drop_table("orders")
    latest = lakebed.Processing(latest=lakebed.Latest(sequence="n", delete="gone"))
    orders.lake.create_table("orders", schema, processing=latest)
    orders.write(
        '{"id": 2, "fare": 1, "n": 1, "gone": false}', '{"id": 2, "fare": 2, "n": 2, "gone": false}'
    )
    orders.run(by_key)
    assert [(row["id"], row["fare"]) for row in orders.rows()] == [(2, 2.0)]
