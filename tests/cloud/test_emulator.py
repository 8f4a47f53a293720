"""The emulator's own process: a command that fails is no silence."""

from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from lakebed.errors import UnavailableError
from localcloud.services.emulator import Emulator


def test_a_command_that_fails_ends_the_emulator_and_who_asked_is_told(tmp_path: Path) -> None:
    with Emulator(tmp_path, clock=SystemClock()) as emulator:
        assert emulator.ask("spark_runs") == []
        with pytest.raises(UnavailableError, match="the emulator has ended"):
            emulator.ask("task_ended", arn="no-arn", code=0)
        with pytest.raises(UnavailableError, match="the emulator has ended"):
            emulator.ask("queues")
