from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dsl.memory_instance import MemoryInstance
from tests.dsl.process_logging import logging_restored


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[MemoryInstance]:
    instance = MemoryInstance(tmp_path)
    yield instance
    instance.lake.close()


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with logging_restored():
        yield
