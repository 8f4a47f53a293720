"""EMR Serverless as boto3 tells of it: what its answers mean for a run."""

from collections.abc import Iterator

import pytest
from botocore.stub import ANY, Stubber

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.spark.serverless_runs import EmrServerlessRuns, StartableRuns
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunAsked, RunState
from tests.contracts.spark.doubles import APPLICATION, ENVIRONMENT
from tests.unit.backends.amazon_clients import made_up_clients

NOTHING = RunAsked()


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=2) as made:
        yield made


@pytest.fixture
def emr(clients: AmazonClients) -> Iterator[Stubber]:
    with Stubber(clients.spark) as stub:
        yield stub
        stub.assert_no_pending_responses()


def summary(name: str, id_: str, state: str, details: str = "details") -> dict[str, object]:
    """Return a run as a list tells of it."""
    return {
        "applicationId": APPLICATION,
        "id": id_,
        "name": name,
        "arn": f"arn:aws:emr-serverless:eu-central-1:123456789012:/applications/{id_}/{id_}",
        "createdBy": "arn:aws:iam::123456789012:role/start",
        "createdAt": 1,
        "updatedAt": 1,
        "executionRole": ENVIRONMENT.job_role_arn,
        "state": state,
        "stateDetails": details,
        "releaseLabel": "emr-spark-8.0.0",
    }


def refuses(emr: Stubber, code: str, message: str = "", status: int = 400) -> None:
    emr.add_client_error("start_job_run", code, message, status)


def lists(emr: Stubber, *runs: dict[str, object]) -> None:
    asked = {"applicationId": APPLICATION, "maxResults": ANY, "createdAtAfter": ANY}
    emr.add_response("list_job_runs", {"jobRuns": list(runs)}, asked)


def test_a_run_is_started_under_its_name(clients: AmazonClients, emr: Stubber) -> None:
    arn = "arn:aws:emr-serverless:eu-central-1:123456789012:/applications/00application/jobruns/1"
    answer = {"applicationId": APPLICATION, "jobRunId": "1", "arn": arn}
    asked = {
        "applicationId": APPLICATION,
        "clientToken": "n",
        "name": "n",
        "executionRoleArn": ENVIRONMENT.job_role_arn,
        "executionTimeoutMinutes": 720,
        "jobDriver": ANY,
        "tags": {"team": "data"},
    }
    emr.add_response("start_job_run", answer, asked)
    assert StartableRuns(clients, ENVIRONMENT).start("n", NOTHING) == "1"


def test_what_it_finds_invalid_can_never_work(clients: AmazonClients, emr: Stubber) -> None:
    refuses(emr, "ValidationException", "executor cores exceed the maximum capacity")
    with pytest.raises(InvalidError, match="executor cores exceed"):
        StartableRuns(clients, ENVIRONMENT).start("n", NOTHING)


def test_a_name_that_stands_for_a_run_of_an_earlier_deployment_is_that_run(
    clients: AmazonClients, emr: Stubber
) -> None:
    refuses(emr, "ConflictException", "the token is another request's", 409)
    lists(emr, summary("other", "1", "RUNNING"), summary("n", "2", "RUNNING"))
    assert StartableRuns(clients, ENVIRONMENT).start("n", NOTHING) == "2"


def test_a_conflict_without_a_run_is_tried_again(clients: AmazonClients, emr: Stubber) -> None:
    refuses(emr, "ConflictException", "the application is being stopped", 409)
    lists(emr)
    with pytest.raises(UnavailableError):
        StartableRuns(clients, ENVIRONMENT).start("n", NOTHING)


def test_a_broken_service_may_have_started_it(clients: AmazonClients, emr: Stubber) -> None:
    for _ in range(2):
        refuses(emr, "InternalServerException", status=500)
    with pytest.raises(UnavailableError):
        StartableRuns(clients, ENVIRONMENT).start("n", NOTHING)


@pytest.mark.parametrize(
    ("state", "means"),
    [
        ("SUBMITTED", "open"),
        ("QUEUED", "open"),
        ("PENDING", "open"),
        ("SCHEDULED", "open"),
        ("RUNNING", "open"),
        ("CANCELLING", "open"),
        ("SUCCESS", "succeeded"),
        ("FAILED", "failed"),
        ("CANCELLED", "failed"),
    ],
)
def test_states_are_those_of_the_platform(
    clients: AmazonClients, emr: Stubber, state: str, means: RunState
) -> None:
    lists(emr, summary("n", "1", state))
    (run,) = EmrServerlessRuns(clients, APPLICATION).since(Micros(10_000_000))
    assert (run.name, run.id, run.state) == ("n", "1", means)
    assert run.reason == ("" if means == "succeeded" else f"{state}: details")


def test_all_pages_of_a_list_are_read(clients: AmazonClients, emr: Stubber) -> None:
    asked = {"applicationId": APPLICATION, "maxResults": 50, "createdAtAfter": ANY}
    first = {"jobRuns": [summary("a", "1", "RUNNING")], "nextToken": "more"}
    emr.add_response("list_job_runs", first, asked)
    second = {"jobRuns": [summary("b", "2", "SUCCESS")]}
    emr.add_response("list_job_runs", second, {**asked, "nextToken": "more"})
    runs = EmrServerlessRuns(clients, APPLICATION).since(Micros(0))
    assert [run.name for run in runs] == ["a", "b"]
