"""Lakes in which strategies of users are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.config.packages import STRATEGIES
from lakebed.lake import Lake
from tests.unit.compaction.strategy_lakes import MODULE, NAMES
from tests.unit.packages_of_tests import Install, installing


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    return installing(tmp_path, monkeypatch)


@pytest.fixture
def installed(install: Install) -> None:
    points = {name: name for name in NAMES} | {"lost": "no_such_function"}
    install("strategies_of_a_test", MODULE, {STRATEGIES: points})


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        yield opened
