"""A lake whose objects lie in S3: the whole story, through the public face and the command."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.cli.main import main
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.paths import TABLES_PREFIX
from tests.servers.fixtures import ministack  # noqa: F401 - they are fixtures
from tests.servers.s3 import BUCKET, S3Server

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
SETTINGS = {"garbage_seconds_min": 0, "leaf_rows_max": 2_000}
ROWS = 1_000


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    found: S3Server = request.getfixturevalue("ministack")
    for name, value in found.environment().items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def place(server: S3Server) -> str:
    return f"s3://{BUCKET}/{server.new_prefix()}"


def rows(first: int) -> pa.Table:
    ids = range(first, first + 3 * ROWS, 3)
    return pa.table({"id": list(ids), "name": [f"n{n}" for n in ids]})


def exit_code(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    return exited.value.code


def objects_in(server: S3Server, place: str) -> list[str]:
    return list(server.store(place.removeprefix(f"s3://{BUCKET}/")).list(""))


def test_a_lake_lives_in_s3_from_its_first_table_to_its_last(
    server: S3Server, place: str, tmp_path: Path
) -> None:
    with lakebed.connect(tmp_path / "lake", objects=place) as lake:
        table = lake.create_table("t", SCHEMA, settings=SETTINGS)
        for first in (0, 1, 2):
            assert table.ingest(rows(first)).rows == ROWS
        before = objects_in(server, place)
        assert len(before) >= 3
        assert lake.run().leaves_split
    with lakebed.connect(tmp_path / "lake") as lake:  # it remembers
        table = lake.table("t")
        table.compact()
        lake.run()
        found = table.query().read_all()
        assert found["id"].to_pylist() == list(range(3 * ROWS))
        assert found["name"].to_pylist() == [f"n{n}" for n in range(3 * ROWS)]
        assert table.query(keys=[7]).read_all().to_pylist() == [{"id": 7, "name": "n7"}]
        assert not lake.fsck(deep=True).findings
        after = objects_in(server, place)
        assert not [path for path in before if path in after], "garbage is collected"
        assert all(path.startswith(TABLES_PREFIX) for path in after)
    shutil.rmtree(tmp_path / "lake" / "cache")
    with lakebed.connect(tmp_path / "lake") as lake:
        assert lake.table("t").query().read_all().num_rows == 3 * ROWS
        lake.drop_table("t")
        lake.run()
    assert objects_in(server, place) == []
    assert [p for p in (tmp_path / "lake" / "objects").rglob("*") if p.is_file()] == []


def test_the_command_finds_the_objects_of_such_a_lake(
    place: str, server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lakebed.connect(tmp_path / "lake", objects=place) as lake:
        lake.create_table("t", SCHEMA).ingest(rows(0))
    lake_option = ["--lake", str(tmp_path / "lake")]
    assert exit_code([*lake_option, "--json", "query", "t", "--key", "id=3"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {"id": 3, "name": "n3"}
    assert exit_code([*lake_option, "fsck"]) == 0


def test_a_lake_in_a_bucket_that_is_not_there_is_not_made(server: S3Server, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no such bucket"):
        lakebed.connect(tmp_path / "lake", objects="s3://no-such-bucket/lake")
    assert not (tmp_path / "lake").exists()


def test_a_lake_in_a_store_that_does_not_answer_is_not_made(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="cannot reach"):
        lakebed.connect(tmp_path / "lake", objects=f"s3://{BUCKET}/lake")
    assert not (tmp_path / "lake").exists()


def test_a_lost_object_is_found_by_fsck(place: str, server: S3Server, tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", objects=place) as lake:
        lake.create_table("t", SCHEMA).ingest(rows(0))
        (path,) = [p for p in objects_in(server, place) if p.endswith(".parquet")]
        server.store(place.removeprefix(f"s3://{BUCKET}/")).delete([path])
        assert [finding.code for finding in lake.fsck().findings] == ["file-missing"]
