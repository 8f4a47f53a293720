"""A process is lied to about time, and no other one is."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.adversary.lying_clocks import FAKETIME, NAME, ahead, libfaketime

DAY = 86_400.0
ROOT = Path(__file__).resolve().parents[2]
TELL_TIME = "import time; print(time.time(), time.monotonic())"
SLEEP = """
import time
from tests.adversary.lying_clocks import sleep_in_spite_of_lies
sleep_in_spite_of_lies()
before = time.monotonic()
time.sleep(0.2)
print(time.monotonic() - before)
"""


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


@pytest.mark.skipif(libfaketime() is None, reason="libfaketime is not installed")
@pytest.mark.parametrize("seconds", [-200 * DAY, 200 * DAY])
def test_a_process_that_is_lied_to_sleeps_as_long_as_it_should(seconds: float) -> None:
    library = libfaketime()
    assert library is not None
    done = subprocess.run(
        [sys.executable, "-c", SLEEP],
        cwd=ROOT,
        env=dict(ahead(library, seconds)),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    assert 0.2 <= float(done.stdout) < 20
