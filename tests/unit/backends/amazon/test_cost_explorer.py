"""What Amazon's Cost Explorer is asked, and what its answers mean: a stub answers as it does."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.costs.cost_explorer import CostExplorerBills
from lakebed.costs.spent import CostReport, PerBillion, SpentLine, compared
from lakebed.errors import DeniedError, UnavailableError
from tests.unit.backends.amazon_clients import made_up_clients

SINCE, UNTIL = datetime.date(2026, 10, 28), datetime.date(2026, 11, 28)
ASKED: dict[str, Any] = {
    "TimePeriod": {"Start": "2026-10-28", "End": "2026-11-28"},
    "Granularity": "MONTHLY",
    "Metrics": ["UnblendedCost"],
    "Filter": {"Tags": {"Key": "lakebed:instance", "Values": ["dev"]}},
    "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}],
}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=2) as made:
        yield made


@pytest.fixture
def stub(clients: AmazonClients) -> Iterator[Stubber]:
    with Stubber(clients.cost_explorer) as stub:
        yield stub
        stub.assert_no_pending_responses()


def billed(clients: AmazonClients) -> dict[str, float]:
    return CostExplorerBills(clients, "dev").by_service(SINCE, UNTIL)


def month(**services: str) -> dict[str, Any]:
    return {
        "TimePeriod": {"Start": "2026-10-28", "End": "2026-11-01"},
        "Groups": [
            {"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": amount, "Unit": "USD"}}}
            for name, amount in services.items()
        ],
        "Estimated": True,
    }


def answer(*months: dict[str, Any], token: str | None = None) -> dict[str, Any]:
    return {"ResultsByTime": list(months)} | ({"NextPageToken": token} if token else {})


def test_months_and_pages_are_summed_by_service(clients: AmazonClients, stub: Stubber) -> None:
    s3, dynamodb = "Amazon Simple Storage Service", "Amazon DynamoDB"
    pages = [month(**{s3: "1.5", dynamodb: "0.25"}), month(**{s3: "2.5", "New Service": "9"})]
    stub.add_response("get_cost_and_usage", answer(*pages, token="more"), ASKED)
    more = answer(month(**{dynamodb: "0.0000000001"}))
    stub.add_response("get_cost_and_usage", more, ASKED | {"NextPageToken": "more"})
    assert billed(clients) == {"S3": 4, "DynamoDB": 0.2500000001, "New Service": 9}


def test_an_instance_that_was_not_billed_has_no_services(
    clients: AmazonClients, stub: Stubber
) -> None:
    stub.add_response("get_cost_and_usage", answer(month()), ASKED)
    assert billed(clients) == {}


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("AccessDeniedException", 400, DeniedError), ("ThrottlingException", 400, UnavailableError)],
)
def test_refusals_say_what_to_do(
    clients: AmazonClients, stub: Stubber, code: str, status: int, error: type[Exception]
) -> None:
    tries = 1 if error is DeniedError else 2
    for _ in range(tries):
        stub.add_client_error("get_cost_and_usage", code, "no", status)
    with pytest.raises(error) as found:
        billed(clients)
    if error is DeniedError:
        assert "ce:GetCostAndUsage" in str(found.value)


def test_what_was_counted_stands_beside_what_was_billed() -> None:
    report = CostReport(
        region="us-east-1",
        prices_of="2026-11-01",
        days=30,
        by="service",
        dollars=3,
        lines=[SpentLine(name="S3", dollars=2), SpentLine(name="SQS", dollars=1)],
        per_billion_rows=PerBillion(taken_in=None, merged=None, read=None),
        write_amplification=None,
    )
    found = compared(report, {"S3": 2.5, "CloudWatch": 7})
    lines = [(one.service, one.counted, one.billed, one.difference) for one in found]
    assert lines == [("CloudWatch", 0, 7, 7), ("S3", 2, 2.5, 0.5), ("SQS", 1, 0, -1)]
