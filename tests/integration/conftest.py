import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.instance import Instance


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    instance = Instance(tmp_path)
    yield instance
    instance.lake.close()


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Handlers set up logging for all of their process."""
    root, ours = logging.getLogger(), logging.getLogger("lakebed")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])
