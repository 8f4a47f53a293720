"""A lake whose clock the test sets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        yield opened
