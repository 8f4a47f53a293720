"""An instance as it is deployed, synthesized for this machine once a session, and run."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.instance import (
    FEED_SETTINGS,
    INSTANCE,
    PEOPLE_SETTINGS,
    SOURCES,
    RunningInstance,
)
from tests.cloud.permission_notes import permissions_of
from tests.cloud.users import stop_tasks

NOTES_VARIABLE = "LAKEBED_PERMISSION_NOTES"
"""Names a file, which gets what each statement of each role was good for in a session."""

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instance") / "assembly"
    settings = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
    settings |= FEED_SETTINGS | PEOPLE_SETTINGS | {"tags": "team=data", "ingest_capacity": "ec2"}
    synthesize(ROOT, folder, settings)
    return folder


@pytest.fixture(scope="session")
def running_instance(
    assembly: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningInstance]:
    """For all tests of a session: each takes names of its own for its tables."""
    folder = tmp_path_factory.mktemp("cloud")
    notes = os.environ.get(NOTES_VARIABLE)
    with LocalCloud(assembly, folder, clock=SystemClock()) as cloud:
        if notes:
            cloud.note_judgements()
        instance = RunningInstance(cloud, folder / "cache")
        yield instance
        if notes:
            Path(notes).write_text(json.dumps(permissions_of(cloud)))


@pytest.fixture
def instance(running_instance: RunningInstance) -> Iterator[RunningInstance]:
    with running_instance.led_here():
        yield running_instance
    running_instance.forget()


@pytest.fixture
def no_tasks_left(instance: RunningInstance) -> Iterator[None]:
    """They might take what the next test sends."""
    yield
    stop_tasks(instance)
