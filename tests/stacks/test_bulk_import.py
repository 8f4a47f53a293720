"""What Spark is started with on EMR Serverless, and what its jobs may do."""

import json
import re
import subprocess
import sys
from typing import Any

from lakebed.backends.aws.spark.submit_conf import CONF
from stacks.bulk_import import GB_PER_VCPU
from stacks.constructs.python_bundle import SPARK, PythonBundle, target_of
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_templates import only, resources

ARN = re.compile(r'":s3:::([^"]*)"')


def job_role(templates: Templates) -> list[dict[str, Any]]:
    """Return the statements of the role that EMR Serverless gives to jobs."""
    (found,) = [
        role["Properties"]
        for role in resources(templates, "AWS::IAM::Role")
        if "emr-serverless" in json.dumps(role["Properties"]["AssumeRolePolicyDocument"])
    ]
    (policy,) = found["Policies"]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return statements


def test_an_application_costs_nothing_while_nothing_runs(synthesize: Synthesize) -> None:
    application = only(synthesize(bulk_import_vcpus_max="16"), "AWS::EMRServerless::Application")
    assert application["ReleaseLabel"] == "emr-spark-8.0.0"
    assert application["MaximumCapacity"] == {"Cpu": "16 vCPU", "Memory": "64 GB"}
    assert application["AutoStartConfiguration"] == {"Enabled": True}
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 5}
    assert application["SchedulerConfiguration"] == {
        "MaxConcurrentRuns": 2,
        "QueueTimeoutMinutes": 720,
    }
    assert "InitialCapacity" not in application
    assert "NetworkConfiguration" not in application


def test_a_driver_and_an_executor_fit_into_the_smallest_capacity() -> None:
    def gib(who: str) -> int:
        memory = (CONF[f"spark.{who}.{what}"] for what in ("memory", "memoryOverhead"))
        return sum(int(text.removesuffix("g")) for text in memory)

    cores = {who: int(CONF[f"spark.{who}.cores"]) for who in ("driver", "executor")}
    assert sum(cores.values()) <= 8
    assert gib("driver") + gib("executor") <= 8 * GB_PER_VCPU
    assert gib("executor") >= 2 * cores["executor"]  # as EMR Serverless pairs them
    assert gib("driver") in range(4, 17)


def test_jobs_read_sources_and_nothing_else_of_users(synthesize: Synthesize) -> None:
    statements = job_role(synthesize(sources="s3://landing/files,s3://more"))
    assert not [a for s in statements for a in actions(s) if a.startswith(("sqs:", "iam:", "emr"))]
    of_users = {
        (action, "".join(filter(None, ARN.findall(json.dumps(resource)))), json.dumps(condition))
        for statement in statements
        for action in actions(statement)
        for resource in listed(statement["Resource"])
        for condition in [statement.get("Condition", {})]
    }
    assert {one for one in of_users if one[1].startswith(("landing", "more"))} == {
        ("s3:GetObject", "landing/files/*", "{}"),
        ("s3:GetObject", "more/*", "{}"),
        ("s3:ListBucket", "landing", '{"StringLike": {"s3:prefix": "files/*"}}'),
        ("s3:ListBucket", "more", "{}"),
    }


def actions(statement: dict[str, Any]) -> list[str]:
    return [str(action) for action in listed(statement["Action"])]


def listed(told: object) -> list[Any]:
    return told if isinstance(told, list) else [told]


def test_a_driver_imports_with_nothing_but_its_bundle_and_spark() -> None:
    folder = PythonBundle(SPARK, target_of("machine")).folder
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import lakebed.bootstrap.tasks.bulk_import_run"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "spark_jobs" / "main.py").exists()
    assert not (folder / "lambdas").exists()
