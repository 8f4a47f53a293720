"""Older versions are read by number, time and tag, as they were, or refused with what is there."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import (
    CorruptError,
    FormatGateError,
    InvalidError,
    LogTruncatedError,
    TagExistsError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from lakebed.model.formats import Formats
from lakebed.model.names import MICROS_PER_SECOND, TransactionNumber
from lakebed.model.versions import time_of
from lakebed.ports.transaction_log import TransactionLog
from lakebed.query import past_versions
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.version_pin import VersionPin
from lakebed.statestore.write_snapshot import truncate_log
from tests.unit.tables.lakes import SCHEMA, ids, rows

HOUR = 3_600


@pytest.fixture
def table(lake: Lake) -> lakebed.Table:
    return lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": HOUR})


def found(table: lakebed.Table, as_of: object) -> list[str]:
    read = table.query(columns=["id"], as_of=as_of).read_all()  # type: ignore[arg-type]  # any kind
    ids: list[str] = read["id"].to_pylist()
    return ids


def told(table: lakebed.Table, as_of: object, kind: type[Exception], *texts: str) -> None:
    for ask in (table.query, table.explain, table.to_arrow):
        with pytest.raises(kind) as caught:
            ask(as_of=as_of)  # type: ignore[operator]  # of three kinds
        for text in texts:
            assert text in str(caught.value)


def collected(lake: Lake, table: lakebed.Table, clock: VirtualClock) -> None:
    """Merge, and collect what was merged away."""
    table.compact()
    clock.advance(2 * HOUR)
    lake.run()


def empty_log(table: lakebed.Table) -> int:
    """Write two snapshots, and empty the log below the first."""
    table.write_snapshot()
    table.ingest(rows(["zz"]))
    table.write_snapshot()
    log = table._app.logs.open(table._opened.id)
    return truncate_log(table._opened, table._snapshots(), log)


def test_the_number_of_an_ingest_reads_what_it_wrote(table: lakebed.Table) -> None:
    first, second = table.ingest(rows("ab")).number, table.ingest(rows("c")).number
    assert found(table, first) == ["a", "b"]
    assert found(table, str(first)) == ["a", "b"]
    assert found(table, second) == ids(table) == ["a", "b", "c"]
    assert (table.count(as_of=first), table.count(as_of=second), len(table)) == (2, 3, 3)
    assert table.count(as_of=first, keys=["c"]) == 0
    assert table.explain(as_of=first).number == first
    assert table.explain(as_of=first).files == 1
    assert table.to_arrow(as_of=first).num_rows == 2


def test_a_time_reads_the_newest_version_by_then(table: lakebed.Table, clock: VirtualClock) -> None:
    times = [time_of(clock.now())]
    for name in "abc":
        clock.advance(7)
        table.ingest(rows(name))
        times.append(time_of(clock.now()))
    assert found(table, times[2]) == ["a", "b"]
    assert found(table, times[2] - timedelta(microseconds=1)) == ["a"]
    assert found(table, times[3].isoformat()) == ["a", "b", "c"]
    assert found(table, times[2].astimezone(timezone(timedelta(hours=5)))) == ["a", "b"]
    told(table, times[0] - timedelta(days=1), InvalidError, "the table is younger")
    told(table, times[3] + timedelta(seconds=1), InvalidError, "the time lies ahead")
    clock.advance(60)
    assert found(table, times[3] + timedelta(seconds=30)) == ["a", "b", "c"]


def test_a_tag_reads_its_version_for_ever(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("ab"))
    second = table.ingest(rows("c")).number
    table.ingest(rows("d"))
    assert table.tag("q3", as_of=second).number == second
    table.tag("same", as_of="q3")
    assert [(tag.name, tag.number) for tag in table.tags()] == [("q3", second), ("same", second)]
    collected(lake, table, clock)
    table.clear()
    collected(lake, table, clock)
    assert empty_log(table) > second
    assert found(table, "q3") == found(table, second) == ["a", "b", "c"]
    assert table.count(as_of="q3") == 3
    assert not lake.fsck("t").findings
    table.drop_tag("q3")
    assert found(table, "same") == ["a", "b", "c"]
    table.drop_tag("same")
    assert lake.run().files_collected == 2
    told(table, second, VersionExpiredError, "the oldest that can still be read")


def test_what_was_collected_is_refused_and_the_oldest_is_named(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    first = table.ingest(rows("ab")).number
    table.ingest(rows("c"))
    collected(lake, table, clock)
    horizon = lake.status("t")[0].horizon
    assert horizon is not None
    told(table, first, VersionExpiredError, f"the oldest that can still be read is {horizon}")
    with pytest.raises(VersionExpiredError, match=f"can still be read is {horizon}"):
        table.tag("late", as_of=first)
    assert found(table, horizon) == ["a", "b", "c"]
    assert table.tag("oldest", as_of=horizon).number == horizon


def test_a_version_whose_files_go_while_it_is_read_is_told(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    first = table.ingest(rows("ab")).number
    table.ingest(rows("c"))
    reader = table.query(as_of=first)
    collected(lake, table, clock)
    with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
        reader.read_all()


def test_a_missing_file_of_a_tag_is_damage(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("ab"))
    table.tag("then")
    table.clear()
    collected(lake, table, clock)
    (path,) = Path(lake._app.location).glob("objects/tables/*/files/**/*.parquet")
    path.unlink()
    with pytest.raises(CorruptError, match="a file of the table is missing"):
        table.query(as_of="then").read_all()


def test_what_lies_ahead_and_what_is_no_version_is_refused(table: lakebed.Table) -> None:
    last = table.ingest(rows("ab")).number
    table.tag("2026-q3")
    told(table, last + 5, InvalidError, f"the newest version is {last + 1}")
    told(table, "2026-q4", InvalidError, "did you mean '2026-q3'?")
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is wrong with it
    for bad in (0, -1, True, 1.5, "", "a b", naive, "2026-01-01", b"x", 1 << 60):
        told(table, bad, InvalidError)
    with pytest.raises(TagExistsError):
        table.tag("2026-q3")
    with pytest.raises(InvalidError, match="no such tag"):
        table.drop_tag("2026-q4")


def test_schema_and_processing_are_those_of_the_version(lake: Lake, clock: VirtualClock) -> None:
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"at": "timestamp[us, UTC]"})
    table = lake.create_table(
        "aged", schema, processing=lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=HOUR))
    )
    at = pa.array([clock.now()], pa.timestamp("us", "UTC"))
    number = table.ingest(pa.table({"id": ["a"], "at": at})).number
    table.rename_field("id", "key")
    clock.advance(2 * HOUR)
    assert len(table.to_arrow()) == 0
    then = table.to_arrow(as_of=number)
    assert then.column_names == ["id", "at"]
    assert then["id"].to_pylist() == ["a"]
    assert table.count(as_of=number) == 1
    with pytest.raises(InvalidError, match="key"):
        table.query(as_of=number, columns=["key"])


def test_a_process_keeps_few_past_states(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [table.ingest(rows(name)).number for name in "abcde"]
    made = []
    past_state = past_versions.past_state

    def counted(*given: object) -> object:
        made.append(given[-1])
        return past_state(*given)  # type: ignore[arg-type]  # any kind

    monkeypatch.setattr(past_versions, "past_state", counted)
    for _ in range(3):
        assert found(table, numbers[0]) == ["a"]
        assert found(table, numbers[1]) == ["a", "b"]
    assert made == numbers[:2]
    table._app.past._bytes_max = 1
    for number in numbers[:3]:
        found(table, number)
    assert len(table._app.past._states) == 1


def test_a_pinned_version_is_found_though_the_log_is_emptied_while_it_is_looked_for(
    table: lakebed.Table, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = TransactionNumber(table.ingest(rows("ab")).number)
    table.ingest(rows("c"))
    VersionPin(table._opened, "reader", clock, number=first).put()
    past_state, emptied = past_versions.past_state, []

    def looked_too_early(
        log: TransactionLog, snapshots: Snapshots, number: TransactionNumber | None
    ) -> TableState:
        if not emptied:
            emptied.append(empty_log(table))
            raise LogTruncatedError(emptied[0])
        return past_state(log, snapshots, number)

    monkeypatch.setattr(past_versions, "past_state", looked_too_early)
    assert found(table, first) == ["a", "b"]
    assert emptied[0] > first


def test_a_lake_of_older_releases_gets_no_tags_and_reads_its_past(
    tmp_path: Path, clock: VirtualClock
) -> None:
    app = open_local(tmp_path / "old", clock=clock)
    app.registry.raise_formats(Formats(entry=5, state=3))
    with Lake(app) as lake:
        table = lake.create_table("t", SCHEMA)
        first = table.ingest(rows("a")).number
        table.ingest(rows("b"))
        assert found(table, first) == ["a"]
        with pytest.raises(FormatGateError, match="lakebed upgrade finish"):
            table.tag("then")
        assert lake.status("t")[0].horizon is None
        lake.finish_upgrade()
        clock.advance(61)
        with pytest.raises(VersionExpiredError):
            table.tag("then", as_of=first)
        newest = table.ingest(rows("c")).number
        assert table.tag("now", as_of=newest).number == newest
        assert table.tag("newest").number > newest


def test_status_tells_what_each_tag_costs(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("ab"))
    table.tag("then")
    table.ingest(rows("c"))
    collected(lake, table, clock)
    (status,) = lake.status("t")
    (holder,) = status.holders
    assert (holder.kind, holder.name, holder.until) == ("tag", "then", None)
    assert holder.bytes == status.garbage_bytes > 0
    assert status.garbage_due == 0


def test_times_are_in_utc() -> None:
    assert time_of(1_500_000) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert MICROS_PER_SECOND == 1_000_000
