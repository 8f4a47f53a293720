"""What an account has is compared with what an instance needs."""

import pytest

from lakebed.backends.memory.account import MemoryAccount
from lakebed.config.accounts.quotas import QUOTAS, quotas_needed
from lakebed.config.instance import InstanceSettings, instance_settings
from lakebed.doctor.examine_account import ExamineAccount, QuotaFinding
from lakebed.errors import DeniedError, UnavailableError
from tests.unit.doctor.world import World

NEW = {(quota.service, quota.code): float(quota.new_account) for quota in QUOTAS}
NEEDS = quotas_needed(InstanceSettings())


def by_code(found: list[QuotaFinding]) -> dict[str, QuotaFinding]:
    return {one.code: one for one in found}


def test_default_settings_find_enough_in_a_new_account() -> None:
    found = ExamineAccount(MemoryAccount(NEW, function_runs=10), NEEDS).run()
    assert [one.code for one in found] == [quota.code for quota in QUOTAS]
    assert {(one.state, one.advice) for one in found} == {("enough", "")}


def test_what_is_too_little_is_told_with_its_code_and_the_settings() -> None:
    needs = quotas_needed(instance_settings({"bulk_import_vcpus_max": "64", "task_vcpus": "2"}))
    found = by_code(ExamineAccount(MemoryAccount(NEW, function_runs=10), needs).run())
    spark, tasks = found["L-D05C8A75"], found["L-3032A538"]
    assert (spark.state, spark.has, spark.needs) == ("too little", 16, 64)
    assert spark.advice == (
        "ask Service Quotas for 64 of emr-serverless L-D05C8A75, or deploy with less:"
        " bulk_import_vcpus_max"
    )
    assert (tasks.has, tasks.needs) == (6, 12)
    assert "ingest_tasks_max" in tasks.advice
    assert found["L-B99A9384"].state == "enough"


def test_runs_that_are_reserved_for_others_are_not_there() -> None:
    found = by_code(ExamineAccount(MemoryAccount(NEW, function_runs=7), NEEDS).run())
    runs = found["L-B99A9384"]
    assert (runs.state, runs.has, runs.needs) == ("too little", 7, 10)
    assert "reserve fewer runs for other functions" in runs.advice


@pytest.mark.parametrize(("networks", "state"), [(1, "enough"), (5, "enough"), (6, "too little")])
def test_networks_of_others_are_not_there_and_its_own_is(networks: int, state: str) -> None:
    account = MemoryAccount(NEW, function_runs=10, networks=networks)
    found = by_code(ExamineAccount(account, NEEDS).run())
    assert found["L-F678F1CE"].state == state
    assert found["L-F678F1CE"].has == 6 - networks


def test_what_may_not_be_read_is_told_with_the_permission() -> None:
    def refuses(permission: str) -> None:
        if permission == "lambda:GetAccountSettings":
            raise DeniedError("refused", hint=None, permission=permission)

    found = by_code(ExamineAccount(MemoryAccount(NEW, refuses=refuses), NEEDS).run())
    runs = found.pop("L-B99A9384")
    assert (runs.state, runs.has) == ("not read", None)
    assert runs.advice == "the credentials must permit lambda:GetAccountSettings"
    assert {one.state for one in found.values()} == {"enough"}


def test_what_cannot_be_read_now_or_is_not_there_is_told() -> None:
    def refuses(permission: str) -> None:
        if permission == "ec2:DescribeVpcs":
            raise UnavailableError("the store is busy", hint=None)

    some = {key: value for key, value in NEW.items() if key[0] != "fargate"}
    found = by_code(ExamineAccount(MemoryAccount(some, refuses=refuses), NEEDS).run())
    assert found["L-F678F1CE"].advice == "try again: the store is busy"
    assert found["L-3032A538"].advice == "Service Quotas does not know it here"
    assert {one.state for one in found.values()} == {"enough", "not read"}


def test_an_instance_of_an_earlier_release_is_taken_to_have_default_settings() -> None:
    world = World()
    assert not world.resources.quotas
    world.quotas["emr-serverless", "L-D05C8A75"] = NEEDS["L-D05C8A75"] - 1.0
    assert world.found() == ["quota-spark"]
