"""Images of tasks, really built, though not by Docker: each does a job as the user that it names,
within the limits of a small task. A machine with the umask 077 put their folders together."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lakebed.bootstrap.tasks.task_process import opened
from lakebed.feed import FeedDefinitions
from lakebed.lake import Lake
from stacks.constructs.image_context import image_context
from tests.e2e.images.task_images import MEMORY_MIB, does_its_job, is_empty, small
from tests.e2e.task_instance import (
    TaskInstance,
    instance,  # noqa: F401 - it is a fixture
    ministack,  # noqa: F401 - it is a fixture
)
from tests.servers.built_images import CACHE, build, skip_where_images_cannot_be_built
from tests.servers.containers import KILLED, Container
from tests.servers.image_folder import KERNELS_MIN, LOAD_ALL, private_umask
from tests.servers.nobody import USER
from tests.unit.tables.lakes import SCHEMA, ids, rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]
"""The first test also waits for all images, and on a new machine for their base."""

KINDS = ("ingest", "compaction", "feeds")
FEED = """
[feed.trips]
source = {{ s3 = "{url}", list_seconds = 1 }}
decoder = {{ format = "json" }}
rotate_seconds = 1
[connection.trips]
feed = "trips"
table = "trips"
"""
OPEN_TO_ALL = {"/tmp", "/var/tmp", "/run/lock"}
"""As in every image of Debian's."""
LOOK_AROUND = """
import json, os
found = {"user": os.getuid(), "unreadable": [], "writable": []}
for folder, below, files in os.walk("/"):
    if folder == "/":
        below[:] = set(below) - {"dev", "proc", "sys"}  # which no image holds
    for path in [os.path.join(folder, name) for name in below + files]:
        wanted = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        if path.startswith("/lakebed") and not os.access(path, wanted):
            found["unreadable"].append(path)
        if os.access(path, os.W_OK) and not os.path.islink(path):
            found["writable"].append(path)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folders() -> dict[str, Path]:
    """Returns the folder for the image of each kind of task."""
    skip_where_images_cannot_be_built()
    with private_umask(CACHE / "contexts"):
        made = {kind: image_context(kind) for kind in KINDS}
    assert not [path for path in made.values() if (path / "lakebed").stat().st_mode & 0o077]
    return made


@pytest.fixture(scope="module")
def images(folders: dict[str, Path]) -> dict[str, str]:
    """Returns the name of the image of each kind of task."""
    return {kind: build(kind, folder) for kind, folder in folders.items()}


@pytest.fixture(params=KINDS)
def box(
    request: pytest.FixtureRequest, images: dict[str, str], tmp_path: Path
) -> Iterator[Container]:
    with small(images[request.param], tmp_path / "box") as made:
        yield made


def test_each_image_does_its_job_compiles_nothing_and_stops_when_it_is_told(
    images: dict[str, str],
    instance: TaskInstance,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    app = opened(instance.environment)
    table = Lake(app).create_table("trips", SCHEMA, settings={"job_files_max": 2, "size_ratio": 1})
    urls = {key: instance.put(key, rows([key])) for key in ("a", "b")}
    instance.send([{"id": key, "table": "trips", "files": [url]} for key, url in urls.items()])
    queues = {"ingest": app.queues.open("ingest"), "compaction": app.queue}
    for kind, queue in queues.items():
        with small(images[kind], tmp_path / kind) as box:
            does_its_job(box, instance, partial(is_empty, queue))
        if kind == "ingest":
            assert app.create_jobs.run(app.catalog.find("trips")) == 1
    with table._opened.head.reading() as state:
        assert len(list(state.all_references())) == 1
    assert ids(table) == ["a", "b"]
    app.close()


def test_the_image_of_feeds_takes_a_feed_compiles_nothing_and_stops_when_it_is_told(
    images: dict[str, str],
    instance: TaskInstance,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    app = opened(instance.environment)
    lake = Lake(app)
    table = lake.create_table("trips", SCHEMA)
    url = instance.put_bytes("fed", "rows.json", b'{"id": "a", "n": 1}\n{"id": "b"}\n')
    FeedDefinitions(lake).apply(FEED.format(url=url))
    FeedDefinitions(lake).start("trips")
    with small(images["feeds"], tmp_path / "feeds") as box:
        does_its_job(box, instance, lambda: len(ids(table)) >= 2)
    assert ids(table) == ["a", "b"]
    app.close()


def test_an_image_holds_each_kernel(box: Container) -> None:
    done = box.run("python", "-c", LOAD_ALL)
    assert done.returncode == 0, done.stderr
    where, count = done.stdout.split()
    assert where.startswith("/lakebed/")
    assert int(count) >= KERNELS_MIN


def test_the_user_of_an_image_reads_all_of_it_and_writes_where_everybody_may(
    box: Container,
) -> None:
    done = box.run("python", "-c", LOOK_AROUND)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["user"] == USER == box.user
    assert found["unreadable"] == []
    assert "/tmp" in found["writable"]
    assert set(found["writable"]) <= OPEN_TO_ALL


def test_a_process_that_takes_more_memory_than_its_task_has_is_killed(box: Container) -> None:
    for mib, code in ((MEMORY_MIB // 2, 0), (MEMORY_MIB + 64, KILLED)):
        done = box.run("python", "-c", f"b'x' * ({mib} << 20)")
        assert done.returncode == code, done.stderr


def test_an_image_that_does_not_permit_its_user_to_read_is_dead(
    folders: dict[str, Path], images: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(folders["ingest"], folder)
    steps = (folder / "Dockerfile").read_text().splitlines(keepends=True)
    kept = [line for line in steps if not line.startswith("RUN chmod ")]
    assert len(kept) == len(steps) - 1
    (folder / "Dockerfile").write_text("".join(kept))
    with small(build("unreadable", folder), tmp_path / "box") as box:
        done = box.run(*box.config["Entrypoint"])
    assert done.returncode == 1
    assert "No module named" in done.stderr
