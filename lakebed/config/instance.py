"""What an instance is called, how it is set, and what its deployment made.

An instance is one deployment in an AWS account; several live side by side. The stacks write what
they made as JSON into one parameter, `/lakebed/INSTANCE`; `lakebed.connect("aws:INSTANCE")` reads
that parameter and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, NewType

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lakebed.config.alarm_settings import AlarmMail, AlarmTopic, check_alarms
from lakebed.config.fargate import DISK_GIB_MAX, DISK_GIB_MIN, SPOT, Capacity, check_task_size
from lakebed.config.feed_access import (
    FeedPorts,
    FeedPush,
    FeedQueues,
    FeedSchemas,
    FeedSecrets,
    FeedTake,
    FeedWorkersMax,
    check_feed_access,
    named_in,
)
from lakebed.config.functions import DISK_MIB_MIN, FUNCTION_RUNS_MIN, FunctionDisk, FunctionRuns
from lakebed.config.networks import ZONE, check_network
from lakebed.config.packages import DeployedPackage, Packages
from lakebed.config.regions import check_arns
from lakebed.config.settings import changed
from lakebed.errors import CorruptError, InvalidError, NewerFormatError

InstanceId = NewType("InstanceId", str)

INSTANCE_ID_CHARACTERS_MAX = 16
"""A bucket's name has at most 63 characters: `lakebed-`, the instance, `-results-`, an account of
12 digits, `-` and a region of at most 14 leave 19."""
_INSTANCE_ID = re.compile(rf"(?=.{{1,{INSTANCE_ID_CHARACTERS_MAX}}}\Z)[a-z][a-z0-9]*(-[a-z0-9]+)*")

RESOURCES_FORMAT = 1
OBJECTS_PREFIX = "lake"
"""Of all objects of the lake in the data bucket; what is beside it is not the lake's."""
IMPORTS_PREFIX = "bulk-import"
"""Of objects that name bulk imports which were sent to a platform: beside the lake."""


def instance_id(id_: object) -> InstanceId:
    """Return the name of an instance.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not isinstance(id_, str) or not _INSTANCE_ID.fullmatch(id_):
        raise InvalidError(
            "not a name of an instance",
            instance=ascii(id_)[:80],
            hint=f"use 1 to {INSTANCE_ID_CHARACTERS_MAX} of a-z, 0-9 and single '-', beginning"
            " with a letter, not ending with '-'",
        )
    return InstanceId(id_)


Architecture = Literal["arm64", "x86_64", "machine"]

TASKS_MAX = 200
"""Of one kind at a time. An account's own quota may be lower."""

_SOURCE = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=/-]*)?"
_SUBNET = r"subnet-[0-9a-f]{8,17}"
_REGION = r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}"


class InstanceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one instance, given when it is deployed."""

    data_kept: Annotated[
        bool,
        Meta(
            description="Whether `cdk destroy` leaves bucket and tables as they are. `false`: they"
            " go with the stack, the bucket only when it is empty."
        ),
    ] = True
    deleted_days: Annotated[
        int,
        Meta(
            ge=1,
            le=365,
            description="Days in which a deleted object can still be brought back. More: garbage"
            " is paid for longer (`lakebed explain cost`).",
        ),
    ] = 1
    results_days: Annotated[
        int,
        Meta(
            ge=1,
            le=365,
            description="Days for which stored results of queries are kept. More: they can be"
            " fetched later, and are paid for longer.",
        ),
    ] = 7
    architecture: Annotated[
        Architecture,
        Meta(
            description="Processor of functions and tasks. `machine`: that of the machine that"
            " synthesizes, with its Python, for instances that run on it."
        ),
    ] = "arm64"
    paused: Annotated[
        bool,
        Meta(
            description="Whether schedules and functions rest: nothing is split, compacted or"
            " collected, no task is started, and what is queued waits, until `false` is deployed"
            " again."
        ),
    ] = False
    key_arn: Annotated[
        str,
        Meta(
            pattern=rf"\A(arn:aws[a-z-]*:kms:{_REGION}:[0-9]{{12}}:key/[A-Za-z0-9-]{{1,64}})?\Z",
            description="A key of KMS of the instance's region and account, by its ARN, with which"
            " buckets, tables, queues and logs are encrypted; its policy must let CloudWatch Logs"
            " use it. None: by keys that AWS owns, which cost nothing.",
        ),
    ] = ""
    ingest_tasks_max: Annotated[
        int,
        Meta(
            ge=0,
            le=TASKS_MAX,
            description="Tasks that ingest users' files, at one time; as few as the queue needs,"
            " none while it is empty. 0: none.",
        ),
    ] = 4
    compaction_tasks_max: Annotated[
        int,
        Meta(
            ge=0,
            le=TASKS_MAX,
            description="Tasks that run compaction jobs, at one time; none while there are no jobs."
            " 0: none, jobs wait for `lakebed run`.",
        ),
    ] = 8
    feed_workers_max: FeedWorkersMax = 0
    feed_take: FeedTake = False
    ingest_capacity: Annotated[
        Capacity,
        Meta(
            description="`fargate-spot`: three of four tasks that ingest users' files run at about"
            " a third of the price, on machines that AWS may take back; the job begins again on"
            " another."
        ),
    ] = "fargate"
    compaction_capacity: Annotated[
        Capacity,
        Meta(
            description="The same for tasks that run compaction jobs. `fargate`: all of them on"
            " demand."
        ),
    ] = SPOT
    task_vcpus: Annotated[
        Literal["0.25", "0.5", "1", "2", "4", "8", "16"],
        Meta(
            description="Processors of each task. More: a large merge is shared by as many"
            " processes, at most 8; smaller jobs gain nothing. An account's quota of vCPUs bounds"
            " tasks times this."
        ),
    ] = "1"
    task_memory_mib: Annotated[
        int,
        Meta(
            ge=1_024,
            le=122_880,
            description="Memory of each task, of what Fargate gives with `task_vcpus`: with 1 from"
            " 2048 to 8192 in steps of 1024. More: ingest writes fewer runs to disk, and each"
            " process of a merge needs 1024.",
        ),
    ] = 4_096
    task_disk_gib: Annotated[
        int,
        Meta(
            ge=DISK_GIB_MIN,
            le=DISK_GIB_MAX,
            description="Disk of each task. Its image takes 2, and it holds users' files while they"
            " are ingested, and what a merge writes. 20 cost nothing.",
        ),
    ] = DISK_GIB_MIN
    function_disk_mib: FunctionDisk = DISK_MIB_MIN
    sources: Annotated[
        str,
        Meta(
            pattern=rf"\A({_SOURCE}(,{_SOURCE})*)?\Z",
            description="Places of the files that messages may name: `s3://BUCKET` or"
            " `s3://BUCKET/FOLDER`, with commas between. Ingest tasks, bulk imports and tasks of"
            " feeds may read only there.",
        ),
    ] = ""
    feed_queues: FeedQueues = ""
    feed_secrets: FeedSecrets = ""
    feed_schemas: FeedSchemas = False
    feed_ports: FeedPorts = ""
    feed_push: FeedPush = False
    task_addresses: Annotated[
        Literal["public", "private"],
        Meta(
            description="`public`: tasks have addresses that refuse connections, and cost"
            " nothing while none runs. `private`: none; the instance's own network then has"
            " endpoints, paid by the hour (`lakebed explain cost`)."
        ),
    ] = "public"
    vpc_id: Annotated[
        str,
        Meta(
            pattern=r"\A(vpc-[0-9a-f]{8,17})?\Z",
            description="A network of yours, in which tasks run. None: one of the instance's own.",
        ),
    ] = ""
    subnet_ids: Annotated[
        str,
        Meta(
            pattern=rf"\A({_SUBNET}(,{_SUBNET})*)?\Z",
            description="Subnets of `vpc_id` for tasks, with commas between.",
        ),
    ] = ""
    zones: Annotated[
        str,
        Meta(
            pattern=rf"\A({ZONE}(,{ZONE})*)?\Z",
            description="Availability zones of the instance's own network, by their ids"
            " (`use1-az1`), with commas between. None: the first two of the region. Where one"
            " of these lacks Fargate, name zones that have it.",
        ),
    ] = ""
    function_runs_max: FunctionRuns = FUNCTION_RUNS_MIN
    bulk_import_vcpus_max: Annotated[
        int,
        Meta(
            ge=8,
            le=4_000,
            description="vCPUs of all bulk imports at one time, on EMR Serverless; they bound the"
            " cost. Each import has 2 for its driver and 4 for each executor.",
        ),
    ] = 16
    alarm_mail: AlarmMail = ""
    alarm_topic_arn: AlarmTopic = ""
    packages: Packages = ""
    table_metrics: Annotated[
        bool,
        Meta(
            description="Whether metrics of rows and failures are kept for each table as well. Each"
            " table that changes is then paid for (`lakebed explain cost`). Events name their table"
            " in either case."
        ),
    ] = False
    log_days: Annotated[
        Literal["1", "7", "30", "90", "365", "3653"],
        Meta(description="Days for which logs of functions and tasks are kept."),
    ] = "30"

    def arns(self) -> dict[str, str]:
        """Return the ARNs that settings hold, by the setting's name."""
        named = {"key_arn": self.key_arn, "alarm_topic_arn": self.alarm_topic_arn}
        found = {name: arn for name, arn in named.items() if arn}
        queues = named_in(self.feed_queues)
        return found | {f"feed_queues[{n}]": arn for n, arn in enumerate(queues)}


def instance_settings(changes: Mapping[str, object]) -> InstanceSettings:
    """Return settings with some changed. Texts are taken for what they say: `"false"`, `"7"`.

    Raises:
        InvalidError: an unknown name (with the nearest known one), a value out of bounds, settings
            of a network that do not fit together, a size of tasks that Fargate does not have, or
            ARNs that do not fit together.
    """
    page = "instance"
    found = changed(InstanceSettings(), changes, texts=True, page=page)
    check_network(vpc_id=found.vpc_id, subnet_ids=found.subnet_ids, zones=found.zones)
    check_alarms(mail=found.alarm_mail, topic_arn=found.alarm_topic_arn)
    check_arns(found.arns())
    check_task_size(vcpus=found.task_vcpus, memory_mib=found.task_memory_mib)
    has_own_way_out = found.task_addresses == "public" or bool(found.vpc_id)
    check_feed_access(found, has_own_way_out=has_own_way_out)
    return found


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that is to be deployed: its name and its settings."""

    instance: InstanceId
    settings: InstanceSettings

    def name(self, *parts: str) -> str:
        """Return the physical name of one of its resources."""
        return physical_name(self.instance, *parts)


def deployment_of(context: Mapping[str, object]) -> Deployment:
    """Return what the context of a synthesis asks for. Names with one of `@:/` are not ours.

    Raises:
        InvalidError: no instance, or a wrong one; an unknown setting, or a wrong value.
    """
    given = {name: value for name, value in context.items() if not set("@:/") & set(name)}
    if "instance" not in given:
        raise InvalidError("no instance is named", hint="add `-c instance=NAME`")
    instance = instance_id(given.pop("instance"))
    return Deployment(instance=instance, settings=instance_settings(given))


class InstanceResources(msgspec.Struct, frozen=True, kw_only=True):
    """What the deployment of an instance made, by physical name.

    queues: the URL of each kind of job's queue; its dead letters are where its redrive policy says.
    quotas: what the instance may use at one time of each quota, by code; empty: it does not say.
    packages: of users, that are in its bundles and images, if there are any.
    release: that deployed it; "": one that does not say.
    format: of who wrote it. A newer release may add fields, which are ignored here; `needs`, if it
        is there, says of which format a reader must be.
    """

    format: int = RESOURCES_FORMAT
    instance: InstanceId
    bucket: str
    prefix: str = OBJECTS_PREFIX
    log_table: str
    registry_table: str
    tracker_table: str
    queues: dict[str, str] = {}
    quotas: dict[str, int] = {}
    packages: tuple[DeployedPackage, ...] | UnsetType = UNSET
    release: str = ""


def parameter_name(instance: InstanceId) -> str:
    """Return the name of the parameter that holds an instance's resources."""
    return f"/lakebed/{instance}"


def physical_name(instance: InstanceId, *parts: str) -> str:
    """Return the name of a resource: `lakebed-INSTANCE-log`."""
    return "-".join(("lakebed", instance, *parts))


def encode_resources(resources: InstanceResources) -> str:
    """Return what the parameter holds."""
    return msgspec.json.encode(resources).decode()


def decode_resources(text: str, instance: InstanceId) -> InstanceResources:
    """Return what an instance's parameter says.

    Raises:
        NewerFormatError: a newer Lakebed deployed the instance, and this one cannot do without what
            it says.
        CorruptError: it is not what a deployment writes, or another instance's.
    """
    parameter = parameter_name(instance)
    try:
        decoded = msgspec.json.decode(text)
        format_ = decoded.get("format") if isinstance(decoded, dict) else None
        needs = decoded.get("needs", format_) if isinstance(decoded, dict) else None
        if type(needs) is int and needs > RESOURCES_FORMAT:
            raise NewerFormatError(
                "a newer Lakebed deployed the instance", instance=instance, format=needs
            )
        found = msgspec.convert(decoded, InstanceResources)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        hint = "deploy the instance again: its stack writes the parameter"
        raise CorruptError(
            "a parameter is not what a deployment writes",
            parameter=parameter,
            reason=error,
            hint=hint,
        ) from None
    if type(format_) is not int or format_ < RESOURCES_FORMAT or found.instance != instance:
        raise CorruptError(
            "a parameter describes another instance or format",
            parameter=parameter,
            instance=found.instance,
            format=format_,
            hint="deploy the instance again: its stack writes the parameter",
        )
    return found
