"""A table of an export is equal to the one that was exported, or it is not made."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    UnavailableError,
)
from lakebed.exports.target import MANIFEST
from lakebed.ingest import stage_rows
from lakebed.model.names import digest_of
from tests.unit.exports.exported_lake import ExportedLake, exported_lake, rows

VISITS = lakebed.schema_of(
    row_keys={"page": "string"},
    values={"seen": "int64", "times": "int64", "by": "string?", "at": "int64"},
)
COUNTING = lakebed.Processing(
    filter=lakebed.field("page") != "/health",
    aggregate={"seen": "sum", "times": "count", "by": "last by at", "at": "max"},
)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def restored(made: ExportedLake, name: str = "r", *, verify: bool = False) -> lakebed.Table:
    made.lake.restore_table(name, made.folder, verify=verify)
    return made.lake.table(name)


def visits(made: ExportedLake) -> lakebed.Table:
    table = made.lake.create_table("visits", VISITS, processing=COUNTING)
    for at in range(3):
        table.ingest(
            pa.table(
                {
                    "page": ["/", "/a", "/health", "/"],
                    "seen": [1, 2, 3, 4],
                    "times": [0, 0, 0, 0],
                    "by": ["x", f"y{at}", "z", None],
                    "at": [at, at, at, at + 1],
                }
            )
        )
    return table


def test_a_restored_table_is_equal(made: ExportedLake) -> None:
    made.export(slice_bytes=300)
    done = made.lake.restore_table("r", made.folder / MANIFEST, verify=True)
    assert (done.rows, done.repeated, done.verified) == (400, False, 400)
    found = made.lake.table("r")
    assert found.to_arrow().equals(made.table.to_arrow())
    assert found.definition == made.table.definition
    assert found.split_points == [25, 50, 75]
    assert not [f for f in made.lake.fsck("r", deep=True).findings if f.severity == "damage"]


def test_again_does_nothing(made: ExportedLake) -> None:
    made.export()
    first = made.lake.restore_table("r", made.folder)
    again = made.lake.restore_table("r", made.folder)
    assert again == msgspec.structs.replace(first, rows=0, files=0, repeated=True)
    assert made.lake.table("r").count() == 400
    made.lake.table("r").ingest(rows(0, 5))
    assert made.lake.restore_table("r", made.folder).repeated


def test_counts_and_folds_stay_what_they_are(made: ExportedLake) -> None:
    table = visits(made)
    made.export(table=table)
    found = restored(made)
    assert found.to_arrow().equals(table.to_arrow())
    assert found.to_arrow()["times"].to_pylist() == [6, 3]
    for one in (table, found):
        one.ingest(
            pa.table({"page": ["/"], "seen": [1], "times": [9], "by": ["n"], "at": [pa.scalar(9)]})
        )
        one.compact()
    assert found.to_arrow().equals(table.to_arrow())
    assert found.to_arrow()["times"].to_pylist() == [7, 3]


def test_deleted_keys_stay_away(made: ExportedLake) -> None:
    schema = lakebed.schema_of(
        row_keys={"id": "int64"}, values={"version": "int64", "gone": "bool?"}
    )
    latest = lakebed.Processing(latest=lakebed.Latest("version", delete="gone"))
    table = made.lake.create_table("latest", schema, processing=latest)
    for version, gone in ((1, None), (2, True)):
        table.ingest(
            pa.table(
                {
                    "id": range(version, 6),
                    "version": [version] * (6 - version),
                    "gone": pa.array([gone] * (6 - version), pa.bool_()),
                }
            )
        )
    made.export(table=table)
    assert restored(made).to_arrow()["id"].to_pylist() == [1]


def test_a_restore_that_was_killed_is_completed(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.export()
    with monkeypatch.context() as broken:

        def fail(*_: object, **__: object) -> None:
            raise UnavailableError("killed")

        broken.setattr(stage_rows.StageRows, "run", fail)
        with pytest.raises(UnavailableError):
            made.lake.restore_table("r", made.folder)
    assert made.lake.table("r").count() == 0
    assert restored(made).to_arrow().equals(made.table.to_arrow())


def test_some_columns_make_a_table_of_these(made: ExportedLake) -> None:
    made.export(columns=["note", "id", "at"], where=lakebed.field("n") < 100)
    found = restored(made, verify=True)
    assert [field.name for field in found.schema.fields] == ["id", "at", "note"]
    wanted = made.table.to_arrow(columns=["id", "at", "note"], where=lakebed.field("n") < 100)
    assert found.to_arrow().equals(wanted)


@pytest.mark.parametrize("columns", [["n"], ["id", "n"]])
def test_without_all_keys_no_table_can_be_made(made: ExportedLake, columns: list[str]) -> None:
    made.export(columns=columns)
    with pytest.raises(InvalidError, match="a key was not exported"):
        made.lake.restore_table("r", made.folder)
    assert "r" not in made.lake


def test_without_what_processing_needs_no_table_can_be_made(made: ExportedLake) -> None:
    made.export(table=visits(made), columns=["page", "seen"])
    with pytest.raises(InvalidError, match="processing needs"):
        made.lake.restore_table("r", made.folder)


def test_no_rows_make_an_empty_table(made: ExportedLake) -> None:
    made.export(keys=[])
    assert restored(made, verify=True).count() == 0
    assert made.lake.restore_table("r", made.folder).repeated


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda made: made.lake["r"].ingest(rows(0, 50)), "other rows"),
        (lambda made: made.lake["r"].add_field("more", "int64?"), "another schema"),
        (
            lambda made: made.lake["r"].change_processing(
                lakebed.Processing(filter=lakebed.field("n") > 7)
            ),
            "another schema or processing",
        ),
    ],
)
def test_a_table_that_is_another_one_is_refused(
    made: ExportedLake, make: Callable[[ExportedLake], object], problem: str
) -> None:
    made.export()
    made.lake.create_table_from("r", made.table.definition)
    make(made)
    before = made.lake["r"].to_arrow()
    with pytest.raises(InvalidError, match=problem):
        made.lake.restore_table("r", made.folder)
    assert made.lake["r"].to_arrow().equals(before)


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value))


def signed(value: dict[str, Any]) -> dict[str, Any]:
    """Sign a manifest as one who knows how, and return it."""
    value.pop("digest")
    body = msgspec.json.encode(value, order="deterministic")
    value["digest"] = digest_of(body).hex()
    return value


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(rows=1),
        lambda told: told["files"].pop(),
        lambda told: told["files"][0].update(checksum="0" * 16),
        lambda told: told["definition"]["schema"]["values"].pop(),
        lambda told: told.update(definition=None),
        lambda told: told.pop("digest"),
        lambda told: told.update(more=1),
        lambda told: (told.update(rows="many"), signed(told)),
    ],
)
def test_a_changed_manifest_is_refused(
    made: ExportedLake, change: Callable[[dict[str, Any]], object]
) -> None:
    made.export()
    changed(made.folder / MANIFEST, change)
    for again in (lambda: made.lake.restore_table("r", made.folder), made.export):
        with pytest.raises(CorruptError, match=r"manifest was changed|not the manifest"):
            again()
    assert "r" not in made.lake


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"format": 1}'])
def test_what_is_no_manifest_is_refused(made: ExportedLake, body: bytes) -> None:
    made.export()
    (made.folder / MANIFEST).write_bytes(body)
    with pytest.raises(CorruptError):
        made.lake.restore_table("r", made.folder)


def test_a_manifest_that_is_only_spaced_otherwise_is_good(made: ExportedLake) -> None:
    made.export()
    changed(made.folder / MANIFEST, lambda _: None)
    assert restored(made).count() == 400


def test_a_newer_format_is_said_to_be_one(made: ExportedLake) -> None:
    made.export()
    changed(made.folder / MANIFEST, lambda told: told.update(format=2, digest="other"))
    with pytest.raises(NewerFormatError):
        made.lake.restore_table("r", made.folder)


def test_where_no_export_lies_nothing_is_made(made: ExportedLake, tmp_path: Path) -> None:
    assert made.killed(4)
    for place in (tmp_path, tmp_path / "nowhere", made.folder):
        with pytest.raises(InvalidError, match="no export lies there"):
            made.lake.restore_table("r", place)
    assert not (tmp_path / "nowhere").exists()
    assert made.lake.tables() == ["t"]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    body = bytearray(file.read_bytes())
    body[100] ^= 0x40
    file.write_bytes(body)


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip])
def test_a_file_that_is_damaged_or_missing_is_found_before_a_table_is_made(
    made: ExportedLake, damage: Callable[[Path], object]
) -> None:
    made.export()
    file = made.files()[2]
    damage(file)
    with pytest.raises(CorruptError) as caught:
        made.lake.restore_table("r", made.folder)
    assert caught.value.facts["path"] == str(file)
    assert made.lake.tables() == ["t"]


def test_verify_finds_other_rows(made: ExportedLake) -> None:
    made.export()
    table = restored(made, verify=True)
    table.ingest(rows(0, 399))
    with pytest.raises(CorruptError, match="other rows"):
        made.lake.restore_table("r", made.folder, verify=True)
    made.lake.restore_table("r", made.folder)


def test_a_name_that_is_none_is_refused(made: ExportedLake) -> None:
    made.export()
    with pytest.raises(LakebedError):
        made.lake.restore_table("No Name", made.folder)
