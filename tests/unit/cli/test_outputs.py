"""Where rows may be written to: `lakebed query --output`."""

import errno
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string")
    shell.ok("ingest", "trips", shell.write("a.parquet", {"id": ["a", "b"]}))
    return shell


def write(shell: Shell, path: Path) -> tuple[int, str]:
    """Write all rows to a path; return the exit code and what was said of it."""
    done = shell.run("query", "trips", "--format", "parquet", "--output", str(path))
    return done.exit_code, done.stderr


def test_a_place_where_no_file_can_be_is_refused_before_a_row_is_read(trips: Shell) -> None:
    code, said = write(trips, trips.folder / "missing" / "out.parquet")
    assert (code, "make the folder first" in said) == (2, True)
    code, said = write(trips, trips.folder)
    assert (code, "the output is a folder" in said) == (2, True)
    code, said = write(trips, trips.folder / "a.parquet" / "out.parquet")
    assert (code, "no folder for the output" in said) == (2, True)
    code, said = write(trips, trips.folder / ("x" * 300 + ".parquet"))
    assert code == 4
    assert "File name too long" in said


def test_a_device_or_pipe_is_not_replaced_by_a_file(trips: Shell) -> None:
    pipe = trips.folder / "pipe.parquet"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        code, said = write(trips, path)
        assert (code, "is there, and is no file" in said) == (2, True)
        assert not path.is_file()


@pytest.mark.parametrize("option", ["--schema", "--processing", "--split-points", "--definition"])
def test_an_option_that_names_a_device_or_pipe_is_refused(trips: Shell, option: str) -> None:
    pipe = trips.folder / "pipe"
    os.mkfifo(pipe)
    key = ["--row-key", "id:string"] if option in ("--processing", "--split-points") else []
    for path in (pipe, Path(os.devnull)):
        code, error = trips.refused("table", "create", "u", *key, option, str(path))
        assert (code, error["message"]) == (2, "a device or a pipe is not a file")


def test_who_reads_the_file_that_is_replaced_reads_it_to_its_end(trips: Shell) -> None:
    path = trips.folder / "out.parquet"
    path.write_bytes(b"before")
    with path.open("rb") as reader:
        assert write(trips, path)[0] == 0
        assert reader.read() == b"before"
    assert pq.read_table(path).to_pydict() == {"id": ["a", "b"]}


def test_of_a_link_the_file_that_it_leads_to_is_replaced(trips: Shell) -> None:
    (trips.folder / "far").mkdir()
    link = trips.folder / "out.parquet"
    link.symlink_to(trips.folder / "far" / "real.parquet")
    assert write(trips, link)[0] == 0
    assert link.is_symlink()
    assert pq.read_table(trips.folder / "far" / "real.parquet").num_rows == 2


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 4), (errno.EACCES, 8)])
def test_a_disk_that_refuses_leaves_what_was_there(
    trips: Shell, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    path = trips.folder / "out.parquet"
    path.write_bytes(b"before")

    def refuse(self: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    found, said = write(trips, path)
    assert found == code
    assert "bug" not in said
    assert path.read_bytes() == b"before"
    assert sorted(p.name for p in trips.folder.glob("*out*")) == ["out.parquet"]
    assert not list(trips.folder.glob(".*unfinished"))
