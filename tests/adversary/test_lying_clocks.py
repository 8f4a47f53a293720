"""A process is lied to about time, and no other one is."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.adversary.lying_clocks import FAKETIME, NAME, ahead, libfaketime

DAY = 86_400.0
TELL_TIME = "import time; print(time.time(), time.monotonic())"


def test_the_library_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FAKETIME, str(tmp_path / NAME))
    assert libfaketime() == tmp_path / NAME


@pytest.mark.skipif(libfaketime() is None, reason="libfaketime is not installed")
@pytest.mark.parametrize("seconds", [-3 * DAY, 3 * DAY])
def test_the_wall_clock_of_a_process_is_wrong_and_its_monotonic_clock_is_right(
    seconds: float,
) -> None:
    library = libfaketime()
    assert library is not None
    done = subprocess.run(
        [sys.executable, "-c", TELL_TIME],
        env=dict(ahead(library, seconds)),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    wall, monotonic = map(float, done.stdout.split())
    assert abs(wall - time.time() - seconds) < DAY
    assert abs(monotonic - time.monotonic()) < DAY
