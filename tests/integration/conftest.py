from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dsl.memory_instance import MemoryInstance


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[MemoryInstance]:
    instance = MemoryInstance(tmp_path)
    yield instance
    instance.lake.close()
