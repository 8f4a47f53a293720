"""Requests to Amazon's services that are lost, refused or never answered: what is said of each."""

from collections.abc import Callable, Iterator

import pytest

from lakebed.backends.aws import Patience
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import ConditionError, Request
from lakebed.backends.aws.service_answers import AMAZON_PARAMETER, AMAZON_TABLE
from lakebed.backends.memory import VirtualClock
from lakebed.config.dynamo_tables import LOG_TABLE
from lakebed.errors import (
    DeniedError,
    InvalidError,
    LakebedError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

PUT = Request(what="putting an item", needs="dynamodb:PutItem", writes=True)
GET = Request(what="reading a parameter", needs="ssm:GetParameter", path="/lakebed/nowhere")
BUSY = Answer(400, "ThrottlingException")
ALWAYS = 1_000


@pytest.fixture
def clients(ministack: S3Server, proxy: FaultyProxy) -> Iterator[AmazonClients]:
    """What waits, waits in virtual time."""
    clients = ministack.clients(url=proxy.url, clock=VirtualClock(), patience=Patience())
    yield clients
    clients.close()


@pytest.fixture
def put(ministack: S3Server, clients: AmazonClients) -> Callable[[int], None]:
    """Put an item under a number, if that is free."""
    table = ministack.new_table(LOG_TABLE)
    requests = clients.requests(AMAZON_TABLE, table)

    def call(number: int) -> None:
        requests.run(
            PUT,
            lambda: clients.dynamodb.put_item(
                TableName=table,
                Item={"pk": {"S": "t"}, "sk": {"N": str(number)}},
                ConditionExpression="attribute_not_exists(pk)",
            ),
        )

    return call


@pytest.mark.parametrize("fault", [LOST, BUSY, Answer(500, "InternalServerError")])
def test_a_write_that_did_not_arrive_is_repeated(
    put: Callable[[int], None], proxy: FaultyProxy, fault: Answer
) -> None:
    proxy.times(2, "POST", fault)
    put(1)
    assert len(proxy.seen) == 3
    with pytest.raises(ConditionError):
        put(1)


def test_a_write_whose_answer_was_lost_meets_its_own_first_try(
    put: Callable[[int], None], proxy: FaultyProxy
) -> None:
    proxy.times(1, "POST", UNANSWERED)
    with pytest.raises(ConditionError):
        put(1)


def test_a_write_that_is_never_answered_has_an_unknown_outcome(
    put: Callable[[int], None], proxy: FaultyProxy
) -> None:
    proxy.rule = lambda _method, _target: LOST if proxy.seen[:-1] else UNANSWERED
    with pytest.raises(UnknownOutcomeError):
        put(1)
    proxy.rule = lambda _method, _target: None
    with pytest.raises(ConditionError):
        put(1)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer(400, "AccessDeniedException"), DeniedError, "dynamodb:PutItem"),
        (Answer(400, "ExpiredTokenException"), DeniedError, "must be valid"),
        (Answer(400, "ResourceNotFoundException"), InvalidError, "no such table"),
        (Answer(400, "ValidationException"), InvalidError, "ValidationException"),
        (BUSY, UnavailableError, "busy"),
    ],
)
def test_what_stays_refused_is_told_with_what_helps(
    put: Callable[[int], None],
    proxy: FaultyProxy,
    answer: Answer,
    kind: type[LakebedError],
    says: str,
) -> None:
    proxy.times(ALWAYS, "POST", answer, "DynamoDB_20120810.PutItem")
    with pytest.raises(kind, match=says) as refusal:
        put(1)
    assert "told by the proxy" not in str(refusal.value)
    assert len(proxy.seen) == (Patience().tries_max if kind is UnavailableError else 1)


def test_what_no_server_answers_was_not_sent(ministack: S3Server) -> None:
    nobody = ministack.clients(url="http://127.0.0.1:9", clock=VirtualClock())
    requests = nobody.requests(AMAZON_TABLE, "log")
    with pytest.raises(UnavailableError, match="AWS_ENDPOINT_URL"):
        requests.run(PUT, lambda: nobody.dynamodb.put_item(TableName="log", Item={}))
    nobody.close()


def test_a_table_and_a_parameter_that_are_not_there(
    ministack: S3Server, clients: AmazonClients
) -> None:
    requests = clients.requests(AMAZON_TABLE, "nowhere")
    item = {"pk": {"S": "t"}, "sk": {"N": "1"}}
    with pytest.raises(InvalidError, match=r"no such table .*table=nowhere"):
        requests.run(PUT, lambda: clients.dynamodb.put_item(TableName="nowhere", Item=item))
    asked = clients.requests(AMAZON_PARAMETER, "/lakebed/nowhere")
    with pytest.raises(ObjectMissingError):
        asked.run(GET, lambda: clients.ssm.get_parameter(Name="/lakebed/nowhere"))


def test_the_store_tells_its_time(clients: AmazonClients) -> None:
    assert clients.store_time.now(age_seconds_max=60) is None
    clients.sts.get_caller_identity()
    assert clients.store_time.now(age_seconds_max=60)
