"""How many workers feeds want, and which of those that live are needed."""

import pytest

from lakebed.feeds.lifecycle import Action
from lakebed.feeds.pacing.wanted_workers import WorkerBounds, is_needed, wanted_workers
from lakebed.model.feeds.definitions import DefinitionKind, FeedFailure
from lakebed.ports.leases import WorkerId
from tests.unit.feeds.definition_stories import ORDERS, Definitions

SEVERAL = ORDERS.replace('extends = "Strict"', 'extends = "Strict"\nworkers_min = 3')


def fail(definitions: Definitions, kind: DefinitionKind, name: str) -> None:
    known = definitions.known
    version = known.connection(name).version if kind == "connection" else known.feed(name).version
    definitions.true.note_failure(kind, name, FeedFailure("denied", "refused", version))


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [([], 0), (["start"], 1), (["start", "suspend"], 0), (["start", "stop"], 0)],
)
def test_only_a_feed_that_was_started_wants_workers(actions: list[Action], wanted: int) -> None:
    definitions = Definitions()
    assert wanted_workers(definitions.known).least == 0
    definitions.apply()
    for action in actions:
        definitions.lifecycle.run(action, "orders")
    assert wanted_workers(definitions.known).least == wanted


def test_the_greatest_number_that_a_policy_at_work_asks_for_is_wanted() -> None:
    definitions = Definitions()
    definitions.apply(SEVERAL)
    definitions.lifecycle.run("start", "orders")
    assert wanted_workers(definitions.known).least == 3
    fail(definitions, "connection", "eu")
    assert wanted_workers(definitions.known).least == 1
    fail(definitions, "connection", "us")
    assert wanted_workers(definitions.known).least == 0, "nothing is left that a worker would run"
    definitions.lifecycle.run("start", "orders")
    assert wanted_workers(definitions.known).least == 3


@pytest.mark.parametrize(
    ("said", "bounds"),
    [
        ("workers_min = 2\nworkers_max = 6", WorkerBounds(2, 0)),
        ('on_lag = "elastic"\nworkers_max = 6', WorkerBounds(1, 6)),
        ('on_congestion = ["elastic"]\nworkers_min = 2\nworkers_max = 6', WorkerBounds(2, 6)),
    ],
)
def test_more_than_the_least_is_wanted_of_elastic_policies_alone(
    said: str, bounds: WorkerBounds
) -> None:
    definitions = Definitions()
    definitions.apply(ORDERS.replace('extends = "Strict"', f'extends = "Strict"\n{said}'))
    assert wanted_workers(definitions.known) == WorkerBounds()
    definitions.lifecycle.run("start", "orders")
    assert wanted_workers(definitions.known) == bounds
    fail(definitions, "connection", "eu")
    assert wanted_workers(definitions.known) == WorkerBounds(1, 0)


def test_of_more_workers_than_are_wanted_all_agree_which_of_them_are_needed() -> None:
    living = [WorkerId(name) for name in ("task-c", "task-a", "task-d", "task-b")]
    needed = {worker for worker in living if is_needed(worker, living, 2)}
    assert needed == {"task-a", "task-b"}
    assert not [worker for worker in living if is_needed(worker, living, 0)]


def test_a_worker_that_sees_none_yet_is_needed_where_one_is_wanted() -> None:
    assert is_needed(WorkerId("task-z"), [], 1)
