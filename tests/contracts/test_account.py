"""What an account is asked, in memory and as AWS answers: botocore checks requests and answers
against the models of the services."""

from collections.abc import Iterator

import pytest
from botocore.stub import Stubber

from lakebed.backends.aws.account import AmazonAccount
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.memory.account import MemoryAccount
from lakebed.errors import DeniedError
from lakebed.ports.account import Account
from tests.unit.backends.amazon_clients import made_up_clients

TASKS = ("fargate", "L-3032A538")


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=1) as made:
        yield made


@pytest.fixture(params=["memory", "aws"])
def account(request: pytest.FixtureRequest, clients: AmazonClients) -> Iterator[Account]:
    """One that has 6 vCPUs for tasks, 900 runs that are not reserved, and 2 networks."""
    if request.param == "memory":
        yield MemoryAccount({TASKS: 6.0}, function_runs=900, networks=2)
        return
    limits = {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 900}
    vpcs = [{"VpcId": "vpc-1"}, {"VpcId": "vpc-2"}]
    quotas, functions, ec2 = map(Stubber, (clients.service_quotas, clients.functions, clients.ec2))
    asked = {"ServiceCode": TASKS[0], "QuotaCode": TASKS[1]}
    quotas.add_response("get_service_quota", {"Quota": {"Value": 6.0}}, asked)
    for name in ("get_service_quota", "get_aws_default_service_quota"):
        quotas.add_client_error(name, "NoSuchResourceException", http_status_code=404)
    functions.add_response("get_account_settings", {"AccountLimit": limits}, {})
    ec2.add_response("describe_vpcs", {"Vpcs": vpcs}, {"MaxResults": 1_000})
    with quotas, functions, ec2:
        yield AmazonAccount(clients)


def test_what_the_account_has_is_read(account: Account) -> None:
    assert account.quota(*TASKS) == 6.0
    assert account.quota("fargate", "L-00000000") is None
    assert account.function_runs() == 900
    assert account.networks() == 2


def refuses(permission: str) -> None:
    raise DeniedError("refused", hint=None, permission=permission)


@pytest.fixture(params=["memory", "aws"])
def closed(request: pytest.FixtureRequest, clients: AmazonClients) -> Iterator[Account]:
    """One whose credentials permit nothing."""
    if request.param == "memory":
        yield MemoryAccount({TASKS: 6.0}, refuses=refuses)
        return
    quotas, functions, ec2 = map(Stubber, (clients.service_quotas, clients.functions, clients.ec2))
    quotas.add_client_error("get_service_quota", "AccessDeniedException", http_status_code=400)
    functions.add_client_error("get_account_settings", "AccessDeniedException")
    ec2.add_client_error("describe_vpcs", "UnauthorizedOperation", http_status_code=403)
    with quotas, functions, ec2:
        yield AmazonAccount(clients)


def test_a_refusal_names_the_permission_that_lacks(closed: Account) -> None:
    with pytest.raises(DeniedError) as refused:
        closed.quota(*TASKS)
    assert refused.value.facts["permission"] == "servicequotas:GetServiceQuota"
    with pytest.raises(DeniedError) as refused:
        closed.function_runs()
    assert refused.value.facts["permission"] == "lambda:GetAccountSettings"
    with pytest.raises(DeniedError) as refused:
        closed.networks()
    assert refused.value.facts["permission"] == "ec2:DescribeVpcs"
