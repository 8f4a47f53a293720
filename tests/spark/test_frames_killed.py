"""Appending a frame while workers, or the driver, are killed."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import lakebed
from tests.readers.rows import plain
from tests.spark.shell import SparkShell, descendants, kill, wait_for
from tests.spark.test_bulk_import import LEFT
from tests.spark.test_frames import NUMBERS, numbers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROWS, PARTITIONS = 3_000, 4
WAYS = [("append", "4"), ("save", "4"), ("append", "3.5")]


class Story:
    """A lake with a table, and a frame whose last partition waits for a file."""

    def __init__(self, way: str, line: str, folder: Path) -> None:
        self.lake = folder / "lake"
        self.shell = SparkShell(line, str(self.lake), folder)
        self._way = way
        self._gate = folder / "gate"
        with lakebed.connect(self.lake) as lake:
            lake.create_table("t", NUMBERS, split_points=["3", "6"])

    def steps(self) -> list[dict[str, Any]]:
        frame = {"rows": ROWS, "partitions": PARTITIONS, "wait_for": str(self._gate)}
        given = {"name": "appended", "do": self._way, "from": {"kind": "numbers"} | frame}
        place = {"lake": str(self.lake), "table": "t"}
        if self._way == "save":
            return [given | {"options": place | {"job": "j"}}]
        return [given | place | {"with": {"job": "j"}}]

    def opened(self) -> None:
        self._gate.touch()

    def runs(self) -> list[Path]:
        return list((self.lake / "objects").rglob("runs/*"))

    def check(self, *, visible: bool) -> None:
        with lakebed.connect(self.lake) as lake:
            found = plain(lake.table("t").query().read_all())
            findings = lake.fsck(deep=True).findings
        assert found == (numbers(ROWS) if visible else [])
        assert {finding.code for finding in findings} <= set(LEFT)

    def appended(self) -> None:
        gave = self.shell.steps_done(self.steps())["appended"]
        assert "error" not in gave, gave


@pytest.mark.parametrize(("way", "line"), WAYS)
def test_a_killed_driver_leaves_nothing_that_is_seen_and_its_job_can_be_run_again(
    way: str, line: str, tmp_path: Path
) -> None:
    story = Story(way, line, tmp_path)
    with story.shell.doing(story.steps()) as process:
        wait_for(lambda: len(story.runs()) == PARTITIONS - 1, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert story.runs()
    story.check(visible=False)
    story.opened()
    story.appended()
    story.check(visible=True)
    story.appended()
    story.check(visible=True)
    with lakebed.connect(story.lake) as lake:
        told = [report.event for report in lake.table("t").jobs(job="j")]
    assert told == ["started", "started", "committed"]


@pytest.mark.parametrize(("way", "line"), WAYS)
def test_killed_workers_are_made_up_for(way: str, line: str, tmp_path: Path) -> None:
    story = Story(way, line, tmp_path)
    with story.shell.doing(story.steps()) as process:
        wait_for(lambda: len(story.runs()) == PARTITIONS - 1, process)
        killed = descendants(process.pid, "pyspark.daemon")[1:]  # the first one forks the others
        for pid in killed:
            kill(pid)
        story.opened()
        _, told = process.communicate()
        assert process.returncode == 0, told
    assert killed
    assert "error" not in (tmp_path / "appended.json").read_text()
    story.check(visible=True)
