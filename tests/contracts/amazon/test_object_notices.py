"""Notices of objects in a queue: they are counted, deleted, and never waited for."""

import random

import pytest

from lakebed.backends.aws.feeds.object_notices import ASK_SECONDS, ObjectNotices
from lakebed.backends.memory.clock import VirtualClock
from tests.contracts.amazon.test_sqs_source import left, trial  # noqa: F401 - a fixture
from tests.contracts.sources.trials import SqsTrial


@pytest.fixture
def clock(
    trial: SqsTrial,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> VirtualClock:
    clock = VirtualClock()
    monkeypatch.setattr(trial.clients, "clock", clock)
    return clock


def test_what_came_is_counted_and_deleted(
    trial: SqsTrial,  # noqa: F811 - the fixture
    clock: VirtualClock,
) -> None:
    notices = ObjectNotices(trial.clients, trial.url)
    assert notices() == 0
    trial.write("a", *(b"%d" % number for number in range(25)))
    assert notices() == 0, "it is not asked all the time"
    clock.advance(ASK_SECONDS)
    assert notices() == 25
    assert left(trial) == 0
    clock.advance(ASK_SECONDS)
    assert notices() == 25


def test_a_queue_that_is_not_there_says_nothing(
    trial: SqsTrial,  # noqa: F811 - the fixture
    clock: VirtualClock,
) -> None:
    notices = ObjectNotices(trial.clients, f"{trial.url}-of-nobody")
    assert notices() == 0
    clock.advance(random.Random(1).randrange(100) + ASK_SECONDS)
    assert notices() == 0
