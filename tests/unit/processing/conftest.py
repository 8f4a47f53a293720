"""A package that is installed for the time of a test, and a lake whose clock moves when told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake

NAMES = ("top", "one_a_key", "wrong", "swallows", "not_an_iterator", "needs_an_option")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with the example iterators, and one whose module is not there."""
    package = tmp_path / "site" / "example_iterators-1.0.dist-info"
    package.mkdir(parents=True)
    module = "tests.unit.processing.example_iterators"
    points = "".join(f"{name} = {module}:{name}\n" for name in NAMES)
    package.joinpath("METADATA").write_text("Name: example-iterators\nVersion: 1.0\n")
    package.joinpath("entry_points.txt").write_text(
        f"[lakebed.iterators]\n{points}lost = tests.no_such_module:lost\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        yield opened
