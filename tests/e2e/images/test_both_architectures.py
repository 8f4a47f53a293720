"""Tasks of both architectures write the same file: that of this machine, and the other in an
emulator. Which of them an instance has is a setting, and may be changed while its tables live."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.bootstrap.tasks.task_process import opened
from lakebed.lake import Lake
from stacks.constructs.image_context import image_context
from tests.e2e.images.task_images import does_its_job, is_empty, small
from tests.e2e.task_instance import (
    TaskInstance,
    instance,  # noqa: F401 - it is a fixture
    ministack,  # noqa: F401 - it is a fixture
)
from tests.servers.built_images import (
    MACHINES,
    OTHER_ARCHITECTURE,
    OWN_ARCHITECTURE,
    build,
    skip_where_the_other_architecture_is_not_emulated,
)
from tests.servers.image_folder import KERNELS_MIN, LOAD_ALL
from tests.servers.s3 import BUCKET

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]
"""What is emulated takes twenty times as long; the first test waits for its image, too."""

EMULATED_SECONDS_MAX = 1_200
SCHEMA = lakebed.schema_of(
    row_keys={"id": "string"},
    sort_keys={"at": "timestamp[us, UTC]"},
    values={
        "n": "int64?",
        "share": "float64",
        "text": "string?",
        "many": {"map": ["string", "float32"]},
    },
)
COUNT = 20_000
MANY = pa.map_(pa.string(), pa.float32())


def rows(first: int) -> pa.Table:
    """Half of all rows, of types and encodings of each kind; some keys are in both halves."""
    numbers = [number for number in range(COUNT) if number % 2 == first or number % 7 == 0]
    return pa.table(
        {
            "id": [f"{number * 7919 % COUNT:08}" for number in numbers],
            "at": pa.array(numbers, pa.timestamp("us", tz="UTC")),
            "n": pa.array([None if number % 5 == 0 else number**3 for number in numbers]),
            "share": [number / 3 for number in numbers],
            "text": [None if number % 11 == 0 else f"row {number % 100}" for number in numbers],
            "many": pa.array([[("x", number / 7)] * (number % 3) for number in numbers], MANY),
        }
    )


@pytest.fixture(scope="module")
def images() -> dict[str, str]:
    """Returns by architecture the name of the image that merges."""
    skip_where_the_other_architecture_is_not_emulated()
    folder = image_context("compaction")
    return {architecture: build("compaction", folder, architecture) for architecture in MACHINES}


def test_an_image_of_the_other_architecture_holds_each_kernel(
    images: dict[str, str], tmp_path: Path
) -> None:
    with small(images[OTHER_ARCHITECTURE], tmp_path / "box") as box:
        machine = box.run("python", "-c", "import platform; print(platform.machine())")
        done = box.run("python", "-c", LOAD_ALL)
    assert machine.stdout.strip() == MACHINES[OTHER_ARCHITECTURE]
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) >= KERNELS_MIN


def test_tasks_of_both_architectures_write_the_same_file(
    images: dict[str, str],
    instance: TaskInstance,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    app = opened(instance.environment)
    written = {}
    for architecture, image in images.items():
        table = Lake(app).create_table(architecture, SCHEMA, settings={"size_ratio": 1})
        for first in (0, 1):
            table.ingest(rows(first))
        assert app.create_jobs.run(app.catalog.find(architecture)) == 1
        with small(image, tmp_path / architecture) as box:
            does_its_job(
                box, instance, partial(is_empty, app.queue), seconds_max=EMULATED_SECONDS_MAX
            )
        (file,) = table.files()
        assert file.rows == table.query().read_all().num_rows > COUNT
        with closing(instance.server.clients()) as clients:
            key = file.path.removeprefix(f"s3://{BUCKET}/")
            written[architecture] = clients.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    app.close()
    assert written[OWN_ARCHITECTURE] == written[OTHER_ARCHITECTURE]
