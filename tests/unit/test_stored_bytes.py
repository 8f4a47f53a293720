"""How many bytes a table has comes into the ledger once a day."""

from pathlib import Path

import pyarrow as pa

import lakebed
from lakebed.backends.memory import MemoryUsageLedger, VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import UnavailableError
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.ports.paying.usage_ledger import LedgerEntry
from lakebed.schedules.stored_bytes import STORED, KeepStoredBytes
from lakebed.statestore.table_state.figures import file_figures, garbage_figures

DAY = 86_400


def given_files(lake: Lake, files: int) -> None:
    table = lake.create_table("trips", lakebed.schema_of(row_keys={"id": "int64"}))
    for n in range(files):
        table.ingest(pa.table({"id": [n]}))


def stored(lake: Lake) -> list[LedgerEntry]:
    ledger = lake._app.paying.ledger
    assert ledger is not None
    id_ = lake.table("trips")._opened.id
    return [one for one in ledger.read(id_, since=0, until=1 << 30) if one.kind == STORED]


def test_files_and_garbage_are_counted_once_a_day(tmp_path: Path) -> None:
    clock = VirtualClock()
    clock.advance(DAY - clock.now() // MICROS_PER_SECOND % DAY)
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        given_files(lake, 12)
        for _ in range(2):
            lake.run()
        with lake.table("trips")._opened.head.reading() as state:
            files = file_figures(state)
            garbage = garbage_figures(state, before=clock.now(), now=clock.now())
        assert garbage.files > 0
        (first,) = stored(lake)
        assert first.counts["local_byte_days"] == files.size + garbage.size
        clock.advance(DAY)
        lake.run()
        assert [one.hour for one in stored(lake)] == [first.hour, first.hour + 24]


def test_a_ledger_that_is_away_harms_no_sweep(tmp_path: Path) -> None:
    class Away(MemoryUsageLedger):
        def add_once(self, entry: LedgerEntry) -> bool:
            raise UnavailableError("busy", table=entry.table)

    with lakebed.connect(tmp_path / "lake") as lake:
        given_files(lake, 1)
        table = lake.table("trips")._opened
        assert KeepStoredBytes(Away(), clock=VirtualClock()).run(table) is False
