"""What a person types to let files wait, and to see what became of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table whose batches are due at once."""
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64?")
    shell.ok("table", "set", "trips", "batch_seconds_max=0")
    return shell


def test_files_wait_and_become_rows_with_the_next_run(trips: Shell) -> None:
    files = [trips.write(f"{key}.parquet", {"id": [key], "n": [1]}) for key in "ab"]
    assert trips.ok("submit", "trips", *files) == "2 files wait for a batch\n"
    said = trips.ok("submit", "trips", *files)
    assert said == "0 files wait for a batch; 2 files were submitted before, dropped\n"
    waiting = trips.ok("batches", "trips", "--pending")
    assert waiting.splitlines()[0].split() == ["submitted", "waits", "bytes", "file"]
    assert files[0] in waiting
    assert [one["file"] for one in trips.json("batches", "trips", "--pending")] == files
    assert "1 batch of submitted files made, 1 batch taken in" in trips.ok("run")
    assert len(trips.ok("query", "trips", "--json").splitlines()) == 2
    (batch,) = trips.json("batches", "trips")
    assert batch["state"] == "committed"
    assert sorted(batch["names"]) == files
    assert trips.json("batches", "trips", "--pending") == []
    said = trips.ok("batches", "trips")
    assert "committed" in said
    assert batch["job"] in said
    assert trips.json("submit", "trips", files[0]) == {"files": 1, "added": 0, "doubles": 1}


def test_what_was_left_out_is_named_with_the_reason(trips: Shell, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("id,n\nx,many\n")
    trips.ok("submit", "trips", str(bad))
    trips.ok("run")
    assert f"batch 1 left out {bad}: unreadable-input: " in trips.ok("batches", "trips")
    assert trips.json("batches", "trips", "--below", "1") == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("trips", "gone.parquet"), "no such file"),
        (("trips", "s3:/b/k.parquet"), "slash"),
        (("tripz", "a.parquet"), "tripz"),
        (("trips",), "FILES"),
    ],
)
def test_what_cannot_be_submitted_is_refused(
    trips: Shell, args: tuple[str, ...], says: str
) -> None:
    code, error = trips.refused("submit", *args)
    assert code == 2
    assert says in str(error)
    assert trips.json("batches", "trips", "--pending") == []
