"""What exceptions of boto3 mean: of answers as the services write them, through boto3's parser."""

import json
import random
from collections.abc import Callable, Iterator

import boto3
import botocore.exceptions as boto
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from lakebed.backends.aws.answers import Meaning, RequestFailure
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import ConditionError, Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_PARAMETER, AMAZON_TABLE, answer_of
from lakebed.backends.memory import VirtualClock
from lakebed.errors import (
    DeniedError,
    InvalidError,
    LakebedError,
    UnavailableError,
    UnknownOutcomeError,
)

KEY_ID = "AKIA" + "EXAMPLE"
LACKS = (
    f"User: arn:aws:sts::123456789012:assumed-role/{KEY_ID} is not authorized to perform: "
    "dynamodb:GetItem on resource: arn:aws:dynamodb:us-east-1:123456789012:table/t"
)
Tell = Callable[..., AWSResponse]


class Body:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.content


def told(status: int, code: str = "", message: str = "told", **fields: object) -> AWSResponse:
    """An answer of a service that speaks JSON."""
    content = json.dumps({"__type": code, "message": message, **fields} if code else {}).encode()
    headers = {"date": "Sat, 21 Nov 2026 16:10:27 GMT"}
    return AWSResponse("http://store", status, headers, Body(content))


def cancelled(*codes: str) -> AWSResponse:
    reasons = [{"Code": code} for code in codes]
    return told(400, "TransactionCanceledException", CancellationReasons=reasons)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="module")
def session() -> boto3.Session:
    """It keeps the services' models, which take long to read."""
    return boto3.Session()


@pytest.fixture
def clients(clock: VirtualClock, session: boto3.Session) -> AmazonClients:
    made = AmazonClients(
        clock=clock,
        rng=random.Random(1),
        region_name="us-east-1",
        aws_access_key_id=KEY_ID,
        aws_secret_access_key="secret",
    )
    made._session = session
    return made


def script(clients: AmazonClients, *answers: AWSResponse | Exception) -> list[str]:
    """Let requests to DynamoDB be answered so, the last for ever. Returns what was asked."""
    asked: list[str] = []

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(request.headers["X-Amz-Target"].decode())
        if isinstance(answer, Exception):
            raise answer
        return answer

    clients.dynamodb.meta.events.register("before-send", send)
    return asked


def put(clients: AmazonClients) -> object:
    return clients.dynamodb.put_item(TableName="log", Item={"pk": {"S": "a"}})


PUT = Request(what="putting an item", needs="dynamodb:PutItem", writes=True)
ANSWERS: list[tuple[AWSResponse, Meaning]] = [
    (told(400, "ConditionalCheckFailedException"), Meaning.UNMET),
    (told(400, "ProvisionedThroughputExceededException"), Meaning.REFUSED),
    (told(400, "ThrottlingException"), Meaning.REFUSED),
    (told(400, "RequestLimitExceeded"), Meaning.REFUSED),
    (told(400, "com.amazonaws.dynamodb.v20120810#TransactionConflictException"), Meaning.REFUSED),
    (told(400, "TransactionInProgressException"), Meaning.REFUSED),
    (told(429), Meaning.REFUSED),
    (told(400, "AccessDeniedException"), Meaning.DENIED),
    (told(400, "ExpiredTokenException"), Meaning.DENIED),
    (told(403), Meaning.DENIED),
    (told(400, "ResourceNotFoundException"), Meaning.NO_RESOURCE),
    (told(400, "AWS.SimpleQueueService.NonExistentQueue"), Meaning.NO_RESOURCE),
    (told(400, "ParameterNotFound"), Meaning.MISSING),
    (told(400, "ValidationException"), Meaning.INVALID),
    (told(301), Meaning.INVALID),
    (told(500, "InternalServerError"), Meaning.UNANSWERED),
    (told(500), Meaning.UNANSWERED),
    (told(502), Meaning.UNANSWERED),
    (told(503, "ServiceUnavailable"), Meaning.UNANSWERED),
    (told(503, "ThrottlingException"), Meaning.REFUSED),
    (cancelled("None", "ConditionalCheckFailed"), Meaning.UNMET),
    (cancelled("TransactionConflict", "None"), Meaning.REFUSED),
    (cancelled("ThrottlingError", "TransactionConflict"), Meaning.REFUSED),
    (cancelled("TransactionConflict", "ConditionalCheckFailed"), Meaning.UNMET),
    (cancelled("ValidationError", "None"), Meaning.INVALID),
    (cancelled(), Meaning.INVALID),
]
FAILURES: list[tuple[Exception, Meaning]] = [
    (boto.EndpointConnectionError(endpoint_url="x"), Meaning.UNREACHABLE),
    (boto.ConnectTimeoutError(endpoint_url="x"), Meaning.UNREACHABLE),
    (boto.ReadTimeoutError(endpoint_url="x"), Meaning.UNANSWERED),
    (boto.ConnectionClosedError(endpoint_url="x"), Meaning.UNANSWERED),
    (boto.SSLError(endpoint_url="x", error="x"), Meaning.UNANSWERED),
    (boto.NoCredentialsError(), Meaning.NO_CREDENTIALS),
    (boto.ParamValidationError(report="x"), Meaning.INVALID),
]


def name_of(value: object) -> str:
    """Return a test's name for a value: the same in every process."""
    return f"status {value.status_code}" if isinstance(value, AWSResponse) else str(value)


@pytest.mark.parametrize(("answer", "meaning"), ANSWERS, ids=name_of)
def test_an_answer_is_understood_or_counts_as_none(
    clients: AmazonClients, answer: AWSResponse, meaning: Meaning
) -> None:
    asked = script(clients, answer)
    with pytest.raises(boto.ClientError) as error:
        put(clients)
    assert answer_of(error.value).meaning is meaning
    assert len(asked) == 1, "boto3 repeats nothing by itself"


@pytest.mark.parametrize(("failure", "meaning"), FAILURES, ids=name_of)
def test_a_failure_on_the_way_is_understood_or_counts_as_no_answer(
    clients: AmazonClients, failure: Exception, meaning: Meaning
) -> None:
    asked = script(clients, failure)
    with pytest.raises(boto.BotoCoreError) as error:
        put(clients)
    assert answer_of(error.value) == RequestFailure(meaning, type(failure).__name__)
    assert len(asked) == 1


def test_what_is_no_json_counts_as_no_answer(clients: AmazonClients) -> None:
    script(clients, AWSResponse("http://store", 500, {}, Body(b"<html>a proxy's own words")))
    with pytest.raises(UnknownOutcomeError):
        clients.requests(AMAZON_TABLE, "log").run(PUT, lambda: put(clients))


def test_a_lost_answer_makes_every_later_refusal_doubtful(clients: AmazonClients) -> None:
    lost = boto.ReadTimeoutError(endpoint_url="x")
    for last in (told(400, "ThrottlingException"), told(400, "AccessDeniedException")):
        script(clients, lost, last)
        with pytest.raises(UnknownOutcomeError):
            clients.requests(AMAZON_TABLE, "log").run(PUT, lambda: put(clients))
        clients.close()


def test_an_unmet_condition_may_be_an_own_earlier_try(clients: AmazonClients) -> None:
    lost = boto.ReadTimeoutError(endpoint_url="x")
    script(clients, lost, told(400, "ConditionalCheckFailedException"))
    with pytest.raises(ConditionError):
        clients.requests(AMAZON_TABLE, "log").run(PUT, lambda: put(clients))


def test_who_wants_to_look_first_hears_of_a_lost_answer_at_once(clients: AmazonClients) -> None:
    asked = script(clients, boto.ReadTimeoutError(endpoint_url="x"))
    once = Request(what="appending", needs="dynamodb:PutItem", writes=True, once=True)
    with pytest.raises(UnknownOutcomeError):
        clients.requests(AMAZON_TABLE, "log").run(once, lambda: put(clients))
    assert len(asked) == 1


def test_throttling_for_minutes_is_a_bounded_wait(
    clients: AmazonClients, clock: VirtualClock
) -> None:
    script(clients, told(400, "ThrottlingException"))
    patience = Patience(tries_max=1_000, seconds_max=60.0)
    begun = clock.monotonic()
    with pytest.raises(UnavailableError, match="ThrottlingException"):
        clients.requests(AMAZON_TABLE, "log", patience=patience).run(PUT, lambda: put(clients))
    assert 50 < clock.monotonic() - begun <= 60


def test_throttling_for_a_while_only_costs_time(clients: AmazonClients) -> None:
    busy = told(400, "ProvisionedThroughputExceededException")
    asked = script(clients, busy, busy, cancelled("TransactionConflict"), told(200))
    clients.requests(AMAZON_TABLE, "log").run(PUT, lambda: put(clients))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (told(400, "AccessDeniedException", LACKS), DeniedError, "dynamodb:GetItem"),
        (told(400, "AccessDeniedException"), DeniedError, "dynamodb:PutItem"),
        (told(400, "ResourceNotFoundException"), InvalidError, "no such table .*table=log"),
        (told(400, "ValidationException"), InvalidError, "ValidationException"),
        (boto.NoCredentialsError(), UnavailableError, "AWS_ACCESS_KEY_ID"),
    ],
    ids=name_of,
)
def test_what_cannot_work_is_not_repeated_and_says_why(
    clients: AmazonClients, answer: AWSResponse, kind: type[LakebedError], says: str
) -> None:
    asked = script(clients, answer)
    with pytest.raises(kind, match=says) as refusal:
        clients.requests(AMAZON_TABLE, "log").run(PUT, lambda: put(clients))
    assert len(asked) == 1
    assert KEY_ID not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


def test_the_stores_time_goes_on_between_answers_and_is_not_trusted_for_long(
    clients: AmazonClients, clock: VirtualClock
) -> None:
    script(clients, told(200), told(400, "ThrottlingException"))
    assert clients.store_time.now(age_seconds_max=60) is None
    put(clients)
    first = clients.store_time.now(age_seconds_max=60)
    assert first == 1_795_277_427_000_000
    clock.advance(60)
    assert clients.store_time.now(age_seconds_max=60) == first + 60_000_000
    assert clients.store_time.now(age_seconds_max=59) is None
    with pytest.raises(boto.ClientError):
        put(clients)
    assert clients.store_time.now(age_seconds_max=1) == first, "errors tell the time too"


@pytest.mark.parametrize("date", [None, "", "yesterday", "0"])
def test_an_answer_without_a_time_is_passed_over(clients: AmazonClients, date: str | None) -> None:
    clients.store_time.note(date)
    assert clients.store_time.now(age_seconds_max=60) is None


def test_a_region_that_nobody_names_is_asked_for(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    nowhere = AmazonClients(clock=clock, rng=random.Random(1))
    with pytest.raises(InvalidError, match="AWS_REGION"):
        nowhere.dynamodb  # noqa: B018 - it is made when first used
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    somewhere = AmazonClients(clock=clock, rng=random.Random(1))
    assert somewhere.dynamodb.meta.region_name == "eu-west-1"


def test_each_service_is_asked_through_one_client(clients: AmazonClients) -> None:
    assert clients.sqs is clients.sqs
    assert clients.sqs.meta.config.read_timeout > 20, "it waits for long polls"
    services = (clients.dynamodb, clients.ssm, clients.sts)
    assert all(client.meta.config.retries["total_max_attempts"] == 1 for client in services)
    assert clients.requests(AMAZON_PARAMETER, "/x") is not None
