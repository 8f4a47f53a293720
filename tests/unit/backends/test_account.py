"""Answers of Service Quotas that only AWS gives: what any account promises is in
tests/contracts/test_account.py."""

from collections.abc import Iterator

import pytest
from botocore.stub import Stubber

from lakebed.backends.aws.account import AmazonAccount
from lakebed.backends.aws.clients import AmazonClients
from lakebed.errors import UnavailableError
from tests.unit.backends.amazon_clients import made_up_clients

TASKS = {"ServiceCode": "fargate", "QuotaCode": "L-3032A538"}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=1) as made:
        yield made


@pytest.fixture
def quotas(clients: AmazonClients) -> Iterator[Stubber]:
    with Stubber(clients.service_quotas) as stub:
        yield stub
        stub.assert_no_pending_responses()


def test_a_quota_that_was_never_changed_may_have_a_default_only(
    clients: AmazonClients, quotas: Stubber
) -> None:
    quotas.add_client_error("get_service_quota", "NoSuchResourceException", http_status_code=404)
    quotas.add_response("get_aws_default_service_quota", {"Quota": {"Value": 4.0}}, TASKS)
    assert AmazonAccount(clients).quota("fargate", "L-3032A538") == 4.0


def test_a_busy_service_is_asked_a_few_times(clients: AmazonClients, quotas: Stubber) -> None:
    for _ in range(3):
        quotas.add_client_error("get_service_quota", "TooManyRequestsException")
    with pytest.raises(UnavailableError):
        AmazonAccount(clients).quota("fargate", "L-3032A538")
