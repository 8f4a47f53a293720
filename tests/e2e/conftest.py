"""Lakes of these tests lie in memory where the system has a folder for that: a kill is no loss of
power, and syncing to a busy disk would take most of the time."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="lakebed-e2e-", dir=parent) as path:
        yield Path(path)
