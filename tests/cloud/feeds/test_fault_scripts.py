"""Each fault script of `tests/faults` in memory, in a directory, and over the stores of a deployed
instance."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.memory import MemoryJobQueues
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap import aws
from lakebed.bootstrap.assemble import FIRST_REPORT_SECONDS, Stores
from lakebed.config.instance import instance_id
from lakebed.feeds import commit_round
from lakebed.model.names import Micros
from lakebed.ports.clock import Uptime
from lakebed.statestore.log_entries.transactions import PositionChange
from localcloud.services.cloud_clock import CloudClock
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.faults.script import script_in, scripts
from tests.faults.scripted_world import FaultStage, ScriptedWorld
from tests.faults.stages import DirectoryFaults, MemoryFaults

pytestmark = pytest.mark.timeout(600)
STAGES = ("memory", "directory", pytest.param("deployed", marks=pytest.mark.slow))


class NoWaits:
    """The cloud's time, in which nobody waits: a sleep only lets monotonic time pass."""

    def __init__(self, cloud: CloudClock) -> None:
        self._cloud = cloud
        self.slept = 0.0

    def now(self) -> Micros:
        return self._cloud.now()

    def monotonic(self) -> float:
        return self._cloud.monotonic() + self.slept

    def uptime(self) -> Uptime:
        return self._cloud.uptime()

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


class DeployedFaults:
    """The stores of an instance, as a process with its user's rights has them."""

    def __init__(self, instance: RunningInstance) -> None:
        self._instance = instance
        self._clock = NoWaits(instance.cloud.clock)

    def stores(self) -> Stores:
        rng = system_random()
        clients = aws.new_clients(self._clock, rng)
        resources = aws.resources_of(clients, instance_id(INSTANCE))
        return aws._stores(clients, resources, MemoryJobQueues(self._clock), FIRST_REPORT_SECONDS)

    def advance(self, seconds: float) -> None:
        self._clock.slept += seconds
        if seconds > 1:
            self._instance.cloud.advance(seconds, schedules=False)


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> FaultStage:
    match request.param:
        case "memory":
            return MemoryFaults(tmp_path)
        case "directory":
            return DirectoryFaults(tmp_path)
        case _:
            return DeployedFaults(request.getfixturevalue("instance"))


@pytest.fixture
def world(stage: FaultStage, tmp_path: Path) -> Iterator[ScriptedWorld]:
    made = ScriptedWorld(stage, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_a_script_ends_with_each_record_once(path: Path, world: ScriptedWorld) -> None:
    world.play(script_in(path))
    assert world.happened or sum(world.faults.fired.values()), "no fault has happened"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('story = "x"\nsteps = [{ wait = 1 }]', "does not end with"),
        ('story = "x"\nsteps = [{ wait = 1, turns = 2 }, { finish = true }]', "too many values"),
        ('story = "x"\nsteps = [{ before = 1 }, { finish = true }]', "not enough values"),
        ('story = "x"\nsteps = [{ explode = 1 }, { finish = true }]', "explode"),
        ("steps = []", "length"),
    ],
)
def test_what_is_no_script_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises((ValueError, msgspec.ValidationError), match=said):
        script_in(path)


def sets_without_comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    """R2: a position is set, whatever it was."""
    monkeypatch.setattr(PositionChange, "check", lambda *_: None)


def passes_gaps_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """R15: what the source has no longer is passed over, and nobody is told."""
    monkeypatch.setattr(commit_round, "recorded_gaps", lambda *_: ())


@pytest.mark.parametrize(
    ("broken", "name"),
    [(sets_without_comparing, "stopped_and_overtaken"), (passes_gaps_in_silence, "source_forgets")],
)
def test_a_script_notices_what_is_broken(
    broken: Callable[[pytest.MonkeyPatch], None],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ScriptedWorld(MemoryFaults(tmp_path), tmp_path)
    broken(monkeypatch)
    (path,) = [path for path in scripts() if path.stem == name]
    with pytest.raises(AssertionError):
        world.play(script_in(path))
    world.close()
