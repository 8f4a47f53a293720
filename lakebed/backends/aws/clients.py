"""Clients of Amazon's services, made when first used, and what they learn of the stores' time."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from obstore.auth.boto3 import Boto3CredentialProvider

from lakebed.backends.aws.answers import Language
from lakebed.backends.aws.at_once import AtOnce
from lakebed.backends.aws.costs.counted_requests import count_requests
from lakebed.backends.aws.encoded_requests import EncodedRequests
from lakebed.backends.aws.requests import Patience, Requests
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Clock

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient
    from types_boto3_ssm import SSMClient
    from types_boto3_sts import STSClient

CONNECT_SECONDS, ANSWER_SECONDS, LONG_POLL_SECONDS = 5, 10, 30
"""Seconds to wait for a connection, for an answer, and for one to a long poll of 20 s."""

LARGE_SECONDS = 120
"""Seconds to wait for an answer that S3 puts large objects together for."""

CONNECTIONS_MAX = 64

USER_AGENT = f"lakebed Boto3/{boto3.__version__}"
"""The client's name in each request. botocore would put its own together twice for each request, a
sixth of its time."""

CREDENTIALS_KEPT = timedelta(minutes=5)
"""boto3 renews them ten minutes before they end."""

Client = Any
"""One of boto3's: their classes are made at run time."""


class StoreTime:
    """The stores' own clock, from the HTTP `Date` of their answers; between them time goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: tuple[Micros, float] | None = None

    def note(self, date: str | None) -> None:
        """Remember the `Date` of an answer that came just now."""
        try:
            seconds = parsedate_to_datetime(date or "").timestamp()
        except ValueError:  # a server that sends no time
            return
        self._last = Micros(int(seconds) * MICROS_PER_SECOND), self._clock.monotonic()

    def now(self, *, age_seconds_max: float) -> Micros | None:
        """Return the store's time; None when no answer was that new."""
        if self._last is None:
            return None
        at, noted = self._last
        passed = self._clock.monotonic() - noted
        if passed > age_seconds_max:
            return None
        return Micros(at + int(passed * MICROS_PER_SECOND))


class AmazonClients:
    """Clients of one account and region. They send each request once: `Requests` repeats it.

    Region, endpoint and credentials come from the variables AWS_..., `~/.aws` or the machine's
    role, as boto3 finds them; AWS_REGION, which it does not know, goes first. config: what to take
    instead; names of `boto3.Session.client`. Safe to share among threads.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        patience: Patience | None = None,
        **config: str,
    ) -> None:
        self.clock = clock
        self.store_time = StoreTime(clock)
        self.at_once = AtOnce()
        self.encoded = EncodedRequests()
        self._rng = rng
        self._patience = patience or Patience()
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._config = {"region_name": region, **config} if region else config
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, bool], Client] = {}
        self._session: boto3.Session | None = None

    def requests(
        self, language: Language, resource: str, *, patience: Patience | None = None
    ) -> Requests:
        """Return what repeats requests to a table, queue or parameter, and reports how they
        ended."""
        return Requests(
            language,
            resource,
            clock=self.clock,
            rng=self._rng,
            patience=patience or self._patience,
        )

    @property
    def dynamodb(self) -> DynamoDBClient:
        """Return the client of DynamoDB."""
        client: DynamoDBClient = self._client("dynamodb")
        return client

    @property
    def sqs(self) -> SQSClient:
        """Return the client of SQS. It waits long enough for long polls."""
        client: SQSClient = self._client("sqs", answer_seconds=LONG_POLL_SECONDS)
        return client

    @property
    def ssm(self) -> SSMClient:
        """Return the client of SSM's parameters."""
        client: SSMClient = self._client("ssm")
        return client

    @property
    def s3(self) -> S3Client:
        """Return the client of S3, for what obstore cannot say: versions of objects."""
        client: S3Client = self._client("s3")
        return client

    @property
    def large_objects(self) -> S3Client:
        """Return the client of S3 that uploads large objects. It addresses buckets as obstore does,
        and leaves bytes out of signatures: their checksum is signed, and they go by TLS."""
        s3 = {"addressing_style": "path", "payload_signing_enabled": False}
        client: S3Client = self._client("s3", answer_seconds=LARGE_SECONDS, s3=s3)
        return client

    @property
    def ec2(self) -> Client:
        """Return the client of EC2."""
        return self._client("ec2")

    @property
    def stacks(self) -> Client:
        """Return the client of CloudFormation."""
        return self._client("cloudformation")

    @property
    def ecs(self) -> Client:
        """Return the client of ECS."""
        return self._client("ecs")

    @property
    def spark(self) -> Client:
        """Return the client of EMR Serverless, which runs Spark."""
        return self._client("emr-serverless")

    @property
    def emr(self) -> Client:
        """Return the client of EMR, whose clusters run Spark."""
        return self._client("emr")

    @property
    def functions(self) -> Client:
        """Return the client of Lambda."""
        return self._client("lambda")

    @property
    def events(self) -> Client:
        """Return the client of EventBridge."""
        return self._client("events")

    @property
    def secrets(self) -> Client:
        """Return the client of Secrets Manager."""
        return self._client("secretsmanager")

    @property
    def glue(self) -> Client:
        """Return the client of Glue, for its registry of schemas."""
        return self._client("glue")

    @property
    def service_quotas(self) -> Client:
        """Return the client of Service Quotas: what an account may use at one time."""
        return self._client("service-quotas")

    @property
    def schedules(self) -> Client:
        """Return the client of EventBridge: the rules by which schedules go off."""
        return self._client("events")

    @property
    def alarms(self) -> Client:
        """Return the client of CloudWatch, for its alarms."""
        return self._client("cloudwatch")

    @property
    def topics(self) -> Client:
        """Return the client of SNS."""
        return self._client("sns")

    @property
    def keys(self) -> Client:
        """Return the client of KMS."""
        return self._client("kms")

    @property
    def images(self) -> Client:
        """Return the client of ECR, which keeps images."""
        return self._client("ecr")

    @property
    def cost_explorer(self) -> Client:
        """Return the client of Cost Explorer: what an account is billed for."""
        return self._client("ce")

    @property
    def sts(self) -> STSClient:
        """Return the client of STS, which says who we are."""
        client: STSClient = self._client("sts")
        return client

    @property
    def region(self) -> str:
        """Return the region that requests go to."""
        region: str = self._config.get("region_name") or self.ssm.meta.region_name
        return region

    def credentials_for_objects(self) -> Boto3CredentialProvider:
        """Return what gives obstore the credentials that these clients have, and new ones in
        time."""
        if self._session is None:
            self._session = _new_session()
        return Boto3CredentialProvider(self._session, ttl=CREDENTIALS_KEPT)

    def close(self) -> None:
        """Close connections; the next use opens them again."""
        self.at_once.close()
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _client(
        self,
        service: str,
        *,
        answer_seconds: int = ANSWER_SECONDS,
        s3: Mapping[str, object] | None = None,
    ) -> Client:
        """Return the client of a service that waits so long. s3: botocore's options for S3, whose
        client with options is another than the one without."""
        key = service, s3 is not None
        client = self._clients.get(key)
        if client is not None:
            return client
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._made(service, answer_seconds, s3)
            return self._clients[key]

    def _made(self, service: str, answer_seconds: int, s3: Mapping[str, object] | None) -> Client:
        """Return a new client. Raises: InvalidError for no region, a profile that is not there."""
        more: Any = {"s3": dict(s3)} if s3 else {}
        config = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=answer_seconds,
            max_pool_connections=CONNECTIONS_MAX,
            tcp_keepalive=True,
            user_agent=USER_AGENT,
            parameter_validation=False,  # a third of a call's own time; the services check, too
            **more,
        )
        try:
            if self._session is None:
                self._session = _new_session()
            make: Any = self._session.client
            client = make(service, config=config, **self._config)
        except (BotoCoreError, ValueError) as error:
            hint = "set AWS_REGION; see the variables AWS_... and `~/.aws/config`"
            why = type(error).__name__
            raise InvalidError("cannot reach AWS", service=service, why=why, hint=hint) from None
        client.meta.events.register("after-call", self._note_time)
        count_requests(client)
        if service == "dynamodb":
            self.encoded.join(client)
        return client

    def _note_time(self, http_response: AWSResponse | None = None, **_: object) -> None:
        if http_response is not None:
            self.store_time.note(http_response.headers.get("date"))


def _new_session() -> boto3.Session:
    """Return a session; not boto3's default one, which all of the process shares."""
    return boto3.Session(botocore_session=botocore.session.Session())
