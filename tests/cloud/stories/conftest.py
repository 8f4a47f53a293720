"""Each story runs in memory, in a directory and on the deployed instance."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import RunningInstance
from tests.cloud.users import stop_tasks
from tests.dsl.lake_story import LakeStory
from tests.dsl.local_stages import DirectoryStage, MemoryStage
from tests.dsl.process_logging import logging_restored

STAGES = ("memory", "directory", pytest.param("deployed", marks=pytest.mark.slow))


@pytest.fixture(params=STAGES)
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LakeStory]:
    if request.param == "deployed":
        instance: RunningInstance = request.getfixturevalue("instance")
        with instance.lake() as lake:
            yield LakeStory(DeployedStage(instance, lake))
        stop_tasks(instance)
        return
    with logging_restored():
        stage = MemoryStage(tmp_path) if request.param == "memory" else DirectoryStage(tmp_path)
        yield LakeStory(stage)
        stage.lake.close()
