import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.aws.object_store import UNFINISHED
from lakebed.backends.memory.job_queues import RECEIVES_MAX
from lakebed.config.deployments.instance_resources import decode_resources
from lakebed.config.dynamo_tables import DYNAMO_TABLES, DynamoTable
from lakebed.config.instance import IMPORTS_PREFIX, OBJECTS_PREFIX, InstanceId
from lakebed.config.job_queues import ALL_QUEUES, JOB_QUEUES, TICK_QUEUES
from lakebed.errors import InvalidError
from lakebed.model.jobs import (
    BULK_IMPORT_QUEUE,
    COMPACTION_QUEUE,
    INGEST_QUEUE,
    QUERY_QUEUE,
    SUBMISSIONS_QUEUE,
    TICK_KINDS,
)
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from tests.golden import check_golden
from tests.servers.dynamo import create_arguments
from tests.stacks.conftest import CONTEXT, HERE, ROOT, Synthesize, Templates, templates_in
from tests.stacks.deployment_summary import deployment_summary
from tests.stacks.normalised_templates import of_any_machine

SUMMARY_LINES_MAX = 800
DATA = ("AWS::S3::Bucket", "AWS::DynamoDB::Table")
DEPLOYMENT_CHANGED = """\
what is deployed changed. If that is meant, run this test with LAKEBED_GOLDEN=rewrite and review
the difference of tests/golden/deployment.txt.
If only a digest changed, see what did: print the stack's template here and in a worktree of the
commit before, and compare them (`git worktree add ../before COMMIT`):
  python -m tests.stacks.normalised_templates STACK >after.json
  cd ../before && python -m tests.stacks.normalised_templates STACK >before.json
"""


def resources(templates: Templates, *types: str) -> list[dict[str, Any]]:
    return [
        resource
        for template in templates.values()
        for resource in template["Resources"].values()
        if resource["Type"] in types
    ]


def only(templates: Templates, type_: str) -> dict[str, Any]:
    (resource,) = resources(templates, type_)
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_what_is_deployed_is_what_was_reviewed(templates: Templates) -> None:
    summary = deployment_summary(of_any_machine(templates))
    assert summary.count("\n") < SUMMARY_LINES_MAX, "more than a person reviews: say it shorter"
    check_golden("deployment.txt", summary, advice=DEPLOYMENT_CHANGED)


def bucket_of(templates: Templates, part: str) -> dict[str, Any]:
    (found,) = [
        resource["Properties"]
        for resource in resources(templates, "AWS::S3::Bucket")
        if f"-{part}-" in json.dumps(resource["Properties"]["BucketName"])
    ]
    properties: dict[str, Any] = found
    return properties


def test_nobody_from_outside_reaches_a_bucket(templates: Templates) -> None:
    buckets = resources(templates, "AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets:
        assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
        assert bucket["Properties"]["BucketEncryption"]
    policies = resources(templates, "AWS::S3::BucketPolicy")
    assert len(policies) == len(buckets)
    for policy in policies:
        denied = [
            (statement["Effect"], statement["Action"], statement["Condition"])
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        assert denied[:2] == [
            ("Deny", "s3:*", {"Bool": {"aws:SecureTransport": "false"}}),
            ("Deny", "s3:*", {"NumericLessThan": {"s3:TlsVersion": 1.2}}),
        ]
        assert {effect for effect, _, _ in denied} == {"Deny"}


def test_results_of_queries_go_after_some_days(synthesize: Synthesize) -> None:
    bucket = bucket_of(synthesize(results_days="3"), "results")
    assert "VersioningConfiguration" not in bucket
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert rule["ExpirationInDays"] == 3
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "Prefix" not in rule


def test_what_is_left_over_in_the_bucket_goes(synthesize: Synthesize) -> None:
    bucket = bucket_of(synthesize(deleted_days="3"), "data")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    every, unfinished, requests = bucket["LifecycleConfiguration"]["Rules"]
    assert every["Status"] == unfinished["Status"] == "Enabled"
    assert every["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert every["NoncurrentVersionExpiration"] == {"NoncurrentDays": 3}
    assert every["ExpiredObjectDeleteMarker"] is True
    assert "Prefix" not in every
    assert unfinished["Prefix"] == f"{OBJECTS_PREFIX}/{UNFINISHED}/"
    assert unfinished["ExpirationInDays"] == 7
    assert unfinished["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert (requests["Prefix"], requests["ExpirationInDays"]) == (f"{IMPORTS_PREFIX}/", 30)


@pytest.mark.parametrize("table", DYNAMO_TABLES, ids=lambda table: table.part)
def test_tables_are_made_as_tests_make_them(templates: Templates, table: DynamoTable) -> None:
    wanted = create_arguments(f"lakebed-dev-{table.part}", table)
    (made,) = [
        resource["Properties"]
        for resource in resources(templates, "AWS::DynamoDB::Table")
        if resource["Properties"]["TableName"] == wanted["TableName"]
    ]
    assert {name: made.get(name) for name in wanted} == wanted
    assert made["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    expiry = {"AttributeName": table.expiry, "Enabled": True} if table.expiry else None
    assert made.get("TimeToLiveSpecification") == expiry
    stream = {"StreamViewType": "NEW_IMAGE"} if table.streamed else None
    assert made.get("StreamSpecification") == stream


def test_what_cannot_be_made_again_stays_when_the_stacks_go(templates: Templates) -> None:
    kept = resources(templates, *DATA)
    assert len(kept) == 6
    assert {resource["UpdateReplacePolicy"] for resource in kept} == {"Retain"}
    tables = resources(templates, "AWS::DynamoDB::Table")
    assert all(table["Properties"]["DeletionProtectionEnabled"] for table in tables)
    assert {table["DeletionPolicy"] for table in tables} == {"Retain"}, (
        "a rollback of their creation would fail at the protection"
    )
    buckets = resources(templates, "AWS::S3::Bucket")
    assert {bucket["DeletionPolicy"] for bucket in buckets} == {"RetainExceptOnCreate"}


def test_it_goes_where_that_is_asked_for(synthesize: Synthesize) -> None:
    templates = synthesize(data_kept="false")
    assert {r["DeletionPolicy"] for r in resources(templates, *DATA)} == {"Delete"}
    tables = resources(templates, "AWS::DynamoDB::Table")
    assert not any(table["Properties"]["DeletionProtectionEnabled"] for table in tables)


def test_the_parameter_names_what_the_stacks_made(templates: Templates) -> None:
    parameter = only(templates, "AWS::SSM::Parameter")
    assert parameter["Name"] == "/lakebed/dev"
    parts = parameter["Value"]["Fn::Join"][1]
    text = "".join(p if isinstance(p, str) else p["Ref"].removeprefix("AWS::") for p in parts)
    found = decode_resources(text, InstanceId("dev"))
    assert found.bucket == "lakebed-dev-data-AccountId-Region"
    tables = {t["Properties"]["TableName"] for t in resources(templates, "AWS::DynamoDB::Table")}
    named = {found.log_table, found.registry_table, found.tracker_table, found.batches_table}
    assert named == tables
    assert set(found.queues) == {shape.kind for shape in ALL_QUEUES}
    queues = {q["Properties"]["QueueName"] for q in resources(templates, "AWS::SQS::Queue")}
    for url in found.queues.values():
        host, _, name = url.rpartition("/AccountId/")
        assert host == "https://sqs.Region.URLSuffix"
        assert name in queues


def test_each_queue_has_dead_letters_and_alarms_that_name_their_page(
    templates: Templates,
) -> None:
    queues = {q["Properties"]["QueueName"]: q for q in resources(templates, "AWS::SQS::Queue")}
    live = {name for name in queues if not name.endswith("-dead.fifo")}
    shapes = ALL_QUEUES
    assert live == {f"lakebed-dev-{shape.kind}.fifo" for shape in shapes}
    for name in live:
        redrive = queues[name]["Properties"]["RedrivePolicy"]
        assert redrive["maxReceiveCount"] == RECEIVES_MAX
        assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][1] == "Arn"
        assert name.removesuffix(".fifo") + "-dead.fifo" in queues
    for queue in queues.values():
        assert queue["Properties"]["FifoQueue"]
        assert queue["Properties"]["SqsManagedSseEnabled"]
        assert "DeduplicationScope" not in queue["Properties"]
    alarms = [a["Properties"] for a in resources(templates, "AWS::CloudWatch::Alarm")]
    of_queues = {a["AlarmName"] for a in alarms if a["Namespace"] == "AWS/SQS"}
    names = {name.removesuffix(".fifo") for name in live}
    assert of_queues == {f"{name}-{what}" for name in names for what in ("age", "dead-letters")}
    for alarm in alarms:
        page = alarm["AlarmDescription"].rpartition(" ")[2]
        assert (ROOT / page).exists()


def test_queues_are_called_as_those_who_open_them_call_them() -> None:
    assert {s.kind for s in JOB_QUEUES} == {
        COMPACTION_QUEUE,
        COMMIT_QUEUE,
        INGEST_QUEUE,
        QUERY_QUEUE,
        BULK_IMPORT_QUEUE,
        SUBMISSIONS_QUEUE,
    }
    assert {shape.kind for shape in TICK_QUEUES} == set(TICK_KINDS)


def test_everything_that_costs_carries_its_instance(templates: Templates) -> None:
    for resource in resources(templates, *DATA):
        tag = {"Key": "lakebed:instance", "Value": "dev"}
        assert tag in resource["Properties"]["Tags"]


def test_one_commit_gives_one_template_without_account_or_network(
    templates: Templates, tmp_path: Path
) -> None:
    inherited = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    nowhere = "http://127.0.0.1:9"
    run = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={
            **inherited,
            "CDK_OUTDIR": str(tmp_path),
            "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, **HERE, "instance": "dev"}),
            "http_proxy": nowhere,
            "https_proxy": nowhere,
            "AWS_ENDPOINT_URL": nowhere,
            "PYTHONHASHSEED": "7",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert templates_in(tmp_path) == templates
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({}, "no instance is named: add `-c instance=NAME`"),
        ({"instance": "Dev"}, "use 1 to 16 of a-z, 0-9 and single '-'"),
        ({"instance": "a-name-too-long-x"}, "use 1 to 16"),
        ({"file": "nowhere.toml"}, "a file cannot be read .*file=nowhere.toml"),
        ({"instance": "dev", "without": "state"}, "each instance has this stack"),
        ({"instance": "dev", "tags": "aws:x=y"}, "a tag whose name is reserved"),
        ({"instance": "dev", "data_keep": "false"}, "did you mean 'data_kept'"),
        ({"instance": "dev", "deleted_days": "0"}, "deleted_days"),
        ({"instance": "dev", "results_days": "366"}, "results_days"),
        ({"instance": "dev", "bulk_import_vcpus_max": "4"}, "bulk_import_vcpus_max"),
        ({"instance": "dev", "sources": "s3://landing,file"}, "sources"),
        ({"instance": "dev", "architecture": "sparc"}, "architecture"),
        ({"instance": "dev", "paused": "perhaps"}, "paused"),
        ({"instance": "dev", "log_days": "8"}, "log_days"),
        ({"instance": "dev", "key_arn": "alias/mine"}, "key_arn"),
        ({"instance": "dev", "key_arn": "arn:aws:kms:*:123456789012:key/*"}, "key_arn"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_made(
    context: dict[str, object], says: str, tmp_path: Path
) -> None:
    from stacks.instance import instance_app

    with pytest.raises(InvalidError, match=says):
        instance_app({**CONTEXT, **context}, outdir=str(tmp_path))


def test_app_py_imports_what_it_composes_and_nothing_else() -> None:
    tree = ast.parse((ROOT / "app.py").read_text("utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.module]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert imported == {"sys", "lakebed.errors", "stacks.instance"}
