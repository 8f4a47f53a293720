"""Computes what an instance may use at one time of what AWS bounds by account and region: its
quotas.

Default settings fit an account that is new. Source of names and codes: the console of Service
Quotas; of what new accounts have: "Lambda quotas" in the AWS Lambda Developer Guide, "Amazon ECS
service quotas", and what accounts report. AWS raises most of them by itself as an account is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from lakebed.config.accounts.account_quotas import quotas_said
from lakebed.config.fargate import MACHINES, ON_DEMAND, ON_DEMAND_OF, SPOT, Capacity
from lakebed.config.instance import Deployment, InstanceSettings
from lakebed.errors import InvalidError


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of an account in a region.

    service, code, name: as Service Quotas has them.
    new_account: what a new account has.
    needed: how much of it an instance with these settings needs.
    settings: the names of those from which the need follows.
    stack: the optional one that needs it; "": it is needed by others, too.
    """

    service: str
    code: str
    name: str
    new_account: int
    needed: Callable[[InstanceSettings], int]
    settings: tuple[str, ...]
    stack: str = ""

    def needed_by(self, deployment: Deployment) -> int:
        """Return how much of it an instance needs with the stacks that it has."""
        if self.stack and self.stack not in deployment.stacks:
            return 0
        return self.needed(deployment.settings_in_use())


def vcpus_needed(settings: InstanceSettings, *, spot: bool) -> int:
    """Return the processors of all tasks that may run on Fargate at one time, on demand or on spot
    capacity. Where most run on spot capacity, a share is started on demand."""
    pools: list[tuple[int, Capacity]] = [
        (settings.ingest_tasks_max, settings.ingest_capacity),
        (settings.compaction_tasks_max, settings.compaction_capacity),
        (settings.feed_workers_max, ON_DEMAND),
    ]
    tasks = 0
    for tasks_max, capacity in pools:
        if capacity == MACHINES:
            continue
        on_demand = -(-tasks_max // ON_DEMAND_OF) if capacity == SPOT else tasks_max
        tasks += tasks_max - on_demand if spot else on_demand
    return math.ceil(tasks * float(settings.task_vcpus))


def machine_vcpus_needed(settings: InstanceSettings) -> int:
    """Return the processors of all machines of the instance's own that may run at one time."""
    if not settings.tasks_on_machines():
        return 0
    return settings.machines_max * max(one.vcpus for one in settings.machines())


_OF_TASKS = (
    "ingest_tasks_max",
    "compaction_tasks_max",
    "ingest_capacity",
    "compaction_capacity",
    "task_vcpus",
)

FUNCTION_RUNS = Quota(
    service="lambda",
    code="L-B99A9384",
    name="Concurrent executions",
    new_account=10,
    needed=lambda settings: settings.function_runs_max,
    settings=("function_runs_max",),
)
FARGATE_VCPUS = Quota(
    service="fargate",
    code="L-3032A538",
    name="Fargate On-Demand vCPU resource count",
    new_account=6,
    needed=lambda settings: vcpus_needed(settings, spot=False),
    settings=("feed_workers_max", *_OF_TASKS),
)
FARGATE_SPOT_VCPUS = Quota(
    service="fargate",
    code="L-36FBB829",
    name="Fargate Spot vCPU resource count",
    new_account=6,
    needed=lambda settings: vcpus_needed(settings, spot=True),
    settings=_OF_TASKS,
)
MACHINE_VCPUS = Quota(
    service="ec2",
    code="L-1216C47A",
    name="Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    new_account=5,
    needed=machine_vcpus_needed,
    settings=(
        "machines_max",
        "machine_types",
        "ingest_capacity",
        "compaction_capacity",
        "ingest_tasks_max",
        "compaction_tasks_max",
    ),
)
SPARK_VCPUS = Quota(
    service="emr-serverless",
    code="L-D05C8A75",
    name="Max concurrent vCPUs per account",
    new_account=16,
    needed=lambda settings: settings.bulk_import_vcpus_max,
    settings=("bulk_import_vcpus_max",),
    stack="bulk-import",
)
NETWORKS = Quota(
    service="vpc",
    code="L-F678F1CE",
    name="VPCs per Region",
    new_account=5,
    needed=lambda settings: 0 if settings.vpc_id else 1,
    settings=("vpc_id",),
    stack="networking",
)

QUOTAS = (
    FUNCTION_RUNS,
    FARGATE_VCPUS,
    FARGATE_SPOT_VCPUS,
    MACHINE_VCPUS,
    SPARK_VCPUS,
    NETWORKS,
)


def quotas_needed(settings: InstanceSettings) -> dict[str, int]:
    """Return what an instance needs of quotas, by their codes; nothing of those that it leaves
    out."""
    needs = {quota.code: quota.needed(settings) for quota in QUOTAS}
    return {code: needed for code, needed in needs.items() if needed}


def check_quotas(deployment: Deployment) -> None:
    """Refuse an instance that may use more than its account has, as far as its settings say that.

    Raises:
        InvalidError: it needs more of some; the settings name one twice, or one that no instance
            comes near.
    """
    said = quotas_said(deployment.settings.account_quotas)
    known = {quota.code: quota for quota in QUOTAS}
    if unknown := sorted(said.keys() - known.keys()):
        hint = f"name one of {', '.join(f'{code} ({q.name})' for code, q in known.items())}"
        raise InvalidError(
            "not a quota that an instance needs", account_quotas=unknown[0], hint=hint
        )
    for code, has in said.items():
        quota = known[code]
        needs = quota.needed_by(deployment)
        if needs > has:
            raise InvalidError(
                "the instance may use more than its account has",
                quota=f"{quota.service} {code} ({quota.name})",
                needed=needs,
                account_has=has,
                hint=f"deploy with less: {', '.join(quota.settings)}; or ask Service Quotas for"
                f" {needs}, and say {code}={needs} in account_quotas once you have them",
            )
