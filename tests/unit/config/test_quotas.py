"""What instances need of an account, and what a new account has."""

from pathlib import Path

import pytest

from lakebed.config.accounts.quotas import (
    FARGATE_SPOT_VCPUS,
    FARGATE_VCPUS,
    FUNCTION_RUNS,
    MACHINE_VCPUS,
    NETWORKS,
    QUOTAS,
    SPARK_VCPUS,
    Quota,
    quotas_needed,
)
from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.instance import Deployment, InstanceSettings, instance_settings
from lakebed.config.job_queues import COMMITS, JOB_QUEUES, QUERIES, TICK_QUEUES
from lakebed.errors import InvalidError

PAGE = Path(__file__).parents[3] / "docs/operate/deploy.md"


@pytest.mark.parametrize("quota", QUOTAS, ids=lambda quota: quota.code)
def test_the_page_of_deploying_has_each_quota(quota: Quota) -> None:
    settings = ", ".join(f"`{name}`" for name in quota.settings)
    cells = (
        f"{quota.service}: {quota.name}",
        f"`{quota.code}`",
        str(quota.new_account),
        str(quota.needed(InstanceSettings())),
        settings,
    )
    assert f"| {' | '.join(cells)} |\n" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("quota", QUOTAS, ids=lambda quota: quota.code)
def test_default_settings_fit_a_new_account(quota: Quota) -> None:
    assert 0 <= quota.needed(InstanceSettings()) <= quota.new_account


def test_each_setting_that_a_quota_names_changes_what_is_needed() -> None:
    other = {
        "function_runs_max": "200",
        "ingest_tasks_max": "0",
        "compaction_tasks_max": "0",
        "ingest_capacity": "fargate-spot",
        "compaction_capacity": "ec2",
        "task_vcpus": "2",
        "bulk_import_vcpus_max": "64",
    }
    defaults = quotas_needed(InstanceSettings())
    for quota in QUOTAS:
        moved = [
            name
            for name in quota.settings
            if name in other
            and quotas_needed(instance_settings({name: other[name]})).get(quota.code)
            != defaults.get(quota.code)
        ]
        assert moved or quota is NETWORKS, quota.name


@pytest.mark.parametrize(
    ("settings", "on_demand", "spot"),
    [
        ({}, 6, 6),
        ({"compaction_capacity": "fargate"}, 12, 0),
        ({"ingest_capacity": "fargate-spot"}, 3, 9),
        ({"ingest_tasks_max": "0", "compaction_tasks_max": "1"}, 1, 0),
        ({"task_vcpus": "0.25", "task_memory_mib": "1024"}, 2, 2),
        ({"task_vcpus": "4", "task_memory_mib": "8192"}, 24, 24),
    ],
)
def test_processors_of_tasks_are_counted_by_where_they_run(
    settings: dict[str, object], on_demand: int, spot: int
) -> None:
    needed = quotas_needed(instance_settings(settings))
    assert needed[FARGATE_VCPUS.code] == on_demand
    assert needed.get(FARGATE_SPOT_VCPUS.code, 0) == spot


@pytest.mark.parametrize(
    ("settings", "machines", "on_demand"),
    [
        ({"compaction_capacity": "ec2"}, 16, 4),
        ({"ingest_capacity": "ec2", "machines_max": "3"}, 12, 2),
        (
            {
                "ingest_capacity": "ec2",
                "compaction_capacity": "ec2",
                "machine_types": "c7g.large",
                "task_memory_mib": "2048",
                "machines_max": "12",
            },
            24,
            0,
        ),
        ({"machines_max": "100", "machine_types": "c7g.large"}, 0, 6),
    ],
)
def test_processors_of_machines_are_those_of_all_that_may_run(
    settings: dict[str, object], machines: int, on_demand: int
) -> None:
    needed = quotas_needed(instance_settings(settings))
    assert needed.get(MACHINE_VCPUS.code, 0) == machines
    assert needed.get(FARGATE_VCPUS.code, 0) == on_demand


def test_a_network_of_yours_needs_no_other() -> None:
    named = instance_settings({"vpc_id": "vpc-0123456789", "subnet_ids": "subnet-0123456789"})
    assert NETWORKS.code not in quotas_needed(named)


def test_a_quota_is_named_once() -> None:
    assert len({quota.code for quota in QUOTAS}) == len(QUOTAS)
    assert FUNCTION_RUNS.needed(InstanceSettings()) == 10
    assert SPARK_VCPUS.needed(InstanceSettings()) == 16


def test_functions_with_a_queue_share_what_runs_the_account_has() -> None:
    assert QUERIES.runs_max(10) == 2
    assert COMMITS.runs_max(10) == 8
    for shape in (*JOB_QUEUES, *TICK_QUEUES):
        assert shape.runs_max(200) == 20
        assert shape.runs_max(10_000) == 1_000


def deployed(**settings: str) -> Deployment:
    return deployment_of({"instance": "dev", **settings})


@pytest.mark.parametrize(
    "quota",
    [quota for quota in QUOTAS if quota.needed(InstanceSettings())],
    ids=lambda quota: quota.code,
)
def test_an_instance_may_use_all_of_what_its_account_has_and_no_more(quota: Quota) -> None:
    needs = quota.needed(InstanceSettings())
    assert deployed(account_quotas=f"{quota.code}={needs}").settings.account_quotas
    with pytest.raises(
        InvalidError, match=rf"{quota.code}.*needed={needs} account_has={needs - 1}"
    ):
        deployed(account_quotas=f"{quota.code}={needs - 1}")


def test_what_an_account_has_not_does_not_matter_to_stacks_that_are_left_out() -> None:
    has_none = f"{SPARK_VCPUS.code}=0"
    assert deployed(account_quotas=has_none, without="bulk-import")
    with pytest.raises(InvalidError, match="the instance may use more than its account has"):
        deployed(account_quotas=has_none)


@pytest.mark.parametrize(
    ("quotas", "said"),
    [
        ("40", r"give what the account has of quotas of AWS, as `CODE=NUMBER`"),
        (f"{FARGATE_VCPUS.code}=-1", "account_quotas"),
        (f"{FARGATE_VCPUS.code}=40,{FARGATE_VCPUS.code}=50", "a quota is named twice"),
        ("L-00000000=40", rf"not a quota that an instance needs.*{FARGATE_VCPUS.code}"),
    ],
)
def test_what_is_not_a_quota_is_refused(quotas: str, said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        deployed(account_quotas=quotas)
