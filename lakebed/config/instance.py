"""Defines what an instance is called, how it is set, and what its parts are called.

An instance is one deployment in an AWS account; several live side by side. The stacks write what
they made as JSON into one parameter, `/lakebed/INSTANCE`; `lakebed.connect("aws:INSTANCE")` reads
that parameter and nothing else (`instance_resources.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, NewType

import msgspec
from msgspec import Meta

from lakebed.config.accounts.account_quotas import AccountQuotas
from lakebed.config.alarm_settings import (
    AlarmMail,
    AlarmTopic,
    JobEvents,
    NoticesHttps,
    NoticesMail,
    NoticesQueue,
    TableMetrics,
    check_alarms,
)
from lakebed.config.definitions.table_folder import TableFolder
from lakebed.config.fargate import (
    DISK_GIB_MAX,
    DISK_GIB_MIN,
    MACHINES,
    SPOT,
    Capacity,
    check_task_size,
)
from lakebed.config.feed_access import (
    FeedPorts,
    FeedPush,
    FeedQueues,
    FeedSchemas,
    FeedSecrets,
    FeedTake,
    FeedWorkersMax,
    check_feed_access,
)
from lakebed.config.functions import DISK_MIB_MIN, FUNCTION_RUNS_MIN, FunctionDisk, FunctionRuns
from lakebed.config.machines import (
    MachinesMax,
    MachineType,
    MachineTypes,
    check_machines,
    check_room,
    machine_types,
)
from lakebed.config.networks import SubnetIds, TaskAddresses, VpcId, Zones, check_network
from lakebed.config.packages import Packages
from lakebed.config.people.role_settings import (
    PeopleAdmin,
    PeopleDirect,
    PeopleOperator,
    PeopleReader,
    PeopleSender,
    PeopleWriter,
    check_people,
)
from lakebed.config.regions import check_arns
from lakebed.config.settings import changed, named_in
from lakebed.config.spark.clusters import (
    BulkImportVcpus,
    SharedCluster,
    SparkClusters,
    SparkClusterTypes,
    SparkClusterUnits,
    check_spark_clusters,
)
from lakebed.errors import InvalidError

InstanceId = NewType("InstanceId", str)

INSTANCE_ID_CHARACTERS_MAX = 16
"""A bucket's name has at most 63 characters: `lakebed-`, the instance, `-results-`, an account of
12 digits, `-` and a region of at most 14 leave 19."""
_INSTANCE_ID = re.compile(rf"(?=.{{1,{INSTANCE_ID_CHARACTERS_MAX}}}\Z)[a-z][a-z0-9]*(-[a-z0-9]+)*")

OBJECTS_PREFIX = "lake"
"""Prefix of all objects of the lake in the data bucket; what is beside it is not the lake's."""
ARRIVALS = "arrivals"
"""Part of the names of rules that tell of files which arrive."""
IMPORTS_PREFIX = "bulk-import"
"""Prefix, beside the lake, of the objects that name bulk imports which were sent to a platform."""


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

INSTANCE_TAG = "lakebed:instance"
"""The tag on everything that an instance is made of."""

TASKS_MAX = 200
"""Most tasks of one kind at a time. An account's own quota may be lower."""

_SOURCE = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=/-]*)?"
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
            " another. `ec2`: on machines of the instance (`machine_types`), none while no task"
            " runs."
        ),
    ] = "fargate"
    compaction_capacity: Annotated[
        Capacity,
        Meta(
            description="The same for tasks that run compaction jobs: `fargate`, all of them on"
            " demand, `fargate-spot` or `ec2`."
        ),
    ] = SPOT
    machine_types: MachineTypes = ""
    machines_max: MachinesMax = 4
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
            " are ingested, and what a merge writes. 20 cost nothing; on `ec2` tasks share"
            " their machine's disk, which has room for as much for each and is paid for while it"
            " runs.",
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
    task_addresses: TaskAddresses = "public"
    vpc_id: VpcId = ""
    subnet_ids: SubnetIds = ""
    zones: Zones = ""
    account_quotas: AccountQuotas = ""
    function_runs_max: FunctionRuns = FUNCTION_RUNS_MIN
    bulk_import_vcpus_max: BulkImportVcpus = 16
    spark_clusters: SparkClusters = False
    spark_cluster_types: SparkClusterTypes = ""
    spark_cluster_units_max: SparkClusterUnits = 10
    shared_cluster: SharedCluster = ""
    alarm_mail: AlarmMail = ""
    alarm_topic_arn: AlarmTopic = ""
    notices_mail: NoticesMail = ""
    notices_https: NoticesHttps = ""
    notices_queue: NoticesQueue = ""
    job_events: JobEvents = False
    people_reader: PeopleReader = ""
    people_direct: PeopleDirect = False
    people_sender: PeopleSender = ""
    people_writer: PeopleWriter = ""
    people_operator: PeopleOperator = ""
    people_admin: PeopleAdmin = ""
    packages: Packages = ""
    tables: TableFolder = ""
    table_metrics: TableMetrics = False
    history_days: Annotated[
        int,
        Meta(
            ge=0,
            le=3_650,
            description="Days for which jobs that have ended are kept as rows of the table"
            " `lakebed-jobs`, and usage by the hour as rows of `lakebed-usage`, once a day. 0:"
            " there are no such tables; reports go after 30 days. What a table keeps that is there"
            " already, its age-off says.",
        ),
    ] = 0
    log_days: Annotated[
        Literal["1", "7", "30", "90", "365", "3653"],
        Meta(description="Days for which logs of functions and tasks are kept."),
    ] = "30"

    def tasks_on_machines(self) -> int:
        """Return how many tasks may run at one time on machines of the instance's own."""
        pools = (
            (self.ingest_capacity, self.ingest_tasks_max),
            (self.compaction_capacity, self.compaction_tasks_max),
        )
        return sum(tasks_max for capacity, tasks_max in pools if capacity == MACHINES)

    def machines(self) -> list[MachineType]:
        """Return the types of machines of the instance's own."""
        return machine_types(self.machine_types, architecture=self.architecture)

    def arns(self) -> dict[str, str]:
        """Return the ARNs that settings hold, by the setting's name."""
        named = {"key_arn": self.key_arn, "alarm_topic_arn": self.alarm_topic_arn}
        found = {name: arn for name, arn in named.items() if arn}
        for name in ("feed_queues", "notices_queue"):
            listed = enumerate(named_in(getattr(self, name)))
            found |= {f"{name}[{n}]": arn for n, arn in listed}
        return found


def instance_settings(changes: Mapping[str, object]) -> InstanceSettings:
    """Return settings with some changed. Texts are taken for what they say: `"false"`, `"7"`.

    Raises:
        InvalidError: an unknown name (with the nearest known one), a value out of bounds, settings
            of a network that do not fit together, a size of tasks that Fargate does not have,
            machines on which they do not fit, or ARNs that do not fit together.
    """
    page = "instance"
    found = changed(InstanceSettings(), changes, texts=True, page=page)
    check_network(vpc_id=found.vpc_id, subnet_ids=found.subnet_ids, zones=found.zones)
    check_alarms(found)
    check_people(found)
    check_arns(found.arns())
    check_task_size(vcpus=found.task_vcpus, memory_mib=found.task_memory_mib)
    if tasks := found.tasks_on_machines():
        types = found.machines()
        vcpus, memory_mib = found.task_vcpus, found.task_memory_mib
        check_machines(types, architecture=found.architecture, vcpus=vcpus, memory_mib=memory_mib)
        check_room(
            types,
            machines_max=found.machines_max,
            tasks_max=tasks,
            vcpus=vcpus,
            memory_mib=memory_mib,
        )
    check_spark_clusters(
        clusters=found.spark_clusters,
        shared=found.shared_cluster,
        addresses=found.task_addresses,
        vpc_id=found.vpc_id,
    )
    has_own_way_out = found.task_addresses == "public" or bool(found.vpc_id)
    check_feed_access(found, has_own_way_out=has_own_way_out)
    return found


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that is to be deployed.

    stacks: names of the optional ones that it has (`optional_stacks.py`).
    tags: of its owner, for all that takes some.
    """

    instance: InstanceId
    settings: InstanceSettings
    stacks: frozenset[str] = frozenset()
    tags: Mapping[str, str] = {}

    def settings_in_use(self) -> InstanceSettings:
        """Return the settings, without tasks of a stack that it does not have."""
        if "ingest" in self.stacks:
            return self.settings
        return msgspec.structs.replace(self.settings, ingest_tasks_max=0)

    def name(self, *parts: str) -> str:
        """Return the physical name of one of its resources."""
        return physical_name(self.instance, *parts)

    def all_tags(self) -> dict[str, str]:
        """Return the tags of all its resources: its owner's, and ours."""
        return {**self.tags, INSTANCE_TAG: self.instance}


def capacity_provider(instance: InstanceId) -> str:
    """Return the name by which ECS knows an instance's machines."""
    return physical_name(instance, "machines")


def parameter_name(instance: InstanceId) -> str:
    """Return the name of the parameter that holds an instance's resources."""
    return f"/lakebed/{instance}"


def physical_name(instance: InstanceId, *parts: str) -> str:
    """Return the name of a resource: `lakebed-INSTANCE-log`."""
    return "-".join(("lakebed", instance, *parts))
