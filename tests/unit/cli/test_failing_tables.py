"""What commands say of a table that is damaged, while the others are worked on."""

import json
from pathlib import Path

import pytest

import lakebed
from tests.unit.cli.programs import Shell

TABLES = ("good", "trips")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Two tables with two files each, of which one is damaged."""
    found = Shell(tmp_path)
    for name in TABLES:
        found.ok("table", "create", name, "--row-key", "id:string", "--set", "job_files_max=2",
                 "--set", "compaction_strategy=basic")  # fmt: skip
        for part in ("a", "b"):
            found.ok("ingest", name, found.write(f"{part}.parquet", {"id": [part, "z"]}))
    with lakebed.connect(found.lake) as lake:
        id_ = lake._app.catalog.entry("trips").id
    flip(min(found.lake.glob(f"objects/tables/{id_}/files/**/*.parquet")))
    return found


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[-20] ^= 1
    path.write_bytes(body)


def test_run_says_what_failed_and_does_the_rest(shell: Shell) -> None:
    result = shell.run("run")
    assert result.exit_code == 7
    assert "2 compaction jobs done" in result.stdout
    assert result.stdout.rstrip().endswith("; 1 table failed: trips")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("failed: table trips, compaction: corrupt: ")
    assert ".parquet" in line
    assert "`lakebed fsck trips --deep`" in line
    assert [status["files"] for status in shell.json("status")] == [1, 2]


def test_run_says_it_in_json(shell: Shell) -> None:
    result = shell.run("run", "--json")
    assert result.exit_code == 7
    assert result.stderr == ""
    (failed,) = json.loads(result.stdout)["failed"]
    assert (failed["table"], failed["work"], failed["code"]) == ("trips", "compaction", "corrupt")
    assert shell.json("run")["failed"] == []


def test_compact_says_what_failed(shell: Shell) -> None:
    result = shell.run("compact", "trips")
    assert result.exit_code == 7
    assert "failed: table trips, compaction: corrupt" in result.stderr
    assert shell.ok("compact", "good")
