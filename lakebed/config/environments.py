"""Environments of lambdas: one class for each kind of function, a variable for each field.

The stacks make them, with `variables_of`; a function reads its own, with `environment_of`. So a
function learns names without asking for them, and needs no permission to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lakebed.errors import InvalidError

PREFIX = "LAKEBED_"


def sources_in(sources: str) -> list[str]:
    """Return the sources that a setting names, with commas between."""
    return [source for source in sources.split(",") if source]


class FunctionEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of every function: the instance that it is of."""

    instance: str


class ReportedEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that does a lake's work, and reports its release."""

    processes_table: str


class TriggerEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a trigger, which a schedule runs: it sends tables with work to a queue.

    work: the kind of scheduled work that they are sent for.
    """

    work: str
    registry_table: str
    queue_url: str


class TableWorkEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a program that opens tables.

    table_metrics: `true` where metrics are kept for each table as well, else `false`.
    """

    bucket: str
    objects_prefix: str
    log_table: str
    registry_table: str
    table_metrics: str


class TableFunctionEnvironment(TableWorkEnvironment, frozen=True, kw_only=True):
    """The environment of a function that keeps states of tables in /tmp.

    function_disk_mib: the size of /tmp.
    """

    function_disk_mib: str


class ScheduledWorkEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that does scheduled work on tables.

    work: the kind.
    """

    work: str


class JobEventsEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that publishes ends of jobs."""

    registry_table: str


class QueryEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that answers queries.

    results_bucket: for results that are too large for an answer.
    """

    tracker_table: str
    results_bucket: str


class QueryQueueEnvironment(QueryEnvironment, frozen=True, kw_only=True):
    """The environment of a function that answers the queries of a queue."""

    query_queue_url: str


class HistoryEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that keeps jobs and usage of each day.

    history_days: for which new tables keep them.
    """

    tracker_table: str
    history_days: str


class FeedTakeEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that takes records of sources.

    merge_processes: 1: a function starts none.
    """

    tracker_table: str
    compaction_queue_url: str
    commits_queue_url: str
    merge_processes: str


class TaskEnvironment(TableWorkEnvironment, frozen=True, kw_only=True):
    """The environment of a task that moves rows: compaction.

    task_vcpus, task_memory_mib: its size, which it cannot learn from the machine that it shares.
    """

    task_vcpus: str
    task_memory_mib: str
    tracker_table: str
    compaction_queue_url: str
    commits_queue_url: str


class IngestTaskEnvironment(TaskEnvironment, frozen=True, kw_only=True):
    """The environment of a task that ingests files.

    batches_table: of submitted files.
    sources: folders that may hold them, separated by commas.
    """

    batches_table: str
    ingest_queue_url: str
    sources: str


class BatchingTriggerEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a trigger that sends tables with submitted files to a queue."""

    batches_table: str
    queue_url: str


class BatchingEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that makes batches of submitted files.

    bulk_import_queue_url: "": the instance imports nothing in bulk.
    """

    batches_table: str
    tracker_table: str
    ingest_queue_url: str
    bulk_import_queue_url: str


class SubmissionsEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that submits files of messages, and files that arrive.

    sources: as in `IngestTaskEnvironment`.
    """

    registry_table: str
    batches_table: str
    queue_url: str
    sources: str


class DeclaredTablesEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that makes tables as files declare them.

    files: archive of the files, s3://BUCKET/KEY.
    sources: as in `IngestTaskEnvironment`.
    has_batching: `true` where the instance has the stack that hears of files, else `false`.
    stack: the id of its stack.
    """

    files: str
    sources: str
    has_batching: str
    stack: str


class NetworkCheckEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that checks a network which the deployer brings."""

    vpc_id: str


class ReleaseCheckEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that checks which release may be deployed."""

    registry_table: str


class StartedTaskEnvironment(FunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that starts tasks.

    cluster, task_definition: ARNs.
    subnets: separated by commas.
    security_group: or several, separated by commas.
    public_address: ENABLED or DISABLED.
    tasks_max: at one time.
    capacity: `fargate`, `fargate-spot` or `ec2`.
    """

    cluster: str
    task_definition: str
    subnets: str
    security_group: str
    public_address: str
    tasks_max: str
    capacity: str


class TaskStartEnvironment(StartedTaskEnvironment, frozen=True, kw_only=True):
    """The environment of a function that starts tasks for a queue."""

    queue_url: str


class FeedTaskStartEnvironment(StartedTaskEnvironment, frozen=True, kw_only=True):
    """The environment of a function that starts tasks for feeds."""

    registry_table: str


class BulkImportEnvironment(TableWorkEnvironment, frozen=True, kw_only=True):
    """The environment of the driver of a bulk import, which has no queue.

    sources: as in `IngestTaskEnvironment`.
    """

    tracker_table: str
    sources: str


class BulkImportRunsEnvironment(BulkImportEnvironment, frozen=True, kw_only=True):
    """The environment of a function that starts runs of Spark.

    function_disk_mib: the size of /tmp.
    tags: of runs, in JSON.
    spark_release: of EMR, serverless and on clusters.
    application_id: of EMR Serverless.
    job_role_arn: that drivers and tasks have there.
    entry_point, archive: what they run, by URL: a program, and our code with its packages.
    python: the command that runs them.
    cluster_service_role, cluster_profile: by which EMR makes clusters, and their machines work; all
        that begins with `cluster_` is empty where none are made.
    cluster_security: the name of a security configuration.
    cluster_security_group: of all machines.
    cluster_subnets: with commas between.
    cluster_types: of machines that no message names, with commas between.
    cluster_units_max: machines of a cluster beside its first.
    cluster_logs: where their logs go, by URL, with `/` at its end.
    shared_cluster: the id of one that stays; empty: there is none.
    """

    function_disk_mib: str
    tags: str
    spark_release: str
    application_id: str
    job_role_arn: str
    entry_point: str
    archive: str
    python: str
    cluster_service_role: str
    cluster_profile: str
    cluster_security: str
    cluster_security_group: str
    cluster_subnets: str
    cluster_types: str
    cluster_units_max: str
    cluster_logs: str
    shared_cluster: str


class BulkImportFollowEnvironment(BulkImportRunsEnvironment, frozen=True, kw_only=True):
    """The environment of a function that follows bulk imports, and asks for machines again."""


class BulkImportStartEnvironment(BulkImportRunsEnvironment, frozen=True, kw_only=True):
    """The environment of a function that starts bulk imports.

    batches_table: of submitted files.
    """

    batches_table: str
    queue_url: str


class CompactionCreationEnvironment(ScheduledWorkEnvironment, frozen=True, kw_only=True):
    """The environment of a function that creates compaction jobs."""

    tracker_table: str
    jobs_queue_url: str


class DeadLettersEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of a function that frees the files of jobs that were given up."""

    tracker_table: str
    jobs_queue_url: str
    commits_queue_url: str


class CommitterEnvironment(TableFunctionEnvironment, frozen=True, kw_only=True):
    """The environment of the committer."""

    tracker_table: str
    commits_queue_url: str


EnvironmentT = TypeVar("EnvironmentT", bound=FunctionEnvironment)


def environment_of(kind: type[EnvironmentT], variables: Mapping[str, str]) -> EnvironmentT:
    """Return what a function's variables say.

    Raises:
        InvalidError: some are not there.
    """
    names = {_variable(field): field for field in kind.__struct_fields__}
    missing = sorted(name for name in names if name not in variables)
    if missing:
        hint = "deploy the instance again: its stacks set them"
        raise InvalidError("variables are not set", variables=",".join(missing), hint=hint)
    return msgspec.convert({field: variables[name] for name, field in names.items()}, kind)


def variables_of(environment: FunctionEnvironment) -> dict[str, str]:
    """Return the variables that a stack gives to a function."""
    return {_variable(name): value for name, value in msgspec.structs.asdict(environment).items()}


def variables_named(kind: type[FunctionEnvironment]) -> set[str]:
    """Return the names of a kind's variables."""
    return {_variable(name) for name in kind.__struct_fields__}


def _variable(field: str) -> str:
    return PREFIX + field.upper()
