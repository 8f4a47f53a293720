"""Exports and restores of real processes: killed with -9 before each effect; and in S3."""

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.aws.source_files import PlainS3Objects
from lakebed.backends.faulty.crash_plan import Crash, CrashPlan
from lakebed.backends.faulty.faults import CALM, Faults
from lakebed.backends.faulty.object_store import FaultyObjectStore
from lakebed.backends.system import SystemClock, system_random
from lakebed.bootstrap.object_locations import endpoint_config
from lakebed.cli.main import main
from lakebed.errors import CorruptError, InvalidError
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import ExportTable
from lakebed.exports.target import MANIFEST, ExportTarget
from tests.e2e.exports.killed_at_effect import export
from tests.servers.fixtures import ministack  # noqa: F401 - they are fixtures
from tests.servers.s3 import BUCKET, S3Server

SCHEMA = lakebed.schema_of(
    row_keys={"page": "int64"}, values={"seen": "int64", "times": "int64", "by": "string?"}
)
COUNTING = lakebed.Processing(aggregate={"seen": "sum", "times": "count", "by": "max"})
PAGES = 200


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    """A lake with a table of two leaves that counts."""
    settings = {"shared_file_rows_max": 1}
    with lakebed.connect(tmp_path / "lake") as made:
        table = made.create_table(
            "t", SCHEMA, split_points=[PAGES // 2], settings=settings, processing=COUNTING
        )
        for step in (1, 2, 3):
            pages = range(0, PAGES, step)
            table.ingest(
                pa.table(
                    {
                        "page": pages,
                        "seen": [step] * len(pages),
                        "times": [0] * len(pages),
                        "by": [None if p % 7 else f"by {step}" for p in pages],
                    }
                )
            )
        yield made


def killed_at(effect: int, action: str, lake: Path, folder: Path) -> bool:
    """Run a process that is killed before an effect. Returns whether it came so far."""
    command = [sys.executable, "-m", "tests.e2e.exports.killed_at_effect"]
    given = [str(effect), action, str(lake), str(folder)]
    ended = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_before_each_effect_and_resumed_export_and_restore_give_equal_rows(
    lake: lakebed.Lake, tmp_path: Path
) -> None:
    wanted = lake["t"].to_arrow()
    for effect in itertools.count(1):
        folder = tmp_path / f"out-{effect}"
        killed = killed_at(effect, "export", tmp_path / "lake", folder)
        kept = {file: file.stat().st_ino for file in folder.glob("*.parquet")}
        export(lake, folder)
        assert all(file.stat().st_ino == number for file, number in kept.items())
        assert {p.name for p in folder.iterdir()} == {
            MANIFEST,
            *(file.name for file in folder.glob("*.parquet")),
        }
        if not killed:
            break
    assert effect > 10
    for effect in itertools.count(1):
        path = tmp_path / f"restored-{effect}"
        killed = killed_at(effect, "restore", path, folder)
        with lakebed.connect(path) as other:
            other.restore_table("t", folder, verify=True)
            assert other["t"].to_arrow().equals(wanted)
            assert other["t"].definition == lake["t"].definition
        if not killed:
            break
    assert effect > 4


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    found: S3Server = request.getfixturevalue("ministack")
    for name, value in found.environment().items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def place(server: S3Server) -> str:
    return f"s3://{BUCKET}/{server.new_prefix()}"


def objects_at(place: str) -> PlainS3Objects:
    prefix = place.removeprefix(f"s3://{BUCKET}/")
    return PlainS3Objects(
        BUCKET, prefix, clock=SystemClock(), rng=system_random(), config=endpoint_config()
    )


def exit_code(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    return exited.value.code


def test_a_table_goes_to_s3_and_comes_back(
    lake: lakebed.Lake, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = lake["t"].to_arrow()
    here, there = str(tmp_path / "lake"), str(tmp_path / "other")
    assert exit_code(["--lake", here, "--json", "export", "t", place]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["manifest"]) == (PAGES, f"{place}/{MANIFEST}")
    names = list(objects_at(place).list(""))
    assert MANIFEST in names
    assert len(names) == 1 + told["files"]
    assert lake["t"].export(place).repeated
    restore = ["--lake", there, "--json", "restore", "t", told["manifest"], "--verify"]
    for _ in range(2):
        assert exit_code(restore) == 0
    with lakebed.connect(there) as other:
        assert other["t"].to_arrow().equals(wanted)
    with pytest.raises(InvalidError, match="of other rows or columns"):
        lake["t"].export(place, columns=["page"])
    objects_at(place).delete([next(name for name in names if name.endswith(".parquet"))])
    with pytest.raises(CorruptError, match="missing"):
        lake.restore_table("again", place)
    assert lake.tables() == ["t"]


def test_a_bucket_that_is_not_there_or_holds_anything_else_is_refused(
    lake: lakebed.Lake, place: str
) -> None:
    with pytest.raises(InvalidError, match="no such bucket"):
        lake["t"].export("s3://no-such-bucket/t")
    with pytest.raises(InvalidError, match="no such bucket"):
        lake.restore_table("u", "s3://no-such-bucket/t")
    with pytest.raises(InvalidError, match="no export lies there"):
        lake.restore_table("u", place)
    writer = objects_at(place).create("mine.txt")
    writer.write(b"mine")
    writer.finish()
    with pytest.raises(InvalidError, match="not empty"):
        lake["t"].export(place)
    assert list(objects_at(place).list("")) == ["mine.txt"]
    assert lake["t"].export(f"{place}/below").rows == PAGES


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_effect_in_s3_the_next_run_goes_on(
    lake: lakebed.Lake, server: S3Server, moment: str
) -> None:
    app, wanted = lake._app, lake["t"].to_arrow()
    service = ExportTable(query=app.query, clock=app.clock)
    for effect in itertools.count(1):
        place = f"s3://{BUCKET}/{server.new_prefix()}"
        crashes = CrashPlan(effect, moment)  # type: ignore[arg-type]  # one of two words
        faults = Faults(system_random(), CALM)
        objects = FaultyObjectStore(objects_at(place), faults, crashes)
        with suppress(Crash):
            target = ExportTarget(objects, place, is_probed=True)
            service.run(lake["t"]._opened, target, ExportRequest(), workers=1)
        assert lake["t"].export(place).rows == PAGES
        name = f"r{effect}"
        lake.restore_table(name, place)
        assert lake[name].to_arrow().equals(wanted)
        if not crashes.dead:
            break
    assert effect > 5
