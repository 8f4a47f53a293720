"""Writes the policy of IAM for one table of an instance. It needs the instance's parameter and the
registry of names, and opens no lake."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws import caller_of, new_clients, resources_of
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId, instance_id, parameter_name
from lakebed.config.people.table_access import LakeArns, TableAccess, TablePatterns, statements_for
from lakebed.model.names import TableId
from lakebed.model.paths import entries_prefix, files_prefix, snapshots_prefix
from lakebed.tables.catalog import entry_named

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

POLICY_VERSION = "2012-10-17"
"""The version of the language of IAM's policies."""


def policy_of_table(instance: str, table: str, access: TableAccess) -> dict[str, Any]:
    """Return the policy with which the library reads a table, or ingests into it, and no other.

    Raises:
        InvalidError: no such instance, no name of a table, boto3 is not installed.
        TableMissingError: with the nearest known name. DeniedError: the credentials do not permit
        to look. NewerFormatError: a newer Lakebed deployed the instance. UnavailableError: AWS
        cannot be reached.
    """
    id_ = instance_id(instance)
    with closing(new_clients(SystemClock(), system_random())) as clients:
        from lakebed.backends.aws.table_registry import DynamoTableRegistry

        resources = resources_of(clients, id_)
        found = entry_named(DynamoTableRegistry(clients, resources.registry_table), table)
        lake = _arns(clients, id_, resources)
    return {
        "Version": POLICY_VERSION,
        "Statement": statements_for(access, lake, patterns_of(found.id)),
    }


def patterns_of(table: TableId) -> TablePatterns:
    """Return what objects of a table are called."""
    return TablePatterns(
        id=table,
        files=f"{files_prefix(table)}*",
        snapshots=f"{snapshots_prefix(table)}*",
        bodies=f"{entries_prefix(table)}*",
    )


def _arns(clients: AmazonClients, instance: InstanceId, resources: InstanceResources) -> LakeArns:
    from lakebed.backends.aws.object_store import OBJECTS

    caller = caller_of(clients)  # the instance's account: its parameter was found there
    return LakeArns(
        partition=caller.partition,
        region=clients.region,
        account=caller.account,
        parameter=parameter_name(instance),
        bucket=resources.bucket,
        objects=f"{resources.prefix}/{OBJECTS}".lstrip("/"),
        log_table=resources.log_table,
        registry_table=resources.registry_table,
        tracker_table=resources.tracker_table,
        batches_table=resources.batches_table or "",
        key_arn=resources.key_arn or "",
    )
