"""An export is all rows of one version in key order, whoever is killed when."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import zstandard

import lakebed
from lakebed.backends.faulty.crash_plan import CrashPlan, Moment
from lakebed.backends.faulty.faults import HARSH, Faults
from lakebed.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    NewerFormatError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.exports import write_slice
from lakebed.exports.target import MANIFEST, PLAN, PROGRESS
from tests.unit.exports.exported_lake import (
    ROWS,
    SCHEMA,
    SLICE_BYTES,
    ExportedLake,
    exported_lake,
    rows,
)

AGAIN = (ConflictError, UnavailableError, UnknownOutcomeError)
DAY = 86_400


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def manifest(made: ExportedLake) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / MANIFEST).read_bytes())
    return found


def is_tidy(made: ExportedLake) -> bool:
    """Whether files and a manifest are all there is."""
    return set(made.names()) == {*(file.name for file in made.files()), MANIFEST}


def test_an_export_is_the_rows_of_a_query_in_files_in_key_order(made: ExportedLake) -> None:
    done = made.export(workers=2)
    assert (done.rows, done.files, done.repeated) == (ROWS, 4, False)
    assert made.read().equals(made.table.to_arrow())
    assert len(made.files()) == done.files
    assert is_tidy(made)
    assert made.pins() == []


def test_other_programs_read_the_folder_as_it_is(made: ExportedLake) -> None:
    made.export()
    found = pyarrow.dataset.dataset(made.folder, format="parquet").to_table()
    assert found.num_rows == ROWS


def test_a_manifest_says_what_its_files_are(made: ExportedLake) -> None:
    done = made.export()
    told = manifest(made)
    assert (told["name"], told["rows"], told["number"]) == ("t", ROWS, done.number)
    assert told["columns"] == {"id": "int64", "at": "int64", "n": "int64", "note": "string"}
    assert told["definition"] == made.table.definition
    assert told["conditions"] is None
    for file, path in zip(told["files"], made.files(), strict=True):
        held = pq.read_table(path)
        is_told = (file["path"], file["rows"], file["bytes"])
        assert is_told == (path.name, held.num_rows, path.stat().st_size)
        ids = held["id"].to_pylist()
        assert (file["first"], file["last"]) == ([str(ids[0])], [str(ids[-1])])


@pytest.mark.parametrize(
    "asked",
    [
        {"where": lakebed.field("n") > 300},
        {"ranges": {"id": (10, 60)}},
        {"keys": [3, 77], "where": lakebed.field("note").is_not_null()},
        {"columns": ["note", "id"]},
        {"columns": "id", "where": "n > 300 and note like 'note 3%'"},
        {"columns": ["n"], "where": lakebed.field("note").is_null(), "ranges": {"id": (0, 51)}},
        {"keys": []},
    ],
)
def test_some_rows_and_columns_are_those_of_the_same_query(
    made: ExportedLake, asked: dict[str, Any]
) -> None:
    done = made.export(**asked)
    wanted = made.table.to_arrow(**asked)
    assert made.read().equals(wanted)
    assert done.rows == wanted.num_rows
    assert made.export(**asked).repeated


def test_text_is_the_predicate_that_it_says(made: ExportedLake) -> None:
    where = (lakebed.field("n") > 300) & lakebed.field("note").is_not_null()
    made.export(where=where, columns=["id"])
    assert made.export(where="n > 300 AND note IS NOT NULL", columns="id").repeated
    with pytest.raises(InvalidError, match="of other rows or columns"):
        made.export(where="n > 301 AND note IS NOT NULL", columns="id")


def test_conditions_stand_in_the_manifest(made: ExportedLake) -> None:
    made.export(ranges={"id": (10, None)}, where=lakebed.field("n") > 300, keys=[1])
    assert manifest(made)["conditions"] == {
        "ranges": [{"id": {"min": "1", "below": "2"}}, {"id": {"min": "10"}}],
        "where": {"test": "compare", "field": "n", "is": ">", "value": 300},
    }


def test_a_large_leaf_becomes_several_files(made: ExportedLake) -> None:
    done = made.export(slice_bytes=SLICE_BYTES // 8)
    assert done.files > 8
    assert made.read().equals(made.table.to_arrow())


def test_rows_on_their_way_are_row_groups(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_slice, "ROW_GROUP_BYTES", 1)
    made.export(slice_bytes=1 << 20)
    (file,) = made.files()
    assert pq.ParquetFile(file).num_row_groups > 1
    assert made.read().equals(made.table.to_arrow())


def test_an_export_of_no_rows_shows_its_columns(made: ExportedLake) -> None:
    assert made.export(where=lakebed.field("n") > 10**6).files == 1
    assert made.read().schema.equals(made.table.arrow_schema)


def test_again_does_nothing(made: ExportedLake) -> None:
    first = made.export()
    before = made.names()
    made.table.ingest(rows(0, 5))
    crashes = CrashPlan()
    assert made.export(made.target(crashes)) == msgspec.structs.replace(first, repeated=True)
    assert crashes.effects == []
    assert made.names() == before


EFFECTS = 1 + 4 + 4 + 1 + 4 + 1
"""The plan, files, notes, the manifest; deletes of notes and the plan."""


def test_the_effects_are_counted(made: ExportedLake) -> None:
    crashes = CrashPlan()
    made.export(made.target(crashes))
    assert len(crashes.effects) == EFFECTS


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, EFFECTS + 1))
def test_killed_at_any_effect_the_next_run_goes_on(
    made: ExportedLake, at: int, moment: Moment
) -> None:
    wanted = made.table.to_arrow()
    assert made.killed(at, moment)
    written = {file: file.read_bytes() for file in made.files()}
    made.table.ingest(rows(0, 5))  # the version stays, as soon as there is a plan
    began = (made.folder / PLAN).exists() or (made.folder / MANIFEST).exists()
    done = made.export()
    assert made.read().equals(wanted if began else made.table.to_arrow())
    assert done.rows == made.read().num_rows
    assert all(file.read_bytes() == body for file, body in written.items())
    assert is_tidy(made)
    lost = 1 if at == 1 and moment == "before" else 0  # of a plan that was never put
    assert len(made.pins()) == lost


def test_what_a_killed_run_wrote_is_not_written_again(made: ExportedLake) -> None:
    assert made.killed(7)  # the plan, two files and their notes, a file
    crashes = CrashPlan()
    made.export(made.target(crashes))
    assert crashes.effects.count("object put") == EFFECTS - 5 - 6


@pytest.mark.parametrize("seed", range(12))
def test_stores_that_lose_delay_and_double_requests(made: ExportedLake, seed: int) -> None:
    wanted = made.table.to_arrow()
    faults = Faults(random.Random(seed), HARSH)
    done = None
    for _ in range(200):
        try:
            done = made.export(made.target(faults=faults))
            break
        except AGAIN:
            continue
        except InvalidError:  # "not empty": a listing shows what was deleted, or a late note
            continue
    assert done is not None
    assert made.read().equals(wanted)
    assert faults.reused_paths <= {PLAN}  # the first that lands counts


def test_an_export_that_was_left_alone_for_days_begins_anew(made: ExportedLake) -> None:
    assert made.killed(3)
    made.table.ingest(rows(0, 5))
    made.table.compact()
    made.clock.advance(2 * DAY)
    assert made.lake.run().files_collected > 0
    with pytest.raises(VersionExpiredError) as caught:
        made.export()
    assert caught.value.hint is not None
    assert "--restart" in caught.value.hint
    made.export(restart=True)
    assert made.read().equals(made.table.to_arrow())
    assert made.pins() == []


def test_a_field_that_is_renamed_meanwhile_has_its_old_name(made: ExportedLake) -> None:
    wanted = made.table.to_arrow()
    assert made.killed(3)
    made.table.rename_field("note", "remark")
    made.export()
    assert made.read().equals(wanted)


def test_restart_removes_an_export_that_is_done(made: ExportedLake) -> None:
    made.export()
    before = made.names()
    made.table.ingest(rows(0, 5))
    done = made.export(columns=["n"], restart=True)
    assert not done.repeated
    assert set(made.names()) & set(before) == {MANIFEST}
    assert made.read().equals(made.table.to_arrow(columns=["n"]))


@pytest.mark.parametrize("at", range(1, 12))
def test_a_restart_that_is_killed_is_restarted(made: ExportedLake, at: int) -> None:
    assert made.killed(5)
    assert made.killed(at, restart=True)
    made.export(restart=True)
    assert made.read().equals(made.table.to_arrow())
    assert is_tidy(made)


def newest(made: ExportedLake) -> int:
    return made.table.log(entries_max=1).entries[-1].number


def test_a_target_that_holds_anything_else_is_refused(made: ExportedLake) -> None:
    made.folder.mkdir()
    (made.folder / "a.txt").write_text("mine")
    number = newest(made)
    with pytest.raises(InvalidError, match="not empty"):
        made.export()
    with pytest.raises(InvalidError, match="not empty"):
        made.export(restart=True)
    assert made.names() == ["a.txt"]
    assert newest(made) == number


def test_another_request_into_the_target_is_refused(made: ExportedLake) -> None:
    assert made.killed(3)
    before = made.names()
    for _ in range(2):
        with pytest.raises(InvalidError, match="of other rows or columns"):
            made.export(columns=["n"])
        other = made.lake.create_table(f"u{len(made.lake.tables())}", SCHEMA)
        with pytest.raises(InvalidError, match="of another table"):
            made.export(table=other)
        assert made.names() == before
        made.export()
        before = made.names()


def test_what_can_never_work_is_refused_before_anything_is_written(
    made: ExportedLake, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    number = newest(made)
    table = made.table
    for target in (file, tmp_path / "lake" / "x", tmp_path / "lake", "ftp://x/y", "s3:/x/y"):
        with pytest.raises(InvalidError):
            table.export(target)
    refused: list[dict[str, Any]] = [
        {"columns": ["nope"]},
        {"columns": []},
        {"where": pc.field("n") > 3},
        {"where": lakebed.field("nope") > 3},
        {"where": "nope > 3"},
        {"where": "n >"},
        {"ranges": {"n": (1, 2)}},
        {"workers": 0},
    ]
    for asked in refused:
        with pytest.raises(InvalidError):
            table.export(made.folder, **asked)
    assert not made.folder.exists()
    assert newest(made) == number


def has_note(made: ExportedLake, file: Path) -> bool:
    return (made.folder / PROGRESS / f"{file.stem}.json").exists()


def without_note(made: ExportedLake) -> Path:
    """Let a run be killed between a file and its note. A file and the note of another one may be on
    their way at once, so that it may take several kills."""
    for _ in range(5):
        assert made.killed(2, "after")
        found = [file for file in made.files() if not has_note(made, file)]
        if found:
            return found[0]
    raise AssertionError("no kill came between a file and its note")


def test_a_damaged_file_of_a_killed_run_is_found(made: ExportedLake) -> None:
    assert made.killed(6)
    file = next(one for one in made.files() if has_note(made, one))
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.write_bytes(body)
    with pytest.raises(CorruptError, match="damaged") as caught:
        made.export()
    assert caught.value.facts["path"] == str(file)
    made.export(restart=True)
    assert made.read().equals(made.table.to_arrow())


@pytest.mark.parametrize("cut", [0, 40, -1])
def test_a_file_without_a_note_that_was_cut_is_found(made: ExportedLake, cut: int) -> None:
    file = without_note(made)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(CorruptError):
        made.export()


def test_a_plan_that_cannot_be_read(made: ExportedLake) -> None:
    assert made.killed(3)
    plan = made.folder / PLAN
    body = plan.read_bytes()
    plan.write_bytes(body[:-9])
    with pytest.raises(CorruptError, match="not the plan"):
        made.export()
    newer = json.loads(zstandard.ZstdDecompressor().decompress(body)) | {"format": 99}
    plan.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(newer).encode()))
    with pytest.raises(NewerFormatError):
        made.export()
    with pytest.raises(NewerFormatError):
        made.export(restart=True)
    plan.write_bytes(b"")
    made.export(restart=True)
    assert made.read().equals(made.table.to_arrow())


def test_a_missing_file_of_the_table_is_damage(made: ExportedLake) -> None:
    lake = Path(made.lake._app.location)
    min(lake.glob("objects/tables/*/files/**/*.parquet")).unlink()
    with pytest.raises(CorruptError, match="missing"):
        made.export(workers=3)
    assert not (made.folder / MANIFEST).exists()
