"""Each value of a field is let in once within a time (policy `dedupe = "window"`): the first record
stays, whoever commits it, and whenever a worker dies."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace as replaced

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import pipeline_from, target_of
from lakebed.bootstrap.local import open_local
from lakebed.config.feeds import feed_file
from lakebed.errors import InvalidError, TableBusyError
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pacing import once_values
from lakebed.feeds.pacing.once_values import first_of_values, items_of
from lakebed.feeds.pipeline import Pipeline
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import TransactionNumber, table_name
from lakebed.ports.record_source import SourceSplit
from lakebed.statestore.log_entries.feed_changes import ForgetOldItems, TakeItems
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import start_of
from lakebed.statestore.table_state.feed_records import connections, ledger_of
from tests.unit.feeds.pacing.fed_under_policy import TEXT, Stream

ONCE = '[policy.own]\ndedupe = "window"\ndedupe_field = "id"\nonce_seconds = 3600'
SCHEMA = lakebed.schema_of(
    row_keys={"_split": "string", "_position": "int64"},
    values={"_version": "int64", "id": "string?", "fare": "int64?"},
)


class NamedStream(Stream):
    """A source of records with ids, of one source split of this name."""

    def __init__(self, name: str, ids: Callable[[int], str | None]) -> None:
        super().__init__()
        self.name, self.ids = name, ids

    def splits(self) -> list[SourceSplit]:
        return [SourceSplit(self.name, self.name)]

    def value(self, position: int) -> bytes | None:
        id_ = self.ids(position)
        if id_ == "bad":
            return b"no json"
        return b"{}" if id_ is None else b'{"id": "%b", "fare": %d}' % (id_.encode(), position)


class Once:
    """A lake with a table that lets each id in once an hour, on a virtual clock."""

    def __init__(self, folder: Path, policy: str = ONCE, more: str = "") -> None:
        self.clock = VirtualClock()
        self.app = open_local(folder / "lake", clock=self.clock)
        self.app.catalog.create(table_name("web"), SCHEMA)
        more = f"lineage = true\n{more}\n{policy}"
        text = TEXT.format(policy="own", more=more)
        columns = 'columns = { id = "id", fare = "fare" }\nlineage'
        _, (self.definition,) = definitions_in(feed_file(text.replace("lineage", columns, 1)))

    def pipeline(self, source: NamedStream) -> Pipeline[Any]:
        target = target_of(self.app, self.definition)
        return pipeline_from(self.app, self.definition, target, source, OwnsAll())

    def take(self, pipeline: Pipeline[Any], source: NamedStream, count: int) -> None:
        source.there += count
        for turn in range(count // 100 + 3):
            pipeline.turn(is_draining=turn == count // 100 + 2)

    def ids(self) -> list[str | None]:
        rows = self.app.query.run(self.app.catalog.find(table_name("web")))
        return [row["id"] for batch in rows for row in batch.to_pylist()]

    def tally(self) -> Tally:
        head = self.app.catalog.find(table_name("web")).head
        head.follow()
        tally = Tally()
        with head.reading() as state:
            for one in connections(state):
                for _, _, of_hour in ledger_of(state, one):
                    tally = tally.plus(of_hour)
        tally.check()
        return tally

    def items(self) -> int:
        head = self.app.catalog.find(table_name("web")).head
        head.follow()
        with head.reading() as state:
            return int(state.connection.execute("SELECT count(*) FROM items").fetchone()[0])


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    made = Once(tmp_path)
    yield made
    made.app.close()


def by_tens(position: int) -> str:
    return f"id-{position // 10}"


def test_the_first_record_of_a_value_stays_and_later_ones_are_counted(once: Once) -> None:
    source = NamedStream("a", by_tens)
    pipeline = once.pipeline(source)
    once.take(pipeline, source, 250)
    assert once.ids() == [f"id-{n}" for n in range(25)]
    tally = once.tally()
    assert (tally.read, tally.stored, tally.deduplicated) == (250, 25, 225)
    once.take(pipeline, source, 5)
    once.take(once.pipeline(source), source, 6)
    assert once.ids() == [f"id-{n}" for n in range(27)], "also across rounds, and workers"


def test_without_the_policy_each_record_is_a_row(tmp_path: Path) -> None:
    plain = Once(tmp_path, "[policy.own]")
    source = NamedStream("a", by_tens)
    plain.take(plain.pipeline(source), source, 30)
    assert (len(plain.ids()), plain.items()) == (30, 0)
    plain.app.close()


def test_a_value_is_known_for_as_long_as_the_policy_says_and_a_minute(once: Once) -> None:
    source = NamedStream("a", lambda n: "same")
    pipeline = once.pipeline(source)
    once.take(pipeline, source, 3)
    once.clock.advance(3_590)
    once.take(pipeline, source, 1)
    assert (len(once.ids()), once.items()) == (1, 1)
    once.clock.advance(70)
    once.take(pipeline, source, 2)
    assert (len(once.ids()), once.tally().deduplicated) == (2, 4)
    once.clock.advance(100 * 86_400)
    once.take(pipeline, source, 2)
    assert (len(once.ids()), once.items()) == (3, 1), "also behind a silence"


def test_no_value_is_forgotten_early_because_of_others_in_its_minute(once: Once) -> None:
    source = NamedStream("a", ["x", "same", "y", "same"].__getitem__)
    pipeline = once.pipeline(source)
    once.take(pipeline, source, 1)
    once.clock.advance(50)
    once.take(pipeline, source, 1)
    once.clock.advance(100)
    once.take(pipeline, source, 1)
    once.clock.advance(3_600 - 105)
    once.take(pipeline, source, 1)
    assert once.ids() == ["x", "same", "y"]


def test_what_is_no_row_lets_the_next_one_in(tmp_path: Path) -> None:
    filtered = Once(tmp_path, more='where = "fare >= 5"')
    ids = [None, "bad", "x", "y", "x", "x", "x", None, "y"]
    source = NamedStream("a", ids.__getitem__)
    filtered.take(filtered.pipeline(source), source, len(ids))
    tally = filtered.tally()
    assert filtered.ids() == ["x", "y"], "the first ones are filtered, and nulls too"
    assert (tally.filtered, tally.quarantined, tally.deduplicated) == (5, 1, 1)
    filtered.app.close()


def test_records_without_the_value_are_never_the_same(once: Once) -> None:
    source = NamedStream("a", lambda n: None)
    once.take(once.pipeline(source), source, 4)
    assert once.ids() == [None] * 4


def test_of_two_workers_that_let_a_value_in_at_once_one_begins_again(once: Once) -> None:
    one, other = NamedStream("a", by_tens), NamedStream("b", by_tens)
    first, second = once.pipeline(one), once.pipeline(other)
    stage = first._rounds._stage.run
    staged = []

    def slow(*args: object, **named: object) -> object:
        if not staged:
            once.take(second, other, 15)
        staged.append(1)
        return stage(*args, **named)  # type: ignore[arg-type]  # as given

    first._rounds._stage.run = slow  # type: ignore[method-assign]  # a stand-in
    once.take(first, one, 35)
    once.take(first, one, 0)
    assert len(staged) == 2, "the first try was refused"
    assert Counter(once.ids()) == Counter(f"id-{n}" for n in range(4))
    tally = once.tally()
    assert (tally.read, tally.stored, tally.deduplicated) == (50, 4, 46)


class Killed(BaseException):
    """A worker that is killed."""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("commit", range(4))
def test_a_worker_may_die_at_any_commit(once: Once, commit: int, moment: str) -> None:
    """Also between the entry that forgets and that which takes."""
    source = NamedStream("a", by_tens)
    once.take(once.pipeline(source), source, 15)
    once.clock.advance(7_200)
    pipeline = once.pipeline(source)
    head, done = pipeline.table.head, [0]
    really = head.commit

    def dying(transaction: Transaction) -> TransactionNumber:
        done[0] += 1
        if done[0] == commit + 1 and moment == "before":
            raise Killed
        number = really(transaction)
        if done[0] == commit + 1:
            raise Killed
        return number

    head.commit = dying  # type: ignore[method-assign]  # a stand-in
    try:
        once.take(pipeline, source, 20)
        once.take(pipeline, source, 20)
    except Killed:
        pass
    head.commit = really  # type: ignore[method-assign]  # a stand-in
    source.there = 55
    once.take(once.pipeline(source), source, 0)
    found = Counter(once.ids())
    assert found == Counter({f"id-{n}": 1 for n in range(6)}) + Counter({"id-1": 1})
    assert once.tally().read == 55


def test_a_worker_waits_where_too_many_values_are_known(
    once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TakeItems, "MAX", 3)
    source = NamedStream("a", by_tens)
    pipeline = once.pipeline(source)
    once.take(pipeline, source, 30)
    with pytest.raises(TableBusyError):
        once.take(pipeline, source, 10)
    assert len(once.ids()) == 3
    once.clock.advance(3_700)
    once.take(pipeline, source, 0)
    assert len(once.ids()) == 4, "when old ones are forgotten it goes on"


def test_a_round_takes_no_more_values_than_an_entry_holds(once: Once) -> None:
    limits = once.pipeline(NamedStream("a", by_tens))._rotation.limits
    assert limits.records == once_values.VALUES_MAX


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (ONCE.replace('"id"', '"ids"'), "did you mean"),
        (ONCE.replace("3600", str(100 * 86_400)), "job_id_seconds_min"),
        (ONCE.replace("\ndedupe_field", "\n# "), "half of a window"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, policy: str, problem: str) -> None:
    with pytest.raises(InvalidError) as caught:
        Once(tmp_path, policy).pipeline(NamedStream("a", by_tens))
    assert problem in f"{caught.value} {caught.value.hint}"


def test_lists_are_refused(once: Once) -> None:
    fields = {"_split": "string", "_position": "int64"}
    schema = lakebed.schema_of(
        row_keys=fields, values={"_version": "int64", "id": {"list": "int64"}}
    )
    once.app.catalog.create(table_name("lists"), schema)
    named = replaced(once.definition.connection, table="lists", columns={"id": "id"})
    definition = replaced(once.definition, connection=named)
    with pytest.raises(InvalidError, match="not compared"):
        pipeline_from(once.app, definition, target_of(once.app, definition), Stream(), OwnsAll())


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["a", "b", "a", None, "a", None], pa.string()),
        ([b"a", b"b", b"a", None, b"a", None], pa.binary()),
        ([1, 2, 1, None, 1, None], pa.int8()),
        ([1.5, 2.5, 1.5, None, 1.5, None], pa.float32()),
        ([True, False, True, None, True, None], pa.bool_()),
        (
            [Decimal("1.50"), Decimal(2), Decimal("1.5"), None, Decimal("1.5"), None],
            pa.decimal128(6, 2),
        ),
        ([datetime.date(2026, 1, d) if d else None for d in (1, 2, 1, 0, 1, 0)], pa.date32()),
        ([d or None for d in (1, 2, 1, 0, 1, 0)], pa.timestamp("us", tz="UTC")),
        ([d or None for d in (1, 2, 1, 0, 1, 0)], pa.time64("us")),
    ],
    ids=str,
)
def test_the_first_of_each_value_of_any_type(values: Sequence[Any], type_: pa.DataType) -> None:
    column = pa.array([*values, *values], type_).slice(1, 6)
    asked: list[bytes] = []

    def are_new(items: Sequence[bytes]) -> list[bool]:
        asked.extend(items)
        return [item != items_of(pa.array(values[1:2], type_))[0] for item in items]

    assert first_of_values(column, are_new).tolist() == [False, True, True, False, True, False]
    assert len(set(asked)) == len(asked) == 2
    assert all(len(item) == 16 for item in asked)
    assert first_of_values(column.slice(0, 0), are_new).tolist() == []
    assert first_of_values(pa.nulls(2, type_), are_new).tolist() == [True, True]


def test_a_value_is_the_same_when_its_column_becomes_wider() -> None:
    for narrow, wide in ((pa.int8(), pa.int64()), (pa.float32(), pa.float64())):
        values = [1, 2, 100]
        assert items_of(pa.array(values, narrow)) == items_of(pa.array(values, wide))
    texts = items_of(pa.array([str(n) for n in range(1_000)]))
    assert len(set(texts)) == 1_000


def test_items_are_forgotten_by_log_time_and_of_one_connection(once: Once) -> None:
    head = once.app.catalog.find(table_name("web")).head
    source = NamedStream("a", by_tens)
    pipeline = once.pipeline(source)
    once.take(pipeline, source, 30)
    table = pipeline.table
    with table.head.reading() as state:
        start = start_of(state)
    with pytest.raises(InvalidError):
        head.commit(table.own(start, ForgetOldItems(pipeline.connection.id, 59)))
    head.commit(table.own(start, ForgetOldItems(pipeline.connection.id, 60)))
    assert once.items() == 3, "none is so old"
    once.clock.advance(200)
    head.commit(table.own(start, ForgetOldItems(pipeline.connection.id, 60)))
    assert once.items() == 0
    assert np.array(once.ids()).shape == (3,)
