"""What the templates say of functions is what the functions expect, and no more than they need."""

import json
from typing import Any, get_args

import pytest

from lakebed.config.environments import (
    BatchingEnvironment,
    BatchingTriggerEnvironment,
    BulkImportFollowEnvironment,
    BulkImportStartEnvironment,
    CommitterEnvironment,
    CompactionCreationEnvironment,
    DeadLettersEnvironment,
    FunctionEnvironment,
    QueryEnvironment,
    QueryQueueEnvironment,
    ReleaseCheckEnvironment,
    ReportedEnvironment,
    ScheduledWorkEnvironment,
    SubmissionsEnvironment,
    TableFunctionEnvironment,
    TaskStartEnvironment,
    TriggerEnvironment,
    variables_named,
)
from lakebed.config.job_queues import (
    BATCHING,
    BULK_IMPORT_JOBS,
    COMMITS,
    QUERIES,
    SUBMISSIONS,
    TICK_QUEUES,
)
from stacks.permissions import IMPORTS, RESULTS, UNNAMED, Folder, keys_of
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.normalised_templates import of_any_machine
from tests.stacks.test_templates import resources

ENVIRONMENTS: dict[str, type[FunctionEnvironment]] = {
    **{f"{shape.kind}-trigger": TriggerEnvironment for shape in TICK_QUEUES},
    **{f"{shape.kind}-handle": ScheduledWorkEnvironment for shape in TICK_QUEUES},
    "batching-trigger": BatchingTriggerEnvironment,
    "batching-handle": BatchingEnvironment,
    "batching-submit": SubmissionsEnvironment,
    "committer-commit": CommitterEnvironment,
    "compaction-creation-handle": CompactionCreationEnvironment,
    "dead-letters-give-up": DeadLettersEnvironment,
    "bulk-import-follow": BulkImportFollowEnvironment,
    "bulk-import-start": BulkImportStartEnvironment,
    "query-answer": QueryEnvironment,
    "query-handle": QueryQueueEnvironment,
    "sweep-nameless": TableFunctionEnvironment,
    "compaction-tasks-start": TaskStartEnvironment,
    "ingest-tasks-start": TaskStartEnvironment,
    "release-check": ReleaseCheckEnvironment,
}
"""Of each function that is deployed, by its name in an instance."""

REPORTED = variables_named(ReportedEnvironment)
"""What each of them is told, too, that works on the lake."""
DEPLOYING = {"release-check"}
"""Functions that a deployment waits for."""

HANDLERS = [
    f"lambdas.{room}.{verb}.handler"
    for room, verb in (
        ("batching", "handle"),
        ("batching", "submit"),
        ("batching", "trigger"),
        ("bulk_import", "follow"),
        ("bulk_import", "start"),
        ("committer", "commit"),
        ("compaction_tasks", "start"),
        ("dead_letters", "give_up"),
        ("ingest_tasks", "start"),
        ("query", "answer"),
        ("query", "handle"),
        ("release", "check"),
        ("scheduled_work", "handle"),
        ("scheduled_work", "trigger"),
        ("sweep", "nameless"),
    )
]
"""What functions run."""

FUNCTIONS_OF_QUEUES = {
    BATCHING.kind: "batching-handle",
    SUBMISSIONS.kind: "batching-submit",
    COMMITS.kind: "committer-commit",
    QUERIES.kind: "query-handle",
    BULK_IMPORT_JOBS.kind: "bulk-import-start",
    **{shape.kind: f"{shape.kind}-handle" for shape in TICK_QUEUES},
}
"""Who works on what is in a queue."""

SCHEDULES = [
    BATCHING.kind,
    *(shape.kind for shape in TICK_QUEUES),
    "sweep-nameless",
    "dead-letters",
    "compaction-tasks",
    "ingest-tasks",
    "bulk-import",
]

FOLDERS = (
    "/bulk-import/objects/unreadable/*",
    *(f"/{keys_of(folder)}" for folder in get_args(Folder)),
    f"/{RESULTS}",
    f"/{IMPORTS}",
    "/jobruns/*",
)
"""The only parts of buckets that a role names without naming each object; and runs of Spark, which
have ids."""


IN_CLUSTER = ":task/lakebed-dev-tasks/*"
"""Of tasks, which have ids."""

ROLES_WITHOUT_DATA = ("ingest's start", "compaction's start", "log of refused connections")
"""Of Fargate while it starts tasks, and of the network."""
ROLES_OF_OTHERS = ("ingest", "compaction", "Spark's jobs", *ROLES_WITHOUT_DATA)
"""Than functions."""


def properties(templates: Templates, type_: str) -> list[dict[str, Any]]:
    return [resource["Properties"] for resource in resources(templates, type_)]


@pytest.fixture(scope="module")
def functions(templates: Templates) -> dict[str, dict[str, Any]]:
    """By name in the instance."""
    return {
        f["FunctionName"].removeprefix("lakebed-dev-"): f
        for f in properties(templates, "AWS::Lambda::Function")
    }


def test_a_function_is_given_what_it_reads(functions: dict[str, dict[str, Any]]) -> None:
    assert set(functions) == set(ENVIRONMENTS)
    for name, function in functions.items():
        variables = function["Environment"]["Variables"]
        reported = set() if name in DEPLOYING else REPORTED
        assert set(variables) == variables_named(ENVIRONMENTS[name]) | reported, name
        told = variables.get("LAKEBED_PROCESSES_TABLE", "none")
        assert told == ("lakebed-dev-tracker" if reported else "none")


def test_a_function_is_called_as_its_handler(functions: dict[str, dict[str, Any]]) -> None:
    assert {function["Handler"] for function in functions.values()} == set(HANDLERS)
    for name, function in functions.items():
        _, room, verb, _ = function["Handler"].split(".")
        if room != "scheduled_work":
            assert name == f"{room}-{verb}".replace("_", "-")


def test_a_function_that_opens_tables_is_told_the_size_of_its_disk(
    synthesize: Synthesize, templates: Templates
) -> None:
    for mib, told in ((512, templates), (4_096, synthesize(function_disk_mib="4096"))):
        without = set()
        for function in properties(told, "AWS::Lambda::Function"):
            variables = function["Environment"]["Variables"]
            if "LAKEBED_LOG_TABLE" in variables:
                assert variables["LAKEBED_FUNCTION_DISK_MIB"] == str(mib)
                assert function["EphemeralStorage"] == {"Size": mib}
            else:
                assert "EphemeralStorage" not in function
                without.add(function["Handler"].split(".")[2])
        assert without == {"start", "submit", "trigger", "check"}, "these open no table"


def test_what_fails_of_a_batch_comes_back_and_nothing_else(templates: Templates) -> None:
    sources = properties(templates, "AWS::Lambda::EventSourceMapping")
    assert len(sources) == len(FUNCTIONS_OF_QUEUES)
    for source in sources:
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        of_queries = "Queries" in json.dumps(source["EventSourceArn"])
        assert source["BatchSize"] == (1 if of_queries else 10)


def test_a_message_is_out_of_sight_at_least_six_times_as_long_as_a_run_takes(
    templates: Templates,
) -> None:
    queues = {q["QueueName"]: q for q in properties(templates, "AWS::SQS::Queue")}
    functions = {f["FunctionName"]: f for f in properties(templates, "AWS::Lambda::Function")}
    for kind, function in FUNCTIONS_OF_QUEUES.items():
        hidden = queues[f"lakebed-dev-{kind}.fifo"]["VisibilityTimeout"]
        assert hidden >= 6 * functions[f"lakebed-dev-{function}"]["Timeout"]


def without_address(templates: Templates) -> Templates:
    """Return all templates but that of the parameter, which says how the instance was set."""
    return {name: one for name, one in templates.items() if name != "address"}


def test_nothing_but_machine_and_code_differs_between_architectures(
    synthesize: Synthesize, templates: Templates
) -> None:
    there = {name: synthesize(architecture=name) for name in ("arm64", "x86_64")}
    for name, other in there.items():
        functions = properties(other, "AWS::Lambda::Function")
        assert {f["Architectures"][0] for f in functions} == {name}
        assert {f["Runtime"] for f in functions} == {"python3.14"}
        assert without_address(of_any_machine(other)) == without_address(of_any_machine(templates))
        (application,) = properties(other, "AWS::EMRServerless::Application")
        assert application["Architecture"] == name.upper()


def test_schedules_and_functions_rest_while_an_instance_is_paused(
    synthesize: Synthesize, templates: Templates
) -> None:
    for which, running in ((templates, True), (synthesize(paused="true"), False)):
        rules = properties(which, "AWS::Events::Rule")
        assert {rule["Name"] for rule in rules} == {f"lakebed-dev-{name}" for name in SCHEDULES}
        assert {rule["State"] for rule in rules} == {"ENABLED" if running else "DISABLED"}
        sources = properties(which, "AWS::Lambda::EventSourceMapping")
        assert {source["Enabled"] for source in sources} == {running}


def test_each_function_has_a_role_of_its_own_with_exact_statements(templates: Templates) -> None:
    assert not resources(templates, "AWS::IAM::Policy")
    roles = properties(templates, "AWS::IAM::Role")
    assert len(roles) == len(ENVIRONMENTS) + len(ROLES_OF_OTHERS)
    for role in roles:
        assert "ManagedPolicyArns" not in role
        (policy,) = role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            actions = statement["Action"]
            assert "*" not in json.dumps(actions)
            named = statement["Resource"]
            for resource in named if isinstance(named, list) else [named]:
                text = json.dumps(resource)
                if text == '"*"':
                    assert actions in UNNAMED
                elif "*" in text:
                    assert text.rstrip('"]}').endswith((*FOLDERS, IN_CLUSTER)), text


def test_each_function_and_task_may_report_itself_and_reports_of_jobs_are_others(
    templates: Templates,
) -> None:
    partitions: dict[str, list[list[str]]] = {"process#*": [], "job#*": []}
    reporters = 0
    for role in properties(templates, "AWS::IAM::Role"):
        (policy,) = role["Policies"]
        puts = by_action(policy["PolicyDocument"]["Statement"]).get("dynamodb:PutItem", [])
        of_tracker = [one for one in puts if "racker" in json.dumps(one["Resource"])]
        for one in of_tracker:
            keys = one["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            partitions[keys[0]].append(keys)
        reporters += len(of_tracker) > 0
    others = len(ROLES_WITHOUT_DATA)
    assert reporters == len(ENVIRONMENTS) - len(DEPLOYING) + len(ROLES_OF_OTHERS) - others
    assert partitions["process#*"] == [["process#*"]] * reporters
    assert {tuple(keys) for keys in partitions["job#*"]} == {("job#*", "task#*")}


def test_who_writes_files_may_give_up_large_ones(templates: Templates) -> None:
    """Objects above 32 MiB are uploaded in parts. Who writes them may begin and complete that with
    `s3:PutObject`, and reads back what was stored when an answer was lost."""
    writers = 0
    for role in properties(templates, "AWS::IAM::Role"):
        (policy,) = role["Policies"]
        allowed = {
            action: json.dumps([s["Resource"] for s in statements])
            for action, statements in by_action(policy["PolicyDocument"]["Statement"]).items()
        }
        if "tables/*/files/*" in allowed.get("s3:PutObject", ""):
            writers += 1
            assert "tables/*/files/*" in allowed["s3:AbortMultipartUpload"]
            assert "lake/*" in allowed["s3:GetObject"]
    assert writers == 3, "tasks of ingest and compaction, and Spark's jobs"


def by_action(statements: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for statement in statements:
        actions = statement["Action"]
        for action in actions if isinstance(actions, list) else [actions]:
            found.setdefault(action, []).append(statement)
    return found


def test_what_keeps_metrics_of_tables_is_told_to_all_who_log_them(
    synthesize: Synthesize,
) -> None:
    functions = resources(synthesize(table_metrics="true"), "AWS::Lambda::Function")
    found = [f["Properties"].get("Environment", {}).get("Variables", {}) for f in functions]
    of_tables = [variables for variables in found if "LAKEBED_LOG_TABLE" in variables]
    assert len(of_tables) > len(TICK_QUEUES)
    assert {variables["LAKEBED_TABLE_METRICS"] for variables in of_tables} == {"true"}
