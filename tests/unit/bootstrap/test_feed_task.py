"""A task that works on feeds, in this process and over a lake in a directory."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.tasks.feed_task import FeedTask, _ended_in_time, _limits
from lakebed.feed import FeedDefinitions
from lakebed.feeds.pacing.worker_names import TASK_PREFIX
from lakebed.feeds.task_life import FeedTaskLimits
from lakebed.lake import Lake
from lakebed.tasks.task_loop import StopRequest

FEED = """
[feed.lines]
files = "{folder}/*.log"
rotate_seconds = 1
"""
ELASTIC = """
[feed.lines]
files = "{files}"
policy = "Elastic"
"""
IMPATIENT = FeedTaskLimits(idle_seconds=0.3, look_seconds=0.1)
SECONDS_MAX = 30


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    (tmp_path / "files").mkdir()
    with lakebed.connect(tmp_path / "lake") as opened:
        FeedDefinitions(opened).apply(FEED.format(folder=tmp_path / "files"))
        yield opened


def task(lake: Lake, limits: FeedTaskLimits | None = None) -> FeedTask:
    return FeedTask(lake._app, StopRequest(), limits)


def landed(lake: Lake) -> int:
    if "lines_landing" not in lake.tables():
        return 0
    return lake.table("lines_landing").query().read_all().num_rows


def until(is_so: Callable[[], bool]) -> Callable[[], bool]:
    """Return what says that a task is to stop, once something is so."""
    end = time.monotonic() + SECONDS_MAX

    def is_over() -> bool:
        assert time.monotonic() < end, "it never was"
        return is_so()

    return is_over


def test_a_task_takes_what_feeds_have_and_lets_go_when_it_is_stopped(
    lake: Lake, tmp_path: Path
) -> None:
    (tmp_path / "files" / "a.log").write_text("one\ntwo\n")
    FeedDefinitions(lake).start("lines")
    assert task(lake).run(until(lambda: landed(lake) == 2)) == "stopped"
    leases = lake._app.feeds.leases
    assert not leases.workers()
    assert {owner.worker for owner in leases.owners()} == {""}


def test_a_task_that_no_feed_wants_ends_and_lands_nothing(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "files" / "a.log").write_text("one\n")
    assert task(lake, IMPATIENT).run(until(lambda: False)) == "idle"
    assert landed(lake) == 0


def test_of_two_tasks_where_one_is_wanted_one_ends(lake: Lake) -> None:
    """One that a lost answer started, or that an operator did."""
    FeedDefinitions(lake).start("lines")
    stop, endings = threading.Event(), dict[str, str]()

    def work(name: str) -> None:
        endings[name] = task(lake, IMPATIENT).run(stop.is_set)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS_MAX
    while not endings and time.monotonic() < end:
        time.sleep(0.05)
    assert list(endings.values()) == ["idle"]
    (left,) = [beat.worker for beat in lake._app.feeds.leases.workers()]
    assert left.startswith(TASK_PREFIX)
    stop.set()
    for thread in threads:
        thread.join()
    assert sorted(endings.values()) == ["idle", "stopped"]


def test_of_two_elastic_tasks_one_ends_when_the_other_can_do_it_all(lake: Lake) -> None:
    """They wait for longer than tasks that no feed wants."""
    files = FeedDefinitions(lake).describe("lines")[0].feed.files
    FeedDefinitions(lake).apply(ELASTIC.format(files=files))
    FeedDefinitions(lake).start("lines")
    stop, endings = threading.Event(), dict[str, float]()
    patient = FeedTaskLimits(idle_seconds=0.1, spare_seconds=2.0, look_seconds=0.1)

    def work(name: str) -> None:
        task(lake, patient).run(stop.is_set)
        endings[name] = time.monotonic()

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    end = began + SECONDS_MAX
    while not endings and time.monotonic() < end:
        time.sleep(0.05)
    ((_, ended),) = endings.items()
    assert ended - began >= 2.0
    assert len(lake._app.feeds.leases.workers()) == 1
    stop.set()
    for thread in threads:
        thread.join()


def test_tasks_that_start_together_do_not_end_together(lake: Lake) -> None:
    ages = {_limits(lake._app).age_seconds for _ in range(10)}
    assert len(ages) == 10
    assert 11 * 3_600 <= min(ages) <= max(ages) <= 12 * 3_600


def test_a_process_that_does_not_end_in_time_is_ended() -> None:
    stop, ended = StopRequest(), threading.Event()
    with _ended_in_time(stop, grace_seconds=0.1, end_process=ended.set):
        assert not ended.wait(0.3)
        stop()
        assert ended.wait(SECONDS_MAX)


def test_one_that_ends_in_time_is_left_alone() -> None:
    stop, ended = StopRequest(), threading.Event()
    with _ended_in_time(stop, grace_seconds=SECONDS_MAX, end_process=ended.set):
        stop()
    assert not ended.is_set()
