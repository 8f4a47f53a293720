"""Tasks as containers run them: processes that are given names, a queue, and SIGTERM."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.bootstrap.tasks.task_process import opened
from lakebed.config.environments import IngestTaskEnvironment, variables_of
from lakebed.lake import Lake
from localcloud.programs import checked_requests
from localcloud.templates.images import make_image
from tests.e2e.task_instance import (
    SECONDS_MAX,
    TaskInstance,
    instance,  # noqa: F401 - it is a fixture
    ministack,  # noqa: F401 - it is a fixture
    until,
)
from tests.unit.tables.lakes import SCHEMA, ids, rows

ROOT = Path(__file__).parents[2]


@contextmanager
def task(kind: str, environment: IngestTaskEnvironment) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, checked_requests.__file__, str(ROOT / f"containers/{kind}/main.py")],
        env={**os.environ, **variables_of(environment), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told_to_stop(process: "subprocess.Popen[str]") -> list[dict[str, object]]:
    """Return the lines that a task wrote, which was asked to stop."""
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.timeout(300)
def test_files_that_a_message_names_become_rows_and_then_are_merged(
    instance: TaskInstance,  # noqa: F811 - the fixture
) -> None:
    environment = instance.environment
    app = opened(environment)
    table = Lake(app).create_table("trips", SCHEMA, settings={"job_files_max": 2, "size_ratio": 1})
    messages: list[dict[str, object]] = [
        {"id": "bad", "table": "trips", "files": ["s3://elsewhere/x.csv"]}
    ]
    for key in ("a", "b"):
        url = instance.put(key, rows([key]))
        messages += [{"id": key, "table": "trips", "files": [url]}] * 2
    instance.send(messages)
    ingest_queue = app.queues.open("ingest")
    with task("ingest", environment) as process:
        until("all messages are done", lambda: ingest_queue.depth() == (0, 1))
        lines = told_to_stop(process)
    assert ids(table) == ["a", "b"]
    told = {report.job: report for report in table.jobs()}
    assert (told["a"].event, told["b"].event, told["bad"].event) == (
        "committed",
        "committed",
        "rejected",
    )
    assert "s3://elsewhere/x.csv" in told["bad"].reason
    (ended,) = [line for line in lines if line["event"] == "task_ended"]
    assert ended["ending"] == "stopped"

    assert app.create_jobs.run(app.catalog.find("trips")) == 1
    with task("compaction", environment) as process:
        until("the files are merged", lambda: app.queue.depth() == (0, 0))
        told_to_stop(process)
    with table._opened.head.reading() as state:
        assert len(list(state.all_references())) == 1
    assert ids(table) == ["a", "b"]
    app.close()


def test_a_task_that_is_not_told_its_names_says_which() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "containers.ingest.main"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "LAKEBED_INGEST_QUEUE_URL" in done.stderr


@pytest.mark.parametrize("kind", ["ingest", "compaction"])
def test_an_image_is_made_of_what_is_there(kind: str, tmp_path: Path) -> None:
    image = make_image(ROOT, f"containers/{kind}/Dockerfile", tmp_path / "image")
    assert image.command == ("-m", f"containers.{kind}.main")
    assert (image.folder / "containers" / kind / "main.py").exists()
    assert image.packages
    lines = (ROOT / "containers" / kind / "Dockerfile").read_text().splitlines()
    required = {word for line in lines for word in line.split() if word.endswith(".txt")}
    assert required
    assert all((image.folder / path).exists() for path in required)
