"""Names what one stack knows of another: physical names, and the ARNs and URLs that follow from
them.

No stack imports what another exports, but for ids of a network and of a stream, which have no
names: so a stack can go, or be left out, whatever its neighbours are (docs/decisions/0048).
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import JobQueueShape


@dataclass(frozen=True, slots=True)
class NamedBucket:
    """A bucket."""

    bucket_name: str


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of DynamoDB."""

    table_name: str

    @property
    def table_arn(self) -> str:
        """Its ARN, in the account and region of who names it."""
        return _arn("dynamodb", f"table/{self.table_name}")


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster of ECS."""

    cluster_name: str

    @property
    def cluster_arn(self) -> str:
        """Its ARN, in the account and region of who names it."""
        return _arn("ecs", f"cluster/{self.cluster_name}")


@dataclass(frozen=True, slots=True)
class NamedQueue:
    """A queue of SQS."""

    queue_name: str

    @property
    def queue_arn(self) -> str:
        """Its ARN, in the account and region of who names it."""
        return _arn("sqs", self.queue_name)

    @property
    def queue_url(self) -> str:
        """Its URL, as SQS makes it of region, account and name."""
        host = f"sqs.{Aws.REGION}.{Aws.URL_SUFFIX}"
        return f"https://{host}/{Aws.ACCOUNT_ID}/{self.queue_name}"


@dataclass(frozen=True, slots=True)
class NamedJobQueue:
    """A queue of jobs and its dead letters.

    kind: of its messages.
    """

    kind: str
    queue: NamedQueue
    dead_letters: NamedQueue


def named_job_queue(deployment: Deployment, shape: JobQueueShape) -> NamedJobQueue:
    """Return the names of a queue of jobs."""
    name = deployment.name(shape.kind)
    return NamedJobQueue(shape.kind, NamedQueue(f"{name}.fifo"), NamedQueue(f"{name}-dead.fifo"))


def _arn(service: str, resource: str) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
