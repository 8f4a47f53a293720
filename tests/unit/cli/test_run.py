"""`lakebed run` on a table that is named: the proof of row 164 of docs/map.md."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A table with four files that a merge has replaced."""
    found = Shell(tmp_path)
    settings = ("--set", "garbage_seconds_min=0")
    found.ok("table", "create", "trips", "--row-key", "id:string", *settings)
    for n in range(4):
        found.ok("ingest", "trips", found.write(f"{n}.parquet", {"id": [str(n)]}))
    found.ok("table", "set", "trips", "garbage_seconds_min=3600")
    found.ok("compact", "trips")
    found.ok("table", "set", "trips", "garbage_seconds_min=0")
    return found


def test_row_164_run_of_a_table_collects_its_garbage(shell: Shell) -> None:
    assert shell.json("status", "trips")[0]["garbage_files"] == 4
    assert "4 files collected" in shell.ok("run", "trips")
    assert shell.json("status", "trips")[0]["garbage_files"] == 0


def test_row_164_a_table_that_is_offline_is_collected_when_it_is_named(shell: Shell) -> None:
    shell.ok("table", "offline", "trips")
    assert "collected" not in shell.ok("run")
    assert "4 files collected" in shell.ok("run", "trips")
