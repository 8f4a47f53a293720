"""What commands say of a table that is damaged, while the others are worked on."""

import json
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import NewerFormatError
from lakebed.ports.job_queue import Message
from tests.dsl.format_numbers import make_newer
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


def damage_the_log(shell: Shell, name: str) -> None:
    with lakebed.connect(shell.lake) as lake:
        id_ = lake._app.catalog.entry(name).id
    for state in shell.lake.glob(f"cache/**/{id_}.sqlite*"):
        state.unlink()
    log = shell.lake / "logs" / f"{id_}.sqlite"
    log.write_bytes(b"\0" * log.stat().st_size)


def test_status_of_all_names_the_table_whose_log_is_damaged(shell: Shell) -> None:
    damage_the_log(shell, "trips")
    result = shell.run("status")
    assert result.exit_code == 7
    assert "good: 4 rows in 2 files" in result.stdout
    assert "trips: corrupt: " in result.stdout
    values = json.loads(shell.run("status", "--json").stdout)
    assert [value["name"] for value in values] == ["good", "trips"]
    assert values[1]["error"]["code"] == "corrupt"
    assert shell.ok("table", "list").split() == ["good", "trips"]


def test_a_table_is_set_aside_and_brought_back(shell: Shell) -> None:
    damage_the_log(shell, "trips")
    assert shell.ok("table", "quarantine", "trips") == "table trips is in quarantine\n"
    assert "trips  (quarantined)" in shell.ok("table", "list")
    assert "trips: table-quarantined: " in shell.ok("status")
    shell.ok("run")
    code, error = shell.refused("query", "trips")
    assert (code, error["code"]) == (2, "table-quarantined")
    assert shell.ok("table", "quarantine", "trips", "--undo") == "table trips is online\n"
    assert shell.run("run").exit_code == 7
    assert shell.ok("table", "offline", "trips") == "table trips is offline\n"
    shell.ok("run")


def test_a_backup_leaves_a_table_in_quarantine_out_and_says_so(
    shell: Shell, tmp_path: Path
) -> None:
    shell.ok("table", "quarantine", "trips")
    backup = str(tmp_path / "backup")
    shown = shell.ok("backup", backup)
    assert "trips: left out, it is in quarantine; a copy that was made before stays" in shown
    assert "1 table copied into" in shown
    found = shell.json("backup", backup)
    assert found["quarantined"] == ["trips"]
    assert [table["table"] for table in found["tables"]] == ["good"]


def test_a_table_whose_log_is_damaged_is_dropped_from_quarantine(shell: Shell) -> None:
    damage_the_log(shell, "trips")
    code, error = shell.refused("table", "drop", "trips", "--yes")
    assert (code, "`lakebed table quarantine trips`" in error["hint"]) == (7, True)
    shell.ok("table", "quarantine", "trips")
    shell.ok("table", "drop", "trips", "--dry-run")
    assert shell.ok("table", "drop", "trips", "--yes") == "dropped table trips\n"
    assert shell.ok("table", "list").split() == ["good"]


def test_fsck_of_a_table_of_a_newer_release_looks_at_the_others_and_exits_as_one_who_is_older(
    shell: Shell,
) -> None:
    shell.ok("table", "quarantine", "trips")
    shell.ok("table", "create", "newer", "--row-key", "id:string")
    with lakebed.connect(shell.lake) as lake:
        id_ = lake._app.catalog.entry("newer").id
    make_newer(shell.lake / "logs" / f"{id_}.sqlite")
    result = shell.run("fsck", "--json")
    assert result.exit_code == NewerFormatError.exit_code
    report = json.loads(result.stdout)
    assert (report["tables"], report["files"]) == (2, 2)
    assert {one["code"] for one in report["findings"]} == {"table-newer", "table-quarantined"}


def test_status_counts_the_dead_letters_of_every_queue(shell: Shell) -> None:
    with lakebed.connect(shell.lake) as lake:
        for name in ("compaction", "ingest"):
            queue = lake._app.queues.open(name)
            queue.send([Message(b"x")])
            (message,) = queue.receive(messages_max=1, hidden_seconds=10)
            queue.give_up(message)
    (line,) = {line for line in shell.ok("status").splitlines() if "dead letter" in line}
    assert "2 dead letters (compaction 1, ingest 1): see `lakebed dead-letters list`" in line
    for status in shell.json("status"):
        assert status["dead_letters"] == 2
        assert status["dead_letters_of"] == {"compaction": 1, "ingest": 1}


def test_a_range_of_another_field_is_pointed_to_a_predicate(shell: Shell) -> None:
    shell.ok("table", "create", "sorted", "--row-key", "id:string", "--sort-key", "at:int64")
    code, error = shell.refused("query", "sorted", "--range", "at=1..2")
    assert (code, error["message"]) == (2, "not a row key")
    assert "--where" in error["hint"]


def test_leaves_that_share_a_file_share_its_bytes(shell: Shell) -> None:
    shell.ok("table", "create", "shared", "--row-key", "id:string", "--split-point", "b")
    shell.ok("ingest", "shared", shell.write("c.parquet", {"id": ["a", *(["b"] * 9)]}))
    (status,) = shell.json("status", "shared")
    small, large = [node["bytes"] for node in status["nodes"] if node["left"] is None]
    assert status["files"] == 1
    assert small == status["bytes"] // 10
    assert status["bytes"] - 1 <= small + large <= status["bytes"]
