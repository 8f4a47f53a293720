"""A cache that is cut while it is open is damage, and is made anew: it is not called busy."""

import os
import sqlite3
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.local import sqlite_database
from lakebed.errors import CacheDamagedError, CorruptError
from lakebed.statestore.table_state.database_errors import translated
from tests.unit.tables.lakes import SCHEMA, ids, rows


@pytest.mark.parametrize("left_bytes", [0, 32, 5_000])
def test_a_cache_that_is_cut_while_it_is_open_is_made_anew(tmp_path: Path, left_bytes: int) -> None:
    wanted = [f"{n:03d}" for n in range(40)]
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        for key in wanted[:20]:
            table.ingest(rows([key]))
        assert ids(table) == wanted[:20]
        (wal,) = (tmp_path / "lake").glob("cache/*.sqlite-wal")
        assert wal.stat().st_size > left_bytes
        os.truncate(wal, left_bytes)
        with lakebed.connect(tmp_path / "lake") as other:
            other.table("t").ingest(rows(wanted[20:]))
        assert ids(table) == wanted


def short_read() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHORT_READ
    return error


def test_a_file_that_is_shorter_than_it_says_is_damaged() -> None:
    assert isinstance(translated(short_read()), CacheDamagedError)
    meaning = sqlite_database.meaning_of(short_read(), Path("x"), wrote=False)
    assert type(meaning) is CorruptError
