"""Each story runs in memory, in a directory and on the deployed instance.

There it is slow, unless its test says otherwise: most wait for tasks to start.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import RunningInstance
from tests.cloud.ledger.exact_ledger import exact_ledger
from tests.cloud.users import stop_tasks
from tests.dsl.lake_story import FunctionStory, LakeStory
from tests.dsl.local_stages import DirectoryStage, MemoryStage

LocalStageT = TypeVar("LocalStageT", bound=MemoryStage | DirectoryStage)
STAGES = ("memory", "directory", pytest.param("deployed", marks=pytest.mark.slow))


@pytest.fixture(params=STAGES)
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LakeStory]:
    if request.param == "deployed":
        with deployed_stage(request.getfixturevalue("instance")) as stage:
            yield LakeStory(stage)
    else:
        kind: type[MemoryStage | DirectoryStage] = (
            MemoryStage if request.param == "memory" else DirectoryStage
        )
        with local_stage(kind, tmp_path) as local:
            yield LakeStory(local)


@pytest.fixture(params=["memory", "deployed"])
def function_story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FunctionStory]:
    if request.param == "deployed":
        with deployed_stage(request.getfixturevalue("instance")) as stage:
            yield FunctionStory(stage)
    else:
        with local_stage(MemoryStage, tmp_path) as local:
            yield FunctionStory(local)


@contextmanager
def deployed_stage(instance: RunningInstance) -> Iterator[DeployedStage]:
    with instance.lake() as lake, exact_ledger(instance, lake):
        yield DeployedStage(instance, lake)
        stop_tasks(instance)


@contextmanager
def local_stage(kind: type[LocalStageT], folder: Path) -> Iterator[LocalStageT]:
    stage = kind(folder)
    yield stage
    stage.lake.close()
