"""A new account has few runs of Lambda, and no message of a user dies of that."""

from pathlib import Path
from typing import Any

import pytest

from lakebed.config.accounts.quotas import FARGATE_VCPUS, FUNCTION_RUNS, SPARK_VCPUS
from lakebed.config.job_queues import WORK_HIDDEN_SECONDS
from lakebed.errors import InvalidError
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.deployments.test_reached_alarms import (
    CALLED,
    DEPLOYING,
    names_of,
    of_type,
    schedules_of,
)
from tests.stacks.test_checks import reports
from tests.stacks.test_templates import only, resources

QUOTAS_SECTION = (
    (ROOT / "docs/operate/deploy.md")
    .read_text("utf-8")
    .partition("### Quotas")[2]
    .partition("###")[0]
)
RUNS_MIN = 2
"""The least that Lambda takes as a mapping's MaximumConcurrency."""


def sources(templates: Templates) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """Each mapping's properties, those of its queue, and its function's seconds at most."""
    found = []
    for template in templates.values():
        functions = of_type(template, "AWS::Lambda::Function")
        queues = of_type(template, "AWS::SQS::Queue")
        for source in of_type(template, "AWS::Lambda::EventSourceMapping").values():
            if "ScalingConfig" not in source:
                continue  # it reads a stream
            queue = queues[source["EventSourceArn"]["Fn::GetAtt"][0]]
            seconds = functions[source["FunctionName"]["Ref"]]["Timeout"]
            found.append((source, queue, seconds))
    return found


def seconds_beside_queues(templates: Templates) -> dict[str, int]:
    """How long runs may take that no queue asks for, by their function: those of a schedule, as
    many as there may be at one time where each takes as long as it may; one for each shard of a
    stream, which has one; one that a deployment waits for."""
    found = {}
    for template in templates.values():
        functions = of_type(template, "AWS::Lambda::Function")
        names = names_of(template)
        for id_, apart in schedules_of(template):
            seconds = functions[id_]["Timeout"]
            found[names[id_]] = -(-seconds // apart) * seconds
        for source in of_type(template, "AWS::Lambda::EventSourceMapping").values():
            if "ScalingConfig" not in source:
                id_ = source["FunctionName"]["Ref"]
                found[names[id_]] = functions[id_]["Timeout"]
        for id_, name in names.items():
            if name in DEPLOYING:
                found[name] = functions[id_]["Timeout"]
    return found


def longest_wait(templates: Templates) -> float:
    """How long a message may wait for its run on ten runs, and work, in seconds."""
    found = sources(templates)
    work = sum(s["ScalingConfig"]["MaximumConcurrency"] * seconds for s, _, seconds in found)
    work += sum(seconds_beside_queues(templates).values())
    return work / FUNCTION_RUNS.new_account + max(seconds for _, _, seconds in found)


@pytest.mark.parametrize("instance", ["templates", "with_everything"])
def test_a_message_gets_its_run_while_it_is_out_of_sight_once(
    instance: str, request: pytest.FixtureRequest
) -> None:
    """Lambda receives no more batches of a queue than MaximumConcurrency, and offers one that finds
    no run again until its messages are shown again. So whoever waits, waits for the runs that were
    allowed beside it: their work spread over the account's runs, and its own. That must be shorter
    than the visibility timeout, even where each run takes as long as it may; a message is a dead
    letter after several such times."""
    templates: Templates = request.getfixturevalue(instance)
    found, wait = sources(templates), longest_wait(templates)
    assert len(found) == 10
    for source, queue, _ in found:
        assert source["ScalingConfig"]["MaximumConcurrency"] >= RUNS_MIN
        assert wait < queue["VisibilityTimeout"], queue["QueueName"]
        assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5


def test_each_function_is_counted_or_named_on_the_page(with_everything: Templates) -> None:
    of_queues = set()
    for template in with_everything.values():
        for source in of_type(template, "AWS::Lambda::EventSourceMapping").values():
            of_queues.add(names_of(template)[source["FunctionName"]["Ref"]])
    counted = of_queues | seconds_beside_queues(with_everything).keys()
    functions = {
        name for template in with_everything.values() for name in names_of(template).values()
    }
    assert functions - counted == CALLED - DEPLOYING
    for name in functions - counted:
        assert f"`{name}`" in QUOTAS_SECTION
    assert {"history-handle", "feeds-take", "job-events-publish", "tables-apply"} <= counted


def test_the_page_says_how_long_a_message_may_wait(
    templates: Templates, with_everything: Templates
) -> None:
    said = " ".join(QUOTAS_SECTION.split())
    assert f"out of sight, for {WORK_HIDDEN_SECONDS // 60} minutes" in said
    assert f"{longest_wait(with_everything) / 60:.1f} minutes on ten runs" in said
    assert f"{longest_wait(templates) / 60:.1f} with default settings" in said


def test_one_queue_leaves_runs_of_a_new_account_to_others(templates: Templates) -> None:
    for source, _, _ in sources(templates):
        assert source["ScalingConfig"]["MaximumConcurrency"] < FUNCTION_RUNS.new_account


def test_no_function_reserves_runs(templates: Templates) -> None:
    """An account of ten cannot: Lambda keeps ten unreserved."""
    for function in resources(templates, "AWS::Lambda::Function"):
        assert "ReservedConcurrentExecutions" not in function["Properties"]


def test_spark_is_bounded_by_what_a_new_account_has(templates: Templates) -> None:
    application = only(templates, "AWS::EMRServerless::Application")
    assert application["MaximumCapacity"]["Cpu"] == f"{SPARK_VCPUS.new_account} vCPU"


def test_settings_beyond_a_new_accounts_quotas_are_warned_of(
    synthesize: Synthesize, tmp_path: Path
) -> None:
    synthesize(tmp_path, function_runs_max="200", ingest_tasks_max="20")
    found = [v for report in reports(tmp_path).values() for v in report["violations"]]
    warned = {
        v["ruleName"]: v["description"]
        for v in found
        if v["ruleName"].startswith("Annotation::lakebed:quota-")
    }
    prefix = "Annotation::lakebed:quota-"
    assert warned.keys() == {f"{prefix}{FUNCTION_RUNS.code}", f"{prefix}{FARGATE_VCPUS.code}"}
    said = warned[f"{prefix}{FUNCTION_RUNS.code}"]
    assert "ask Service Quotas for 200 before you deploy" in said
    assert "function_runs_max" in said


def test_nothing_is_synthesized_that_needs_more_than_the_account_has(
    synthesize: Synthesize, tmp_path: Path
) -> None:
    has = f"{FUNCTION_RUNS.code}=100,{FARGATE_VCPUS.code}=40"
    with pytest.raises(InvalidError, match=r"needed=200 account_has=100.*ask Service Quotas for"):
        synthesize(tmp_path, account_quotas=has, function_runs_max="200", ingest_tasks_max="20")
    assert not list(tmp_path.iterdir())


def test_what_an_account_has_is_not_warned_of(synthesize: Synthesize, tmp_path: Path) -> None:
    has = f"{FUNCTION_RUNS.code}=1000,{FARGATE_VCPUS.code}=40"
    synthesize(tmp_path, account_quotas=has, function_runs_max="200", ingest_tasks_max="20")
    found = [v["ruleName"] for report in reports(tmp_path).values() for v in report["violations"]]
    assert not [name for name in found if name.startswith("Annotation::lakebed:quota-")]
