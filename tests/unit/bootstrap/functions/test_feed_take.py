"""What the function takes that is for sources that trickle: its own feeds, and no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.local.file_tail import FileTail
from lakebed.bootstrap.feeds import pipelines
from lakebed.bootstrap.feeds.worker import running_definitions
from lakebed.bootstrap.functions.feed_take import TakeFeeds
from lakebed.errors import InvalidError
from lakebed.feed import FeedDefinitions
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.pacing.wanted_workers import WorkerBounds, wanted_workers
from lakebed.lake import Lake
from tests.unit.feeds.definition_stories import Definitions

FEEDS = """
[feed.few]
run = "function"
source = { s3 = "s3://landing/few/" }
decoder = { format = "json" }
policy = "Elastic"
[connection.few]
feed = "few"
table = "numbers"
[feed.many]
source = { s3 = "s3://landing/many/" }
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """With sources that read lines of files: objects need a store."""
    monkeypatch.setattr(
        pipelines, "record_source", lambda source, _: FileTail(f"{tmp_path}/{source.s3[13:-1]}*")
    )
    with lakebed.connect(tmp_path / "lake") as opened:
        opened.create_table("numbers", lakebed.schema_of(row_keys={"id": "int64"}))
        FeedDefinitions(opened).apply(FEEDS)
        yield opened


def write(folder: Path, name: str, *numbers: int) -> None:
    (folder / name).write_text("".join(f'{{"id": {number}}}\n' for number in numbers))


def numbers(lake: Lake) -> list[int]:
    return sorted(lake.table("numbers").query().read_all()["id"].to_pylist())


def test_a_run_takes_what_its_feeds_have_into_their_tables_and_no_others(
    lake: Lake, tmp_path: Path
) -> None:
    write(tmp_path, "few.log", 1, 2)
    write(tmp_path, "many.log", 3)
    take = TakeFeeds(lake._app)
    take.run()
    assert not numbers(lake), "it was not started"
    FeedDefinitions(lake).start("few")
    FeedDefinitions(lake).start("many")
    take.run()
    assert numbers(lake) == [1, 2], "landed, and taken from there in the same run"
    write(tmp_path, "few2.log", 4)
    take.run()
    assert numbers(lake) == [1, 2, 4]
    assert lake.tables() == ["few_landing", "numbers"]
    assert not lake._app.feeds.leases.workers()


def test_a_run_is_over_in_time_and_the_next_one_goes_on(lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, "few.log", 1)
    FeedDefinitions(lake).start("few")
    TakeFeeds(lake._app, seconds_max=0).run()
    assert not numbers(lake)
    TakeFeeds(lake._app).run()
    assert numbers(lake) == [1]


def test_a_policy_that_misses_lost_workers_is_refused_and_the_feed_says_so(
    lake: Lake, tmp_path: Path
) -> None:
    """A run would end before it knows, again and again."""
    write(tmp_path, "few.log", 1)
    FeedDefinitions(lake).apply(FEEDS.replace("Elastic", "Monitored"))
    FeedDefinitions(lake).start("few")
    TakeFeeds(lake._app).run()
    failed = read_definitions(lake._app.feeds.definitions).feed("few").failed
    assert failed is not None
    assert "no run of a function lives long enough" in failed.reason


def test_workers_leave_a_feed_to_the_function_unless_they_name_it() -> None:
    definitions = Definitions()
    definitions.apply(FEEDS)
    for name in ("few", "many"):
        definitions.lifecycle.run("start", name)

    def running(*only: str, has_functions: bool = True) -> list[str]:
        feeds, connections = running_definitions(
            definitions.known, only, has_functions=has_functions
        )
        return [one.feed.name for one in feeds] + [one.connection.name for one in connections]

    assert running() == ["many"]
    assert running("few") == ["few", "few"]
    assert running(has_functions=False) == ["few", "many", "few"]
    assert wanted_workers(definitions.known) == WorkerBounds(1, 0), "no task is wanted for it"
    definitions.lifecycle.run("stop", "many")
    assert wanted_workers(definitions.known) == WorkerBounds()


def test_a_lake_in_a_directory_has_no_functions_so_its_workers_take_all(
    lake: Lake, tmp_path: Path
) -> None:
    write(tmp_path, "few.log", 1)
    FeedDefinitions(lake).start("few")
    lakebed.feed.Feeds(lake).run()
    assert numbers(lake) == [1]
    assert read_definitions(lake._app.feeds.definitions).feed("few").runs_in_function


@pytest.mark.parametrize(
    "source",
    [
        '{ kafka = "b:9092", topics = ["a"] }',
        '{ files = "*.log" }',
        "{ push = true }",
        '{ socket = ":9000" }',
    ],
)
def test_a_source_that_a_function_cannot_take_is_refused_with_what_it_can(source: str) -> None:
    text = f'[feed.a]\nrun = "function"\nsource = {source}\n'
    with pytest.raises(InvalidError, match=r"feed\.a\.run.*S3.*SQS"):
        Definitions().apply(text)
    with pytest.raises(InvalidError, match=r"feed\.a\.run"):
        Definitions().apply(FEEDS.replace('"function"', '"functions"').replace("few", "a"))
