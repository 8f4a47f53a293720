"""Examines the account in which an instance is deployed. It needs the instance's parameter, and
opens no lake."""

from __future__ import annotations

from contextlib import closing

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws import new_clients, resources_of
from lakebed.config.instance import InstanceResources, InstanceSettings, instance_id
from lakebed.config.quotas import quotas_needed
from lakebed.doctor.examine_account import ExamineAccount, QuotaFinding
from lakebed.ports.account import Account


def examine_instance(instance: str) -> list[QuotaFinding]:
    """Return what the account has of each quota, and what the instance needs of it.

    Raises:
        InvalidError: no such instance, boto3 is not installed.
        DeniedError: the credentials do not permit to read the instance's parameter.
        NewerFormatError: a newer Lakebed deployed it. UnavailableError: AWS cannot be reached.
    """
    id_ = instance_id(instance)
    with closing(new_clients(SystemClock(), system_random())) as clients:
        from lakebed.backends.aws.account import AmazonAccount

        return examine(AmazonAccount(clients), resources_of(clients, id_))


def examine(account: Account, resources: InstanceResources) -> list[QuotaFinding]:
    """Return what an account has for an instance. One that an earlier release deployed does not
    say what it needs: it is taken to have the default settings of this release."""
    return ExamineAccount(account, resources.quotas or quotas_needed(InstanceSettings())).run()
