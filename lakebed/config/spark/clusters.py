"""Settings of an instance for where bulk imports run: EMR Serverless, and clusters of EMR."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lakebed.errors import InvalidError

_TYPE = r"[a-z0-9-]{2,30}\.[a-z0-9-]{2,30}"

LOGS_PREFIX = "spark-logs"
"""Prefix of the clusters' logs in the data bucket: beside the lake."""

TYPES = {
    "arm64": "m7g.2xlarge,m6g.2xlarge,r7g.2xlarge",
    "x86_64": "m7i.2xlarge,m6i.2xlarge,r7i.2xlarge",
}
"""Types of machines, by processor: eight cores, so two executors each."""

BulkImportVcpus = Annotated[
    int,
    Meta(
        ge=8,
        le=4_000,
        description="vCPUs of all bulk imports at one time, on EMR Serverless; they bound the"
        " cost. Each import has 2 for its driver and 4 for each executor.",
    ),
]
SparkClusters = Annotated[
    bool,
    Meta(
        description="Whether bulk imports may have clusters of EMR of their own (`platform` of"
        " their messages). They cost nothing while there is none."
    ),
]
SparkClusterTypes = Annotated[
    str,
    Meta(
        pattern=rf"\A({_TYPE}(,{_TYPE}){{0,4}})?\Z",
        description="Kinds of machines for clusters whose message names none, up to five, with"
        " commas between, of the processor that `architecture` says; tried in this order. None:"
        " three with eight cores.",
    ),
]
SparkClusterUnits = Annotated[
    int,
    Meta(
        ge=1,
        le=1_000,
        description="Machines of one cluster beside its first, at most. They bound the cost.",
    ),
]
SharedCluster = Annotated[
    str,
    Meta(
        pattern=r"\A(j-[A-Z0-9]{1,20})?\Z",
        description="A cluster of EMR that stays, by its id, on which bulk imports may run; its"
        " machines must have the role that `lakebed explain deploy` names. None: there is none.",
    ),
]


def check_spark_clusters(*, clusters: bool, shared: str, addresses: str, vpc_id: str) -> None:
    """Refuse settings of clusters that cannot work.

    Raises:
        InvalidError: a shared cluster without the role of its machines; machines that would reach
            nothing but S3 and DynamoDB.
    """
    if shared and not clusters:
        raise InvalidError(
            "a shared cluster needs the role of clusters",
            setting="shared_cluster",
            hint="deploy with `spark_clusters=true`, too",
        )
    if clusters and addresses == "private" and not vpc_id:
        raise InvalidError(
            "machines of clusters would have no way to EMR",
            setting="spark_clusters",
            hint="leave `task_addresses` out, or name a network of yours with a way out: `vpc_id`",
        )
