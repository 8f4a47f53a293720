"""Rows of files in S3 and on the web, into a lake in a directory: library and command."""

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import InvalidError, LakebedError, UnavailableError, UnreadableInputError
from lakebed.table import Table
from tests.servers.fixtures import ministack  # noqa: F401 - they are fixtures
from tests.servers.s3 import BUCKET, S3Server
from tests.servers.web import WebServer, web_server
from tests.unit.cli.programs import Shell

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake.create_table("t", SCHEMA)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.fixture
def landing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in S3 with three rows in two files."""
    server: S3Server = request.getfixturevalue("ministack")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    prefix = server.new_prefix()
    with closing(server.clients()) as clients:
        for name, body in (("day/a.parquet", parquet(1, 2)), ("day/b.csv", b"id\n3\n")):
            clients.s3.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=body)
    return f"s3://{BUCKET}/{prefix}"


def parquet(*ids: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": ids}), out)
    return out.getvalue()


def ids(table: Table) -> list[int]:
    found: list[int] = table.query().read_all()["id"].to_pylist()
    return found


def test_files_in_s3_are_rows_of_an_embedded_lake(
    table: Table, landing: str, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("id\n4\n", "utf-8")
    paths = [f"{landing}/day/", str(tmp_path / "c.csv")]
    assert table.ingest(paths, job="one").rows == 4
    assert table.ingest(paths, job="one").repeated
    assert ids(table) == [1, 2, 3, 4]
    with pytest.raises(InvalidError, match=r"no such file, or nothing in the folder") as caught:
        table.ingest(f"{landing}/night/")
    assert caught.value.facts["file"] == f"{landing}/night/"


def test_the_shell_reads_s3_and_the_web(landing: str, web: WebServer, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "u", "--row-key", "id:int64")
    web.files["/x.csv"] = b"id\n9\n"
    said = shell.json("ingest", "u", f"{landing}/day/a.parquet", f"{web.url}/x.csv?signed=yes")
    assert said["rows"] == 3


def test_a_bad_row_names_the_address(table: Table, landing: str, web: WebServer) -> None:
    web.files["/x.csv"] = b"id\nmany\n"
    for url in (f"{landing}/day/", f"{web.url}/x.csv"):
        with pytest.raises(LakebedError) as caught:
            table.ingest([url, f"{web.url}/x.csv"])
        assert caught.value.facts["path"] == f"{web.url}/x.csv"
    assert ids(table) == []


def test_files_on_the_web_are_read_whole_or_not_at_all(table: Table, web: WebServer) -> None:
    web.files |= {"/x.csv": b"id\n1\n", "/long.csv": b"id\n" + b"7\n" * 1_000}
    assert table.ingest(f"{web.url}/x.csv").rows == 1
    with pytest.raises(InvalidError, match="404"):
        table.ingest(f"{web.url}/y.csv")
    web.fails["/x.csv"] = 503
    with pytest.raises(UnavailableError, match="503"):
        table.ingest(f"{web.url}/x.csv")
    web.cut.add("/long.csv")
    with pytest.raises(UnavailableError):
        table.ingest(f"{web.url}/long.csv")
    assert ids(table) == [1]
    with pytest.raises(UnavailableError):
        table.ingest("http://127.0.0.1:9/x.csv")


def test_a_file_that_changes_while_it_is_asked_for_is_refused(
    web: WebServer, tmp_path: Path
) -> None:
    from lakebed.backends.web.source_files import WebSourceFiles

    files = WebSourceFiles(tmp_path)
    web.files["/x.csv"] = b"id\n1\n"
    (found,) = files.find(f"{web.url}/x.csv")
    with files.on_disk(found) as path:
        assert (path.read_bytes(), path.suffix) == (b"id\n1\n", ".csv")
    web.files["/x.csv"] = b"id\n2\n"
    with pytest.raises(UnreadableInputError, match="changed meanwhile"), files.on_disk(found):
        pytest.fail("it was changed")
    assert not list(tmp_path.glob("source-*"))
