"""`lakebed feed where`: from a record to its log entries, files and row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell

ROWS, BYTES = 250_000, 17
TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.log" }}
decoder = {{ format = "json" }}
landing = true
rotate_bytes = 1073741824
[connection.traced]
feed = "orders"
table = "traced"
lineage = true
columns = {{ id = "id" }}
policy = "Large"
[connection.plain]
feed = "orders"
table = "plain"
[policy.Large]
extends = "FaultTolerant"
rotate_bytes = 1073741824
"""
LINEAGE = ["--value", "_split:string", "--value", "_position:int64", "--value", "_version:int64"]


def made(folder: Path) -> Shell:
    shell = Shell(folder)
    shell.ok("table", "create", "traced", "--row-key", "id:int64", *LINEAGE)
    shell.ok("table", "create", "plain", "--row-key", "id:int64")
    path = folder / "feeds.toml"
    path.write_text(TEXT.format(folder=folder))
    shell.ok("feed", "apply", str(path))
    shell.ok("feed", "start", "orders")
    return shell


def more(shell: Shell, first: int, count: int) -> None:
    with (shell.folder / "a.log").open("a") as file:
        file.writelines(f'{{"id": {id_:8}}}\n' for id_ in range(first, first + count))
    shell.ok("feed", "run", "--once")


def split_of(shell: Shell) -> str:
    (kept,) = shell.json("feed", "positions", "list", "orders_landing")
    return str(kept["source_split"])


def where(shell: Shell, record: int) -> dict[str, Any]:
    found = shell.json("feed", "where", "orders", split_of(shell), str(record * BYTES))
    assert [one["connection"] for one in found] == ["", "plain", "traced"]
    return {one["table"]: one for one in found}


def holds(shell: Shell, found: dict[str, Any], column: str, value: int) -> bool:
    """Whether a row group, and no other of its file, holds a value."""
    (file,) = found["files"]
    assert file["rows"] == 1
    read = pq.ParquetFile(shell.lake / "objects" / file["path"])
    row_groups = range(read.num_row_groups)
    holding = [n for n in row_groups if value in set(read.read_row_group(n)[column].to_pylist())]
    return holding == [file["row_group"]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = made(tmp_path_factory.mktemp("where"))
    more(shell, 0, ROWS)
    more(shell, ROWS, 3)
    return shell


@pytest.mark.parametrize("record", [0, 99_999, 100_000, 150_000, ROWS - 1, ROWS + 1])
def test_one_lookup_returns_entry_file_and_row_group(shell: Shell, record: int) -> None:
    found = where(shell, record)
    for table, column, value in [
        ("orders_landing", "position", record * BYTES),
        ("traced", "_position", record * BYTES),
    ]:
        (entry,) = found[table]["entries"]
        assert entry["begin"] <= record * BYTES < entry["end"]
        assert (entry["begin"] > 0) == (record >= ROWS)
        assert holds(shell, found[table], column, value), table
    assert found["orders_landing"]["files"][0]["row_group"] == (record // 100_000) % 3 * (
        record < ROWS
    )
    assert [len(found["plain"][of]) for of in ("entries", "files")] == [1, 0]
    assert not found["plain"]["has_lineage"]


def test_people_see_a_line_for_each_entry_and_file(shell: Shell) -> None:
    lines = shell.ok("feed", "where", "orders", split_of(shell), str(5 * BYTES)).splitlines()
    assert lines[0].split() == [
        "TABLE", "ENTRY", "AT", "FROM", "TO", "ROWS", "FILE", "ROW", "GROUP",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == [
        "orders_landing", "orders_landing", "plain:", "plain:", "traced:", "traced:",
    ]  # fmt: skip
    assert lines[4].endswith("not known: no lineage")
    assert lines[2].split()[1:2] == ["1"]
    assert lines[2].endswith(" 0")
    assert shell.ok("feed", "where", "orders", split_of(shell), "99999999") == "no entry took it\n"
    assert shell.ok("feed", "where", "orders", "another", "0") == "no entry took it\n"


def test_after_compaction_the_file_that_holds_it_now_is_named(tmp_path: Path) -> None:
    shell = made(tmp_path)
    for first in range(0, 48, 3):
        more(shell, first, 3)
    before = {of: found["files"] for of, found in where(shell, 4).items()}
    for table in ("orders_landing", "traced"):
        assert shell.json("compact", table)["jobs_done"] == 1
    after = where(shell, 4)
    for table, column in (("orders_landing", "position"), ("traced", "_position")):
        assert after[table]["files"] != before[table]
        assert holds(shell, after[table], column, 4 * BYTES)
        assert [entry["stored"] for entry in after[table]["entries"]] == [3]


def test_what_became_no_row_has_an_entry_and_no_file(tmp_path: Path) -> None:
    shell = made(tmp_path)
    (shell.folder / "a.log").write_text("no json at all..\n")
    shell.ok("feed", "run", "--once")
    found = where(shell, 0)
    assert [len(found[of]["files"]) for of in ("orders_landing", "traced")] == [1, 0]
    assert [len(found[of]["entries"]) for of in ("orders_landing", "traced")] == [1, 1]


def test_a_record_that_was_replayed_is_found_by_its_own_position(tmp_path: Path) -> None:
    shell = made(tmp_path)
    (shell.folder / "a.log").write_text('{"key":       7}\n')
    shell.ok("feed", "run", "--once")
    text = (tmp_path / "feeds.toml").read_text().replace('id = "id"', 'id = "key"')
    (tmp_path / "feeds.toml").write_text(text)
    shell.ok("feed", "apply", str(tmp_path / "feeds.toml"))
    shell.ok("feed", "quarantine", "replay", "orders", "--connection", "traced")
    found = where(shell, 0)["traced"]
    assert [entry["source_split"][:9] for entry in found["entries"]][1:] == ["replay:1:"]
    assert holds(shell, found, "_position", 0)


def test_a_table_that_is_gone_hides_no_other(tmp_path: Path) -> None:
    shell = made(tmp_path)
    more(shell, 0, 1)
    split = split_of(shell)
    shell.ok("table", "drop", "traced", "--yes")
    found = shell.json("feed", "where", "orders", split, "0")
    assert [one["connection"] for one in found] == ["", "plain"]
    for table in ("plain", "orders_landing"):
        shell.ok("table", "drop", table, "--yes")
    code, error = shell.refused("feed", "where", "orders", split, "0")
    assert (code, error["code"]) == (2, "table-missing")
