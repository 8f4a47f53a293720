"""The version of an export stays while it is needed; several processes may do one export."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.backends.local import object_store
from lakebed.backends.local.durable_folder import sync_remaining_folder
from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.errors import UnknownOutcomeError
from lakebed.exports import export_table, write_slice
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import Exported, ExportTable
from lakebed.exports.rows_object import put_rows
from lakebed.exports.target import MANIFEST, PLAN, PROGRESS
from lakebed.ports.object_store import ObjectStore
from lakebed.query.parquet_objects import ParquetPut, put_bytes, row_groups_of
from lakebed.query.run_query import QueryPlan
from lakebed.query.slices import Slice, plan_of_slice
from lakebed.statestore.version_pin import VersionPin
from tests.unit.exports.exported_lake import SLICE_BYTES, ExportedLake, exported_lake, rows

DAY = 86_400


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def test_two_processes_may_do_one_export_at_once(made: ExportedLake) -> None:
    found: list[Exported] = []
    wanted = made.table.to_arrow()
    threads = [
        threading.Thread(target=lambda: found.append(made.export(workers=2))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.number for one in found}) == 1
    assert len(found) == 3
    assert made.read().equals(wanted)
    assert made.pins() == []


def test_another_process_may_finish_while_the_plan_is_put(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removes the plan that this one met: that looks like a write with a lost answer."""
    other: list[Exported] = []

    def overtaken(_objects: object, path: str, _body: bytes) -> None:
        assert path == PLAN
        monkeypatch.undo()
        other.append(made.export())
        raise UnknownOutcomeError("a write's outcome is unknown", path=path)

    monkeypatch.setattr(export_table, "put_bytes", overtaken)
    found = made.export()
    assert (found.number, found.repeated) == (other[0].number, True)
    assert made.pins() == []


def test_a_plan_of_unknown_outcome_keeps_its_pin(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be there, and the next run goes on with it."""

    def put_and_lost(objects: ObjectStore, path: str, body: bytes) -> None:
        put_bytes(objects, path, body)
        raise UnknownOutcomeError("a write's outcome is unknown", path=path)

    with monkeypatch.context() as patched:
        patched.setattr(export_table, "put_bytes", put_and_lost)
        with pytest.raises(UnknownOutcomeError):
            made.export()
    (pin,) = made.pins()
    assert made.export().number == pin.number
    assert made.pins() == []


def test_another_process_may_remove_the_folder_of_what_is_deleted(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_first(path: Path) -> None:
        if path.name == PROGRESS and not any(path.iterdir()):
            path.rmdir()
        sync_remaining_folder(path)

    monkeypatch.setattr(object_store, "sync_remaining_folder", removed_first)
    wanted = made.table.to_arrow()
    assert not made.export().repeated
    assert made.read().equals(wanted)


def test_another_process_may_tidy_up_at_the_same_time(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    abort_unfinished = PlainLocalObjects.abort_unfinished
    removed: list[Path] = []

    def removed_first(store: PlainLocalObjects, *, older_than_seconds: float) -> int:
        store._unfinished.rmdir()
        removed.append(store._unfinished)
        return abort_unfinished(store, older_than_seconds=older_than_seconds)

    monkeypatch.setattr(PlainLocalObjects, "abort_unfinished", removed_first)
    assert not made.export().repeated
    assert removed


def test_the_version_stays_until_the_export_is_done(made: ExportedLake) -> None:
    wanted = made.table.to_arrow()
    assert made.killed(3)
    made.table.compact()
    made.clock.advance(DAY / 2)
    assert made.lake.run().files_collected == 0
    made.export()
    assert made.read().equals(wanted)
    assert made.lake.run().files_collected > 0


def test_an_export_that_goes_on_pins_its_version_for_another_day(made: ExportedLake) -> None:
    assert made.killed(3)
    (before,) = made.pins()
    made.clock.advance(DAY / 2)
    assert made.killed(1)  # of its next effects
    (after,) = made.pins()
    assert (after.id, after.number) == (before.id, before.number)
    assert after.until - before.until >= DAY / 2 * 10**6


def test_an_export_that_goes_on_after_its_pin_ended_pins_the_same_version_again(
    made: ExportedLake,
) -> None:
    made.table.compact()
    wanted = made.table.to_arrow()
    assert made.killed(3)
    (before,) = made.pins()
    made.clock.advance(2 * DAY)
    assert made.lake.run().files_collected > 0  # what became garbage before the pin
    assert made.pins() == []
    made.table.ingest(rows(0, 5))
    assert made.killed(1)
    (after,) = made.pins()
    assert (after.id, after.number) == (before.id, before.number)
    made.table.compact()
    made.clock.advance(DAY / 2)
    made.lake.run()
    assert made.export().number == before.number
    assert made.read().equals(wanted)


def test_what_is_committed_between_pin_and_plan_is_not_exported(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pin keeps nothing of what a later entry brings."""
    wanted, put = made.table.to_arrow(), VersionPin.put

    def put_and_overtaken(pin: VersionPin) -> None:
        put(pin)
        made.table.ingest(rows(0, 5))

    with monkeypatch.context() as patched:
        patched.setattr(VersionPin, "put", put_and_overtaken)
        assert made.killed(3)
    (pin,) = made.pins()
    made.table.compact()
    made.clock.advance(DAY / 2)
    made.lake.run()
    assert made.export().number == pin.number
    assert made.read().equals(wanted)


def test_a_pin_is_renewed_while_slices_are_written(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    untils: list[int] = []
    look_at = made.table._opened

    def wait_half_a_day(rows_done: int, _total: int) -> None:
        made.clock.advance(DAY / 2)
        with look_at.head.reading() as state:
            untils.extend(pin.until - state.head().at for pin in state.pins())

    service = ExportTable(query=made.lake._app.query, clock=made.clock)
    service.run(
        look_at,
        made.target(),
        ExportRequest(),
        workers=1,
        slice_bytes=SLICE_BYTES,
        on_progress=wait_half_a_day,
    )
    assert len(untils) == 4
    assert min(untils) > 0


def test_a_process_that_another_one_overtakes_ends_with_its_result(made: ExportedLake) -> None:
    wanted = made.table.to_arrow()
    faster: list[Exported] = []

    def overtake(_done: int, _total: int) -> None:
        if not faster:
            faster.append(made.export())  # it removes folders that this one knows

    service = ExportTable(query=made.lake._app.query, clock=made.clock)
    done = service.run(
        made.table._opened,
        made.target(),
        ExportRequest(),
        workers=1,
        slice_bytes=SLICE_BYTES,
        on_progress=overtake,
    )
    assert (done.number, done.repeated) == (faster[0].number, True)
    assert made.read().equals(wanted)
    assert set(made.names()) == {*(file.name for file in made.files()), MANIFEST}
    assert made.pins() == []


def test_the_next_slice_is_read_while_a_file_is_finished(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever puts the first file waits until rows of the second slice were read. Never more slices
    are read at once than there are workers."""
    read: list[int] = []
    is_read = threading.Event()
    reading, most = 0, 0

    def noted(plan: QueryPlan, part: Slice) -> QueryPlan:
        read.append(part.number)
        if len(read) == 2:
            is_read.set()
        return plan_of_slice(plan, part)

    def patient(*given: Any, **named: Any) -> ParquetPut:  # noqa: ANN401 - as it is called
        done = put_rows(*given, **named)
        assert is_read.wait(60)
        return done

    def counted(batches: Iterator[pa.RecordBatch], *, bytes_max: int) -> Iterator[pa.Table]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        yield from row_groups_of(batches, bytes_max=bytes_max)
        reading -= 1

    monkeypatch.setattr(write_slice, "plan_of_slice", noted)
    monkeypatch.setattr(write_slice, "put_rows", patient)
    monkeypatch.setattr(write_slice, "row_groups_of", counted)
    wanted = made.table.to_arrow()
    made.export(workers=1)
    assert made.read().equals(wanted)
    assert (len(read), most) == (4, 1)
