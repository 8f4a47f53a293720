"""What every platform that runs Spark promises: EMR Serverless, clusters for one run, a shared one,
and the stand-in of tests."""

from collections.abc import Callable, Iterator

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.errors import UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunAsked, SparkRun, SparkRuns
from tests.contracts.spark.doubles import EmrDouble, ServerlessDouble
from tests.dsl.spark_platform import SparkPlatform
from tests.unit.backends.amazon_clients import made_up_clients

NAME, OTHER = "a" * 32, "b" * 32
Double = SparkPlatform | EmrDouble | ServerlessDouble
DOUBLES: dict[str, Callable[[AmazonClients], Double]] = {
    "stand-in": lambda _: SparkPlatform(),
    "serverless": ServerlessDouble,
    "cluster": lambda clients: EmrDouble(clients, shared=False),
    "shared": lambda clients: EmrDouble(clients, shared=True),
}


@pytest.fixture(params=DOUBLES)
def double(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    with made_up_clients(monkeypatch, tries_max=2) as clients:
        yield DOUBLES[request.param](clients)


def only(runs: SparkRuns, name: str = NAME) -> SparkRun:
    (run,) = [run for run in runs.since(Micros(0)) if run.name == name]
    return run


def test_a_run_is_open_until_it_ends_and_has_its_id(double: Double) -> None:
    id_ = double.runs.start(NAME, RunAsked())
    assert only(double.runs).id == id_
    assert only(double.runs).state == "open"
    double.begin()
    assert only(double.runs).state == "open"
    double.succeed()
    assert (only(double.runs).state, only(double.runs).reason) == ("succeeded", "")


def test_a_run_that_failed_says_why(double: Double) -> None:
    double.runs.start(NAME, RunAsked())
    double.begin()
    double.fail("the driver ended with exit code 1")
    assert only(double.runs).state == "failed"
    assert "exit code 1" in only(double.runs).reason


def test_a_name_stands_for_one_run_though_it_is_started_again(double: Double) -> None:
    first = double.runs.start(NAME, RunAsked())
    assert double.runs.start(NAME, RunAsked()) == first
    other = double.runs.start(OTHER, RunAsked())
    assert other != first
    assert {run.name for run in double.runs.since(Micros(0))} == {NAME, OTHER}
    double.begin()
    double.succeed()
    assert double.runs.start(OTHER, RunAsked()) == other  # it is over, and is not begun again


def test_a_run_whose_answer_was_lost_is_found_and_not_started_twice(double: Double) -> None:
    double.loses_answers = True
    with pytest.raises(UnavailableError):
        double.runs.start(NAME, RunAsked())
    double.loses_answers = False
    id_ = double.runs.start(NAME, RunAsked())
    assert only(double.runs).id == id_
    assert double.started() == 1


def test_a_run_that_was_never_started_is_not_listed(double: Double) -> None:
    double.runs.start(NAME, RunAsked())
    assert [run for run in double.runs.since(Micros(0)) if run.name == OTHER] == []
