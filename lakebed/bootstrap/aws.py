"""A lake on AWS: the services over what the deployment of an instance made.

The parameter `/lakebed/INSTANCE` says what that is. On this machine lie only states of tables, read
again from log and snapshots when they are gone, and rows on their way.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.app import INSTANCE_SCHEME, App, Paying
from lakebed.bootstrap.assemble import FIRST_REPORT_SECONDS, Stores, assemble
from lakebed.bootstrap.aws_stores import objects_of, source_files_of
from lakebed.bootstrap.feeds.stores import instance_feed_stores
from lakebed.bootstrap.memory import Memory
from lakebed.bootstrap.object_locations import ObjectsLocation, location_of
from lakebed.bootstrap.paying.budgets import budgets_over
from lakebed.config.deployments.instance_resources import InstanceResources, decode_resources
from lakebed.config.instance import InstanceId, instance_id
from lakebed.config.packages import DeployedSteps
from lakebed.errors import InvalidError, LakebedError
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues
from lakebed.statestore.marked_logs import MarkedTransactionLogs
from lakebed.statestore.warm_heads import remove_unused_states
from lakebed.tasks.watched_folders import watchable_folders

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.query.scan_caps import RequestPrice

FOLDER_VARIABLE = "LAKEBED_CACHE"
STATES_BYTES_MAX = 8 << 30
"""Most bytes of the states that earlier processes left on this machine: the least recently used
ones go first."""


def open_instance(
    instance: str,
    *,
    clock: Clock | None = None,
    folder: Path | None = None,
    memory: Memory | None = None,
    states_bytes_max: int = STATES_BYTES_MAX,
    resources: InstanceResources | None = None,
    queues: JobQueues | None = None,
    first_report_seconds: float = FIRST_REPORT_SECONDS,
) -> App:
    """Return the services of an instance. Many processes, on many machines, may open one at once.

    folder: for states of tables and rows on their way; None: of $LAKEBED_CACHE, else
        `~/.cache/lakebed`.
    memory: None: the usual.
    resources: None: as its parameter tells.
    queues: None: those that `resources` names.
    first_report_seconds: until this process reports its release, unless it is a function.

    Raises:
        InvalidError: no such instance, boto3 is not installed, nothing to keep the folder in.
        DeniedError: the credentials do not permit to look. NewerFormatError: a newer Lakebed
            deployed it. UnavailableError: AWS cannot be reached.
    """
    memory = memory or Memory()
    memory.check()
    rng, id_ = system_random(), instance_id(instance)
    with ExitStack() as undo:
        clients = new_clients(clock or SystemClock(), rng)
        undo.callback(clients.close)
        price = _price_of_reading if resources is None else None  # else it is a deployed program
        resources = resources or resources_of(clients, id_)
        states, spill = _folders(folder or cache_folder(), id_)
        remove_unused_states(states, bytes_max=states_bytes_max)
        queues = queues or _queues(clients, resources, rng)
        stores = _stores(clients, resources, queues, first_report_seconds, price=price)
        undo.pop_all()
    return assemble(stores, states=states, spill=spill, memory=memory)


def new_clients(clock: Clock, rng: random.Random, region: str = "") -> AmazonClients:
    """Return clients of AWS as the variables of this process say. region: another one than theirs.

    Raises:
        InvalidError: boto3 is not installed.
    """
    try:
        from lakebed.backends.aws.clients import AmazonClients
    except ImportError as error:
        if error.name not in {"boto3", "botocore", "obstore"}:
            raise
        hint = "install it: pip install 'lakebed[aws]', or -r requirements/aws.txt"
        raise InvalidError(f"a lake on AWS needs {error.name}", hint=hint) from None
    if region:
        return AmazonClients(clock=clock, rng=rng, region_name=region)
    return AmazonClients(clock=clock, rng=rng)


def resources_of(clients: AmazonClients, instance: InstanceId) -> InstanceResources:
    """Return what the instance's deployment made.

    Raises:
        InvalidError: no such instance.
        DeniedError, NewerFormatError, UnavailableError: as `open_instance`.
    """
    from lakebed.backends.aws.releases.instance_parameter import parameter_text

    text = parameter_text(clients, instance)
    if text is None:
        raise InvalidError(
            "there is no such instance",
            instance=instance,
            region=clients.ssm.meta.region_name,
            account=_account(clients),
            hint="is it the right account and region? `cdk deploy -c instance=NAME` makes one",
        )
    return decode_resources(text, instance)


class Caller(NamedTuple):
    """The owner of some credentials: the partition of AWS, and the account's number."""

    partition: str
    account: str


def caller_of(clients: AmazonClients) -> Caller:
    """Return who asks.

    Raises: DeniedError, UnavailableError.
    """
    from lakebed.backends.aws.requests import Request
    from lakebed.backends.aws.service_answers import AMAZON_PARAMETER

    request = Request(what="asking who we are", needs="sts:GetCallerIdentity")
    answer = clients.requests(AMAZON_PARAMETER, "").run(request, clients.sts.get_caller_identity)
    return Caller(answer["Arn"].split(":")[1], answer["Account"])


def _account(clients: AmazonClients) -> str:
    """Return whose credentials these are, as far as AWS says."""
    with suppress(LakebedError):
        return caller_of(clients).account
    return "unknown"


def cache_folder() -> Path:
    """Return the folder for states of tables and rows on their way, unless another is given."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakebed"


def _folders(root: Path, instance: InstanceId) -> tuple[Path, Path]:
    """Return folders for states and for rows on their way, which no other user may read."""
    folder = root / instance
    states, spill = folder / "states", folder / "spill"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in (states, spill):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = f"set {FOLDER_VARIABLE} to a folder on a local disk that you may write"
        raise InvalidError(
            "no folder for states of tables", folder=folder, why=error.strerror, hint=hint
        ) from None
    return states.resolve(), spill.resolve()


def _stores(
    clients: AmazonClients,
    resources: InstanceResources,
    queues: JobQueues,
    first_report_seconds: float,
    *,
    price: RequestPrice | None = None,
) -> Stores:
    """Return the stores of an instance."""
    from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
    from lakebed.backends.aws.costs.cost_explorer import CostExplorerBills
    from lakebed.backends.aws.costs.usage_ledger import DynamoUsageLedger
    from lakebed.backends.aws.deleted_objects import DeletedObjects
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
    from lakebed.backends.aws.releases.processes import DynamoProcessReports
    from lakebed.backends.aws.table_marks import DynamoTableMarks
    from lakebed.backends.aws.table_registry import DynamoTableRegistry
    from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs

    rng = system_random()
    ledger = DynamoUsageLedger(clients, resources.tracker_table, registry=resources.registry_table)
    objects = objects_of(clients, resources.bucket, resources.prefix, rng)
    logs = DynamoTransactionLogs(clients, resources.log_table, objects=objects, rng=rng)
    marks = DynamoTableMarks(clients, resources.registry_table)
    batches = None
    if resources.batches_table:
        batches = DynamoFileBatches(clients, resources.batches_table, rng=rng)
    return Stores(
        location=f"{INSTANCE_SCHEME}{resources.instance}",
        clock=clients.clock,
        rng=rng,
        objects=objects,
        logs=MarkedTransactionLogs(logs, marks),
        registry=DynamoTableRegistry(clients, resources.registry_table),
        queues=queues,
        tracker=DynamoDbJobTracker(clients, resources.tracker_table),
        feeds=instance_feed_stores(clients, resources, rng),
        batches=batches,
        watchable=watchable_folders(resources.arrival_folders()),
        for_processes=ObjectsLocation(location_of(objects), instance=True),
        bring_back=DeletedObjects(clients, resources.bucket, resources.prefix).bring_back,
        steps=DeployedSteps(resources.instance, resources.packages or ()),
        price=price,
        source_files=partial(source_files_of, clients, rng),
        processes=DynamoProcessReports(clients, resources.tracker_table),
        first_report_seconds=first_report_seconds,
        deployed=resources.release,
        paying=Paying(
            ledger,
            budgets_over(ledger, clients.clock),
            CostExplorerBills(clients, resources.instance),
            clients.region,
        ),
        close=clients.close,
    )


def _price_of_reading() -> float:
    """Return the dollars of one request that reads of S3, by the prices that come with Lakebed."""
    from lakebed.costs.prices import packaged_prices

    return packaged_prices().prices["s3_get"]


def _queues(clients: AmazonClients, resources: InstanceResources, rng: random.Random) -> JobQueues:
    """Return the queues of an instance.

    Where none are deployed, messages stay in this process: they are hints, jobs live in the state,
    and another process sends again what this one did not run (protocol H20).
    """
    if not resources.queues:  # deployed programs never come here: they carry no queues in memory
        from lakebed.backends.memory.job_queues import MemoryJobQueues

        return MemoryJobQueues(clients.clock)
    from lakebed.backends.aws.job_queues import SqsJobQueues

    left_out = resources.left_out()
    return SqsJobQueues(clients, resources.queues, rng=rng, refuse=left_out.refuse_queue)
