"""When a task that works on feeds ends, and why."""

from collections.abc import Callable
from typing import get_args

import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.errors import NewerFormatError, UnavailableError
from lakebed.feeds.pacing.wanted_tasks import Need
from lakebed.feeds.task_life import FeedTaskLife, FeedTaskLimits

LIMITS = FeedTaskLimits()


class Story:
    """A task, and what it hears when it asks whether it is needed."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.says: Callable[[], Need] = lambda: "needed"
        self.life = FeedTaskLife(clock=self.clock, need=self._need)

    def _need(self) -> Need:
        return self.says()

    def ending(self, after: float, *, step: float = 5.0) -> str | None:
        """Return how it ended within so many seconds; None: it did not."""
        end = self.clock.monotonic() + after
        while self.clock.monotonic() < end:
            self.clock.sleep(step)
            found = self.life.ending(is_stopped=False)
            if found is not None:
                return found
        return None


def raises(error: Exception) -> Callable[[], Need]:
    def says() -> Need:
        raise error

    return says


def test_a_task_that_is_needed_ends_for_its_age_alone() -> None:
    story = Story()
    assert story.ending(LIMITS.age_seconds - 60, step=15) is None
    assert story.ending(120) == "age"


def test_a_task_that_is_not_needed_for_minutes_ends() -> None:
    story = Story()
    story.says = lambda: "unneeded"
    assert story.ending(LIMITS.idle_seconds - 10) is None
    story.says = lambda: "needed"
    assert story.ending(LIMITS.look_seconds) is None
    story.says = lambda: "unneeded"
    assert story.ending(LIMITS.idle_seconds - 10) is None, "a feed was started in between"
    assert story.ending(60) == "idle"


def test_a_task_whose_work_others_can_do_ends_after_ten_minutes_of_that() -> None:
    story = Story()
    story.says = lambda: "spare"
    assert story.ending(LIMITS.spare_seconds - 10) is None
    story.says = lambda: "needed"
    assert story.ending(LIMITS.look_seconds) is None
    story.says = lambda: "spare"
    assert story.ending(LIMITS.spare_seconds - 10) is None, "it had to work in between"
    assert story.ending(60) == "idle"
    assert (LIMITS.idle_seconds, LIMITS.spare_seconds) == (300, 600)


def test_a_task_that_cannot_ask_goes_on_for_as_long_as_that_takes() -> None:
    story = Story()
    story.says = raises(UnavailableError("throttled"))
    assert story.ending(3_600) is None


def test_a_task_of_an_older_release_than_the_definitions_ends_and_says_so() -> None:
    story = Story()
    story.says = raises(NewerFormatError("a setting that this release does not know"))
    assert story.ending(LIMITS.idle_seconds + 60) == "outdated"


@pytest.mark.parametrize("need", get_args(Need))
def test_a_task_that_is_asked_to_stop_ends_at_once(need: Need) -> None:
    story = Story()
    story.says = lambda: need
    assert story.life.ending(is_stopped=True) == "stopped"
