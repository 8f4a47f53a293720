"""Tables that a deployment brings: what it does, and how it fails."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from lakebed.errors import CorruptError
from lakebed.tables.deploy_tables import DeployTables
from lakebed.tables.table_files import packed_table_texts
from lambdas.shape import deployed_handler
from tests.dsl.memory_tables import MemoryTables, Process

TRIPS = 'name = "trips"\n[row_keys]\nid = "string"\n[values]\nn = "int64?"\n'
RIDES = 'name = "rides"\n[row_keys]\nid = "string"\n'


class Run:
    aws_request_id = "r"
    function_name = "lakebed-dev-tables-apply"

    def get_remaining_time_in_millis(self) -> int:
        return 1_000


def deployed(process: Process, texts: Mapping[str, str], *, taken_back: bool = False) -> str:
    """Deploy files; return "" or why that failed."""
    app = DeployTables(process.tables, read_texts=lambda: texts, is_taken_back=lambda: taken_back)
    answers: list[bytes] = []
    handler = deployed_handler(
        lambda: app, lambda app: app.run(), answer=lambda _, body: answers.append(body)
    )
    names = dict.fromkeys(("StackId", "RequestId", "LogicalResourceId", "ResponseURL"), "x")
    handler({"RequestType": "Update", **names}, Run())
    (body,) = answers
    said = json.loads(body)
    return str(said["Reason"]) if said["Status"] == "FAILED" else ""


def test_a_deployment_makes_tables_and_takes_others_offline() -> None:
    process = MemoryTables().process()
    assert deployed(process, {"trips.toml": TRIPS, "rides.toml": RIDES}) == ""
    assert deployed(process, {"trips.toml": TRIPS}) == ""
    online = {entry.name: entry.online for entry in process.catalog.list()}
    assert online == {"rides": False, "trips": True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TRIPS.replace("string", "int64"), "the keys of a table cannot change"),
        (TRIPS.replace('n = "int64?"', ""), "without consent"),
        ("name =", "it is no TOML"),
    ],
)
def test_what_cannot_be_fails_the_deployment_with_its_reason(text: str, says: str) -> None:
    process = MemoryTables().process()
    deployed(process, {"trips.toml": TRIPS})
    before = process.texts()
    reason = deployed(process, {"rides.toml": RIDES, "trips.toml": text})
    assert says in reason
    assert "trips" in reason
    assert process.texts() == before


def test_a_deployment_that_is_taken_back_leaves_tables_as_they_are() -> None:
    process = MemoryTables().process()
    deployed(process, {"trips.toml": TRIPS})
    moved = TRIPS.replace('"trips"', '"tours"\nwas = "trips"')
    assert deployed(process, {"tours.toml": moved}) == ""
    assert deployed(process, {"trips.toml": TRIPS}, taken_back=True) == ""
    assert [entry.name for entry in process.catalog.list()] == ["tours"]


def test_files_come_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "files.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name in ("trips.toml", "points.jsonl", "notes.txt", "old/rides.toml"):
            packed.writestr(name, name)
    assert packed_table_texts(path) == {n: n for n in ("trips.toml", "points.jsonl")}
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorruptError, match="not an archive of tables"):
        packed_table_texts(path)
