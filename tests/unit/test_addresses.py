"""Addresses where a path is meant: understood, or refused and nothing made."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError
from tests.unit.cli.programs import Shell

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", ["s3://b/p", Path("s3://b/p"), "s3:/b/p", "S3://b/p"])
def test_a_lake_in_s3_is_told_how_it_is_possible(folder: Path, place: str | Path) -> None:
    with pytest.raises(InvalidError, match="a lake lies in a directory of this machine") as caught:
        lakebed.connect(place)
    assert str(caught.value.hint).startswith("only its objects can lie there: connect('./lake', ")
    assert str(caught.value.hint).lower().endswith("objects='s3://b/p')")
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "place", ["gs://b/p", "https://host/lake", "abfss://c@a/p", Path("aws:/x")], ids=str
)
def test_other_schemes_are_no_directories(folder: Path, place: str | Path) -> None:
    with pytest.raises(InvalidError, match="a lake lies in a directory of this machine"):
        lakebed.connect(place)
    assert not list(folder.iterdir())


def test_the_address_of_a_file_is_its_path(folder: Path) -> None:
    (folder / "two words.csv").write_text("id\n7\n", "utf-8")
    with lakebed.connect(f"file://{folder}/lake") as lake:
        table = lake.create_table("t", SCHEMA)
        table.ingest(f"file://{folder}/two%20words.csv")
        assert table.query().read_all().to_pydict() == {"id": [7]}
        with pytest.raises(InvalidError, match="a file of another machine"):
            table.ingest("file://other/x.csv")
    assert (folder / "lake" / "lakebed.json").exists()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("gs://b/x.parquet", "files come from paths of this machine, s3://BUCKET/KEY and https"),
        (Path("s3://b/x.parquet"), "give it as text: a Path makes one slash of two"),
        (["a.csv", "hdfs://n/x.csv"], "no such file or directory"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_address(source: object, says: str) -> None:
    with lakebed.connect("lake") as lake, pytest.raises(InvalidError) as caught:
        lake.create_table("t", SCHEMA).ingest(source)
    assert says in str(caught.value)


def test_a_sample_is_a_file_of_this_machine() -> None:
    with pytest.raises(InvalidError, match="only files of this machine are read here"):
        lakebed.split_points_from("s3://b/x.parquet", SCHEMA, leaves=2)


def test_the_shell_makes_no_directory_of_an_address(folder: Path) -> None:
    shell = Shell(folder)
    create = ("table", "create", "t", "--row-key", "id:int64")
    code, error = shell.refused("--lake", "s3://b/p", *create)
    assert (code, error["message"]) == (2, "a lake lies in a directory of this machine")
    assert not list(folder.iterdir())
    shell.ok(*create)
    shell.ok("ingest", "t", shell.write("rows.parquet", {"id": [1]}))
    code, error = shell.refused("query", "t", "--output", "s3://b/x.parquet")
    assert (code, error["message"]) == (2, "rows go to files of this machine")
    code, error = shell.refused("ingest", "t", "ftp://host/x.csv")
    assert (code, error["facts"]["file"]) == (2, "ftp://host/x.csv")
    assert not list(folder.glob("*:*"))


def test_rows_of_one_request_may_lie_in_several_places(folder: Path) -> None:
    (folder / "a.csv").write_text("id\n1\n", "utf-8")
    (folder / "b.csv").write_text("id\n2\n", "utf-8")
    with lakebed.connect("lake") as lake:
        table = lake.create_table("t", SCHEMA)
        paths = ["a.csv", f"file://{folder}/b.csv"]
        assert table.ingest(paths, job="both").rows == 2
        assert table.ingest(["a.csv", str(folder / "b.csv")], job="both").repeated
        assert table.query().read_all() == pa.table({"id": [1, 2]}).cast(table.arrow_schema)
