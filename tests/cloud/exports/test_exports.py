"""A table with processing goes from a deployed instance to S3 and comes back, with equal rows."""

import itertools
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
from lakebed.errors import InvalidError
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import ExportTable
from lakebed.exports.target import MANIFEST, ExportTarget
from localcloud.services.emulator import REGION
from tests.cloud.instance import RunningInstance

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

ARCHIVE = "archive"
"""A bucket of its users, which the instance knows nothing of."""
SCHEMA = lakebed.schema_of(
    row_keys={"page": "int64"}, values={"seen": "int64", "times": "int64", "by": "string?"}
)
COUNTING = lakebed.Processing(
    filter=lakebed.field("page") != 13, aggregate={"seen": "sum", "times": "count", "by": "max"}
)
PAGES = 200
SLICE_BYTES = 2_000
"""So that each leaf is a slice."""


def visits(step: int) -> pa.Table:
    pages = range(0, PAGES, step)
    return pa.table(
        {
            "page": pages,
            "seen": [step] * len(pages),
            "times": [0] * len(pages),
            "by": [None if page % 5 else f"by {step}" for page in pages],
        }
    )


@pytest.fixture
def archive(instance: RunningInstance) -> Iterator[str]:
    """A folder of S3 where nothing lies."""
    s3 = instance.cloud.client("s3")
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=ARCHIVE, CreateBucketConfiguration={"LocationConstraint": REGION})
    yield f"s3://{ARCHIVE}/visits"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=ARCHIVE):
        for found in page.get("Contents", ()):
            s3.delete_object(Bucket=ARCHIVE, Key=found["Key"])


def counted(lake: lakebed.Lake) -> lakebed.Table:
    """A table of two leaves that counts visits and leaves a page out."""
    table = lake.create_table(
        "visits",
        SCHEMA,
        split_points=[PAGES // 2],
        settings={"shared_file_rows_max": 1},
        processing=COUNTING,
    )
    for step in (1, 2, 3):
        table.ingest(visits(step))
    return table


def test_a_table_with_processing_is_exported_and_restored_with_equal_rows(
    instance: RunningInstance, archive: str, tmp_path: Path
) -> None:
    with instance.lake() as lake:
        table = counted(lake)
        wanted, tag = table.to_arrow(), table.tag("quarter")
        table.ingest(visits(7))
        table.compact()
        instance.cloud.settle()
        assert not instance.cloud.failures
        newest = table.to_arrow()
        assert not newest.equals(wanted)
        done = table.export(f"{archive}/quarter", as_of="quarter")
        assert (done.number, done.rows) == (tag.number, len(wanted))
        assert table.export(f"{archive}/quarter", as_of="quarter").repeated
        with pytest.raises(InvalidError, match="of another version"):
            table.export(f"{archive}/quarter")
        few = table.export(f"{archive}/now", where="times >= 3")
        assert 0 < few.rows < len(newest)
        lake.restore_table("quarter", done.manifest, verify=True)
        assert lake["quarter"].to_arrow().equals(wanted)
        assert lake["quarter"].definition == table.definition
        for one in (table, lake["quarter"]):  # it goes on counting as the other one does
            one.ingest(visits(11))
        assert lake["quarter"].count() == table.count()
    with lakebed.connect(tmp_path / "lake") as here:  # by the same credentials
        here.restore_table("quarter", done.manifest, verify=True)
        assert here["quarter"].to_arrow().equals(wanted)


@pytest.mark.slow
def test_killed_at_any_effect_the_next_run_goes_on(
    instance: RunningInstance, archive: str, tmp_path: Path
) -> None:
    with instance.lake() as lake, lakebed.connect(tmp_path / "lake") as here:
        table = counted(lake)
        number, wanted = table.tag("then").number, table.to_arrow()
        table.ingest(visits(7))
        service = ExportTable(query=lake._app.query, clock=lake._app.clock)
        for effect in itertools.count(1):
            place, crashes = f"{archive}/{effect}", CrashPlan(effect)
            objects = PlainS3Objects(
                ARCHIVE,
                f"visits/{effect}",
                clock=SystemClock(),
                rng=system_random(),
                config=endpoint_config(),
            )
            faulty = FaultyObjectStore(objects, Faults(system_random(), CALM), crashes)
            with suppress(Crash):
                service.run(
                    table._opened,
                    ExportTarget(faulty, place, is_probed=True),
                    ExportRequest(as_of="then"),
                    workers=1,
                    slice_bytes=SLICE_BYTES,
                )
            assert table.export(place, as_of="then").number == number
            assert {name for name in objects.list("") if not name.endswith(".parquet")} == {
                MANIFEST
            }
            here.restore_table(f"r{effect}", place, verify=True)
            assert here[f"r{effect}"].to_arrow().equals(wanted)
            if not crashes.dead:
                break
        assert effect > 5
        with table._opened.head.reading() as state:
            assert len(state.pins()) == 1  # of the run whose plan was never put: it ends by itself
