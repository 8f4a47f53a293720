"""Records in quarantine, taken once more: by a decoder or a filter that was mended meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.feeds.operating.feed_status import TableFigures
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.run_feeds import FeedDone
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TransactionNumber
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction


class Orders:
    """A lake that defines a feed of orders, and a file of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        lineage = {"_split": "string", "_position": "int64", "_version": "int64"}
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"fare": "float64", **lineage})
        self.lake.create_table("orders", schema)
        self.definitions = lakebed.FeedDefinitions(self.lake)
        self.definitions.define(
            "feed",
            "orders",
            {"source": {"files": f"{folder}/*.json"}, "decoder": {"format": "json"}},
        )
        self.connect({"id": "id", "fare": "fare"})
        self.definitions.start("orders")

    def connect(self, columns: dict[str, str], **more: object) -> None:
        said = {"feed": "orders", "table": "orders", "columns": columns, **more}
        self.definitions.define("connection", "orders", {**said, "lineage": True})

    def write(self, *lines: str) -> None:
        with (self.folder / "orders.json").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def run(self) -> FeedDone:
        (done,) = lakebed.Feeds(self.lake).run()
        return done

    def replay(self) -> FeedDone:
        (done,) = self.definitions.replay("orders")
        return done

    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows()]

    def rows(self) -> list[dict[str, object]]:
        return self.lake.table("orders").query().read_all().to_pylist()

    def quarantined(self) -> list[bytes | None]:
        return [one.value for one in self.definitions.quarantined("orders", with_values=True)]

    def taken(self) -> TableFigures:
        (feed,) = self.definitions.status("orders", listen_seconds=0).feeds
        return next(pipe.taken for pipe in feed.pipes if pipe.kind == "connection")

    def positions(self) -> dict[str, int]:
        (connection,) = self.definitions.describe("orders")[1]
        table = self.lake._app.catalog.find("orders")
        found = positions_in(table, connection_id(connection.id))
        return {name: int(position.next) for name, position in found.items()}


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    given = Orders(tmp_path)
    yield given
    found = given.lake.fsck(deep=True).findings
    assert [one.code for one in found if one.severity != "notice"] == []
    given.lake.close()


def test_a_record_whose_field_has_another_name_now_becomes_a_row(orders: Orders) -> None:
    orders.write(
        '{"id": 1, "fare": 1}', '{"id": 2, "price": 2}', "no json", '{"id": 3, "price": 3}'
    )
    assert orders.run().tally.quarantined == 3
    orders.connect({"id": "id", "fare": "price"})
    done = orders.replay()
    assert (done.tally.read, done.tally.stored, done.tally.quarantined) == (3, 2, 1)
    assert orders.ids() == [1, 2, 3]
    assert orders.quarantined() == [b"no json"]
    again = orders.replay()
    assert (again.tally.read, again.tally.stored, again.tally.quarantined) == (1, 0, 1)
    assert (orders.ids(), orders.quarantined()) == ([1, 2, 3], [b"no json"])
    assert orders.run().commits == 0, "the feed itself goes on where it was"
    taken = orders.taken()
    assert (taken.splits, taken.tally.read) == (1, 4)
    assert (taken.tally.stored, taken.tally.quarantined) == (3, 1)
    taken.tally.check()


def test_a_row_of_a_replay_has_the_source_split_and_position_of_its_record(orders: Orders) -> None:
    orders.write('{"id": 1, "fare": 1}', '{"id": 2, "price": 2}')
    orders.run()
    orders.connect({"id": "id", "fare": "price"})
    orders.replay()
    first, second = orders.rows()
    assert first["_split"] == second["_split"]
    assert (first["_position"], second["_position"]) == (0, 21)
    (split,) = [name for name in orders.positions() if not name.startswith("replay:")]
    assert first["_split"] == split


def test_what_comes_to_the_quarantine_later_is_taken_by_the_next_replay_only(
    orders: Orders,
) -> None:
    orders.write("x", '{"id": 2, "price": 2}')
    orders.run()
    orders.replay()
    orders.write('{"id": 3, "price": 3}', "y")
    orders.run()
    assert len(orders.quarantined()) == 4
    orders.connect({"id": "id", "fare": "price"})
    done = orders.replay()
    assert (done.tally.read, done.tally.stored) == (4, 2)
    assert orders.ids() == [2, 3]
    assert sorted(map(bytes, filter(None, orders.quarantined()))) == [b"x", b"y"]


def test_a_replay_that_dies_at_any_commit_is_finished_by_the_next_one(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.write("x", *(f'{{"id": {n}, "price": {n}}}' for n in range(40)), "y")
    orders.run()
    policy = {"extends": "FaultTolerant", "rotate_records": 7, "rotate_bytes": 200}
    orders.definitions.define("policy", "small", policy)
    orders.connect({"id": "id", "fare": "price"}, policy="small")
    dies_at = 0
    while True:
        dies_at += 1
        with dying(monkeypatch, dies_at) as has_died:
            orders.replay()
        if not has_died():
            break
        assert len(orders.ids()) == len(set(orders.ids()))
    assert dies_at > 6, "each commit was the last one once, done and not done"
    assert orders.ids() == list(range(40))
    assert orders.quarantined() == [b"x", b"y"]


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[Callable[[], bool]]:
    """End what is done within at one of its commits: before it, or behind it. Gives whether."""
    died, count, real = False, 0, TableHead.commit

    def commit(self: TableHead, transaction: Transaction) -> TransactionNumber:
        nonlocal died, count
        count += 1
        if count != (at + 1) // 2:
            return real(self, transaction)
        died = True
        if at % 2:
            real(self, transaction)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(TableHead, "commit", commit)
        yield lambda: died


def test_two_replays_at_once_take_each_record_once(orders: Orders) -> None:
    orders.write("x", *(f'{{"id": {n}, "price": {n}}}' for n in range(20)))
    orders.run()
    policy = {"extends": "FaultTolerant", "rotate_records": 3, "rotate_bytes": 60}
    orders.definitions.define("policy", "small", policy)
    orders.connect({"id": "id", "fare": "price"}, policy="small")

    def other(_: FeedDone) -> None:
        if not seen:
            seen.append(1)
            orders.write("y", '{"id": 20, "price": 20}')
            orders.run()
            orders.definitions.replay("orders")

    seen: list[int] = []
    orders.definitions.replay("orders", on_progress=other)
    assert seen
    assert orders.ids() == list(range(21))
    assert sorted(orders.quarantined(), key=repr) == [b"x", b"y"]


def test_a_strict_connection_and_many_bad_records_in_a_row_end_no_replay(orders: Orders) -> None:
    orders.definitions.define("policy", "many", {"errors_in_row_max": 1_000})
    orders.connect({"id": "id", "fare": "fare"}, policy="many")
    orders.write(*(f"bad {n}" for n in range(300)), '{"id": 7, "price": 7}')
    orders.run()
    orders.connect({"id": "id", "fare": "price"}, policy="Strict")
    done = orders.replay()
    assert (done.code, done.tally.stored, done.tally.quarantined) == ("", 1, 300)
    assert orders.ids() == [7]


def test_unknown_names_are_refused_and_a_feed_without_quarantine_has_nothing(
    orders: Orders,
) -> None:
    with pytest.raises(InvalidError, match="did you mean 'orders'"):
        orders.definitions.replay("order")
    with pytest.raises(InvalidError, match="did you mean 'orders'"):
        orders.definitions.replay("orders", connection="order")
    assert orders.definitions.replay("orders") == []
    assert "orders_quarantine" not in orders.lake.tables()
