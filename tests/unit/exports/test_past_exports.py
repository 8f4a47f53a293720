"""An older version is exported, also if all was merged and collected since."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.faulty.crash_plan import CrashPlan, Moment
from lakebed.errors import (
    CorruptError,
    FormatGateError,
    InvalidError,
    LakebedError,
    VersionExpiredError,
)
from lakebed.exports.target import MANIFEST, PLAN
from lakebed.model.formats import Formats
from lakebed.model.versions import time_of
from tests.unit.exports.exported_lake import ExportedLake, exported_lake, rows

DAY = 86_400
EFFECTS = 1 + 4 + 4 + 1 + 4 + 1
"""As of an export of the newest version: the version's pin is no effect in the target."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def newest(made: ExportedLake) -> int:
    return made.table.log(entries_max=1).entries[-1].number


def manifest(made: ExportedLake) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / MANIFEST).read_bytes())
    return found


def live_on(made: ExportedLake) -> int:
    """Take more rows in, merge all, and collect what is due two days later. Returns how many files
    went."""
    made.table.ingest(rows(0, 5))
    made.table.compact()
    made.clock.advance(2 * DAY)
    return made.lake.run().files_collected


def then(made: ExportedLake, kind: str) -> Any:  # noqa: ANN401 - a number, a time or a tag
    """Return what names the newest version, later, too."""
    made.table.tag("then")
    number = made.table.tags()[0].number
    if kind == "time":
        at = time_of(made.table.tags()[0].tagged_at)
        made.clock.advance(1)
        return at + timedelta(microseconds=1)
    return "then" if kind == "tag" else number


@pytest.mark.parametrize("kind", ["number", "time", "tag"])
def test_an_older_version_is_exported_and_named_in_the_manifest(
    made: ExportedLake, kind: str
) -> None:
    as_of, wanted = then(made, kind), made.table.to_arrow()
    number = newest(made)
    made.table.ingest(rows(0, 5))
    done = made.export(as_of=as_of)
    assert (done.number, manifest(made)["number"]) == (number, number)
    assert made.read().equals(wanted)
    assert made.pins() == []
    made.lake.restore_table("back", made.folder, verify=True)
    assert made.lake["back"].to_arrow().equals(wanted)


def test_a_tag_is_exported_though_all_was_merged_and_collected_since(made: ExportedLake) -> None:
    as_of, wanted = then(made, "tag"), made.table.to_arrow()
    live_on(made)
    made.table.drop_tag("then")
    made.table.tag("then")
    wanted, number = made.table.to_arrow(), newest(made)
    assert live_on(made) > 0
    assert made.export(as_of=as_of).number == number
    assert made.read().equals(wanted)


@pytest.mark.parametrize("as_of", [1, "2001-01-01T00:00Z", "nope", 10**6, "2999-01-01T00:00Z"])
def test_a_version_that_was_collected_or_is_none_is_refused_before_anything_is_written(
    made: ExportedLake, as_of: int | str
) -> None:
    made.export()
    before = made.names()
    assert live_on(made) > 0
    number = newest(made)
    other = made.folder / "other"
    for target in (other, made.folder):
        with pytest.raises((InvalidError, VersionExpiredError)):
            made.table.export(target, as_of=as_of, restart=target is made.folder)
    assert made.names() == before
    assert newest(made) == number
    assert made.pins() == []


def test_a_restart_that_older_releases_forbid_removes_nothing(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.export()
    before, number = made.names(), newest(made)
    head = made.table._opened.head
    monkeypatch.setattr(head, "formats", lambda: Formats(entry=5, state=3))
    for restart in (False, True):
        target = made.folder if restart else made.folder / "other"
        with pytest.raises(FormatGateError, match="upgrade finish"):
            made.table.export(target, as_of=number, restart=restart)
    assert made.names() == before
    assert newest(made) == number


def test_a_version_below_the_horizon_is_refused_though_its_files_are_there(
    made: ExportedLake,
) -> None:
    number = newest(made)
    made.table.compact()
    kept = newest(made)
    made.table.ingest(rows(0, 5))
    made.table.compact()
    made.clock.advance(2 * DAY)
    assert made.lake.run().files_collected > 0
    for one in (number, kept):
        with pytest.raises(VersionExpiredError, match="not kept any more") as caught:
            made.export(as_of=one)
        assert caught.value.hint is not None
        assert "oldest" in caught.value.hint
    assert not made.folder.exists()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3, 6, 9, 10, 11, EFFECTS])
def test_killed_and_asked_again_the_same_version_is_exported(
    made: ExportedLake, at: int, moment: Moment
) -> None:
    as_of, wanted = then(made, "tag"), made.table.to_arrow()
    number = newest(made)
    assert made.killed(at, moment, as_of=as_of)
    began = (made.folder / PLAN).exists() or (made.folder / MANIFEST).exists()
    if began:
        made.table.drop_tag("then")  # the plan has the number, and the pin keeps it
        made.table.ingest(rows(0, 5))
        made.table.compact()
        made.clock.advance(DAY / 2)
        made.lake.run()
    else:
        made.table.ingest(rows(0, 5))
    assert made.export(as_of=as_of).number == number
    assert made.read().equals(wanted)


def test_a_killed_export_of_an_older_version_keeps_its_pin_on_that_version(
    made: ExportedLake,
) -> None:
    number = then(made, "number")
    made.table.ingest(rows(0, 5))
    assert made.killed(3, as_of=number)
    (first,) = made.pins()
    assert first.number == number
    made.clock.advance(DAY / 2)
    assert made.killed(1, as_of=number)
    (second,) = made.pins()
    assert (second.id, second.number) == (first.id, number)
    assert second.until > first.until


def test_an_export_that_goes_on_after_its_pin_ended_pins_that_version_again(
    made: ExportedLake,
) -> None:
    as_of, wanted = then(made, "tag"), made.table.to_arrow()
    number = newest(made)
    assert made.killed(3, as_of=as_of)
    live_on(made)  # the pin ends, and the tag keeps the version
    assert made.pins() == []
    assert made.killed(1, as_of=as_of)
    assert [pin.number for pin in made.pins()] == [number]
    made.table.drop_tag("then")
    made.clock.advance(DAY / 2)
    made.lake.run()
    made.export(as_of=as_of)
    assert made.read().equals(wanted)


def test_a_missing_file_of_a_version_that_is_kept_is_damage(made: ExportedLake) -> None:
    number = then(made, "number")
    made.table.compact()
    made.lake.run()
    lake = Path(made.lake._app.location)
    min(lake.glob("objects/tables/*/files/**/*.parquet")).unlink()
    with pytest.raises(CorruptError, match="missing"):
        made.export(as_of=number)
    assert not (made.folder / MANIFEST).exists()


def test_an_export_of_an_older_version_that_was_left_alone_is_refused(made: ExportedLake) -> None:
    number = newest(made)
    made.table.ingest(rows(0, 5))
    assert made.killed(3, as_of=number)
    made.table.compact()
    made.clock.advance(2 * DAY)
    assert made.lake.run().files_collected > 0
    with pytest.raises(VersionExpiredError) as caught:
        made.export(as_of=number)
    assert caught.value.hint is not None
    assert "--restart" in caught.value.hint
    before = made.names()
    with pytest.raises(VersionExpiredError):  # restarted it would be the same version
        made.export(as_of=number, restart=True)
    assert made.names() == before
    made.export(restart=True)
    assert made.read().equals(made.table.to_arrow())


def test_another_version_is_another_request(made: ExportedLake) -> None:
    number = then(made, "number")
    crashes = CrashPlan()
    for done in (False, True):
        if done:
            made.export(as_of=number)
        else:
            assert made.killed(3, as_of=number)
        before = made.names()
        for other in (None, number - 1, "then", time_of(made.clock.now())):
            with pytest.raises(InvalidError, match="of another version"):
                made.export(made.target(crashes), as_of=other)
        assert made.names() == before
    assert made.export(as_of=str(number)).repeated


def test_a_finished_export_is_known_again_though_its_version_is_gone(made: ExportedLake) -> None:
    as_of = then(made, "tag")
    done = made.export(as_of=as_of)
    made.table.drop_tag("then")
    assert live_on(made) > 0
    again = made.export(as_of=as_of)
    assert (again.repeated, again.number) == (True, done.number)


def test_schema_settings_and_rows_are_those_of_the_version(made: ExportedLake) -> None:
    before, definition = made.table.to_arrow(), made.table.definition
    number = newest(made)
    made.table.rename_field("note", "remark")
    made.table.change_fields(add={"extra": "int8?"})
    made.table.change_settings(leaf_rows_max=12_345)
    asked: dict[str, Any] = {"where": "note is null", "as_of": number}
    assert made.killed(3, **asked)
    made.export(**asked)
    assert made.read().equals(before.filter(pa.compute.is_null(before["note"])))
    assert manifest(made)["definition"] == definition
    assert made.export(**asked).repeated
    with pytest.raises(InvalidError, match="remark"):
        made.export(where="remark is null", as_of=number, restart=True)


def test_rows_are_as_old_as_they_were_then(tmp_path: Path) -> None:
    with exported_lake(tmp_path) as made:
        schema = lakebed.schema_of(
            row_keys={"id": "int64"}, values={"at": "timestamp[us, UTC]", "n": "int64"}
        )
        aged = made.lake.create_table(
            "aged",
            schema,
            processing=lakebed.Processing(
                age_off=lakebed.AgeOff("at", seconds=DAY), aggregate={"n": "sum", "at": "max"}
            ),
        )
        now = made.clock.now()
        at = pa.array([now, now, now], pa.timestamp("us", "UTC"))
        for n in (1, 2):
            aged.ingest(pa.table({"id": [1, 2, 3], "at": at, "n": [n, n, n]}))
        number, wanted = aged.log(entries_max=1).entries[-1].number, aged.to_arrow()
        made.clock.advance(2 * DAY)
        assert aged.count() == 0
        done = made.export(table=aged, as_of=number)
        assert (done.rows, done.number) == (3, number)
        assert made.read().equals(wanted)


def test_an_export_that_cannot_pin_leaves_no_plan(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is collected between a look at it and its pin."""
    number = newest(made)
    made.table.ingest(rows(0, 5))
    monkeypatch.setattr("lakebed.exports.export_table.require_kept", lambda *_: live_on(made))
    with pytest.raises(VersionExpiredError):
        made.export(as_of=number)
    assert not any(name.endswith((PLAN, MANIFEST)) for name in made.names())
    assert made.pins() == []


def test_settings_of_the_face_reach_the_export(made: ExportedLake, tmp_path: Path) -> None:
    number, wanted = newest(made), made.table.to_arrow()
    made.table.ingest(rows(0, 5))
    done = made.table.export(tmp_path / "x", as_of=number, where="n >= 0", columns=["id"])
    assert (done.number, done.rows) == (number, len(wanted))
    with pytest.raises(LakebedError):
        made.table.export(tmp_path / "y", as_of=1.5)  # type: ignore[arg-type]  # as programs do
    assert not (tmp_path / "y").exists()
