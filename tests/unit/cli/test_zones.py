"""Files with local times, as people have them."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_file_with_local_times_as_its_key(shell: Shell) -> None:
    local = pa.array(["2024-07-01T12:00:00"]).cast(pa.timestamp("ns"))
    path = shell.write("rows.parquet", {"at": local, "seen": local, "n": [1]})
    create = ("table", "create", "t", "--like", path)
    code, error = shell.refused(*create, "--row-key", "at")
    assert (code, error["hint"].split(", and")[0]) == (2, "make it 'timestamp[us, UTC]'")
    types = ("--row-key", "at:timestamp[us, UTC]", "--value", "seen:timestamp[us, UTC]?")
    shell.ok(*create, *types)
    assert shell.refused("ingest", "t", path)[1]["facts"]["field"] == "at"
    shell.ok("ingest", "t", path, "--zone", "Europe/Berlin", "--zone", "seen=UTC")
    (row,) = shell.ok("query", "t", "--format", "csv").splitlines()[1:]
    assert row == '"2024-07-01T10:00:00Z","2024-07-01T12:00:00Z",1'


@pytest.mark.parametrize("zones", [("UTC", "UTC"), ("at=UTC", "at=CET")])
def test_two_zones_where_one_is_meant_are_refused(shell: Shell, zones: tuple[str, str]) -> None:
    shell.ok("table", "create", "t", "--row-key", "at:timestamp[us, UTC]")
    path = shell.folder / "rows.csv"
    path.write_text("at\n2024-07-01\n", "utf-8")
    given = [word for zone in zones for word in ("--zone", zone)]
    code, error = shell.refused("ingest", "t", str(path), *given)
    assert (code, error["message"]) == (2, "two zones where one is meant")
    assert shell.refused("ingest", "t", str(path))[1]["hint"].endswith("for instance --zone UTC")
    assert "1 row" in shell.ok("ingest", "t", str(path), "--zone", "UTC")
