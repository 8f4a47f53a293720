"""Machines that a platform does not have are asked for again, by kind and by time, and not for
ever."""

from pathlib import Path

import pytest

from lakebed.bulk_import.launches import PAUSE_SECONDS, ROUNDS_MAX, next_launch
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import SparkRun
from tests.dsl.bulk_import_story import BulkImportStory

SHORT = "TERMINATED_WITH_ERRORS: INSTANCE_FLEET_TIMEOUT (logs: s3://data/spark-logs/j-1/)"


def run(launches: int) -> SparkRun:
    ended = Micros(1_000 * MICROS_PER_SECOND)
    return SparkRun(name="n", id="j", state="no capacity", launches=launches, ended_at=ended)


def test_kinds_follow_each_other_at_once_and_rounds_after_ten_minutes() -> None:
    def told(launches: int, seconds: int) -> str:
        now = Micros((1_000 + seconds) * MICROS_PER_SECOND)
        return next_launch(run(launches), kinds=2, now=now)

    assert [told(n, 1) for n in range(1, 7)] == [
        "launch",
        "wait",
        "launch",
        "wait",
        "launch",
        "fail",
    ]
    assert [told(n, PAUSE_SECONDS) for n in range(1, 7)] == ["launch"] * 5 + ["fail"]
    assert next_launch(run(ROUNDS_MAX), kinds=1, now=Micros(0)) == "fail"


@pytest.fixture
def story(tmp_path: Path) -> BulkImportStory:
    return BulkImportStory(tmp_path)


def lacks_machines(story: BulkImportStory) -> None:
    story.platform.end("no capacity", SHORT, at=story.clock.now())


def test_an_import_that_gets_no_machines_takes_other_kinds_and_commits(
    story: BulkImportStory,
) -> None:
    message = story.message_for("a.parquet", "a", "b") | {"platform": "cluster"}
    story.when_sent(message)
    lacks_machines(story)
    story.follower.run()
    assert [launch for *_, launch in story.platform.asked_for] == [0, 1]
    assert story.events() == ["accepted"]
    story.when_driven()
    story.platform.end("succeeded")
    story.follower.run()
    assert story.events() == ["accepted", "started", "committed"]
    assert not list(story.requests.open())


def test_after_three_rounds_it_fails_with_the_reason_and_the_logs(story: BulkImportStory) -> None:
    types = ["m7g.2xlarge", "c7g.xlarge", "r7g.xlarge"]
    of_cluster = {"platform": "cluster", "instance_types": types}
    story.when_sent(story.message_for("a.parquet", "a") | of_cluster)
    for _ in range(ROUNDS_MAX * len(types)):
        lacks_machines(story)
        story.clock.advance(PAUSE_SECONDS)
        story.follower.run()
    assert [launch for *_, launch in story.platform.asked_for] == list(range(9))
    assert story.events() == ["accepted", "failed"]
    (*_, report) = story.app.tracker.history(story.table._opened.id, "j")
    assert "INSTANCE_FLEET_TIMEOUT" in report.reason
    assert "s3://data/spark-logs/j-1/" in report.reason
    assert not list(story.requests.open())


def test_a_round_is_given_back_for_ten_minutes(story: BulkImportStory) -> None:
    story.when_sent(story.message_for("a.parquet", "a") | {"platform": "cluster"})
    for _ in range(2):
        lacks_machines(story)
        story.follower.run()
    assert [launch for *_, launch in story.platform.asked_for] == [0, 1]
    story.clock.advance(PAUSE_SECONDS - 1)
    story.follower.run()
    assert len(story.platform.asked_for) == 2
    story.clock.advance(1)
    story.follower.run()
    assert [launch for *_, launch in story.platform.asked_for] == [0, 1, 2]


def test_a_platform_that_refuses_the_next_kind_ends_it_with_the_reason(
    story: BulkImportStory,
) -> None:
    story.when_sent(story.message_for("a.parquet", "a") | {"platform": "cluster"})
    lacks_machines(story)
    story.platform.refuses = "EMR refuses the run"
    story.follower.run()
    assert story.events() == ["accepted", "failed"]


def test_a_platform_that_the_instance_has_not_is_refused(story: BulkImportStory) -> None:
    with pytest.raises(InvalidError, match="no such platform") as caught:
        story.when_sent(story.message_for("a.parquet", "a") | {"platform": "shared"})
    assert "platform=shared" in str(caught.value)
    assert "shared_cluster" in str(caught.value)
    assert story.events() == ["rejected"]
    assert not list(story.requests.open())
