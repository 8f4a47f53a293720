"""Small assemblies written by hand, as `cdk synth` would leave them."""

import json
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RUNTIME = f"python3.{sys.version_info.minor}"
SDK = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")

DOCKERFILE = """\
FROM python
WORKDIR /app
COPY app.py code/app.py
ENV LAKEBED_CACHE=/tmp/cache LAKEBED_CODE=/app/code
CMD ["python", "code/app.py"]
"""

Resources = dict[str, dict[str, Any]]


def write_assembly(
    folder: Path, stacks: Mapping[str, Resources], *, image: str = "", **codes: str
) -> Path:
    """Write stacks, each depending on the one before, and a bundle of each code with boto3.

    image: code that the only image runs, as the module `app`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, code in codes.items():
        bundle = folder / f"asset.{name}"
        bundle.mkdir()
        (bundle / "app.py").write_text(code)
        for part in SDK:
            (bundle / part).symlink_to(Path(sysconfig.get_path("purelib")) / part)
        files[name] = {"source": {"path": bundle.name, "packaging": "zip"}}
    context = folder / "asset.image"
    context.mkdir()
    (context / "app.py").write_text(image)
    (context / "Dockerfile").write_text(DOCKERFILE)
    images = {"image": {"source": {"directory": context.name}}}
    artifacts: dict[str, Any] = {"Tree": {"type": "cdk:tree", "properties": {}}}
    before: list[str] = []
    for name, resources in stacks.items():
        template = {"Resources": resources}
        (folder / f"{name}.template.json").write_text(json.dumps(template))
        (folder / f"{name}.assets.json").write_text(
            json.dumps({"files": files, "dockerImages": images})
        )
        artifacts = {
            name: {
                "type": "aws:cloudformation:stack",
                "properties": {"templateFile": f"{name}.template.json", "stackName": name},
                "dependencies": before,
            },
            **artifacts,  # the other way round: their order comes from what they depend on
        }
        before = [name]
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


def arn(id_: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [id_, "Arn"]}


def queue(name: str, *, dead: str | None = None, receives_max: int = 2, **more: object) -> dict:
    redrive = (
        {"RedrivePolicy": {"deadLetterTargetArn": arn(dead), "maxReceiveCount": receives_max}}
        if dead
        else {}
    )
    properties = {"QueueName": f"{name}.fifo", "FifoQueue": True, **redrive, **more}
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def role(*statements: tuple[list[str], Any]) -> dict[str, Any]:
    """Return a role for functions, with (actions, resource) each."""
    document = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": resource}
            for actions, resource in statements
        ],
    }
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "lambda.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    policies = [{"PolicyName": "own", "PolicyDocument": document}]
    properties = {"AssumeRolePolicyDocument": trust, "Policies": policies}
    return {"Type": "AWS::IAM::Role", "Properties": properties}


def task(family: str, role_id: str, **environment: str) -> dict[str, Any]:
    variables = [{"Name": name, "Value": value} for name, value in environment.items()]
    image = {"Fn::Sub": "${AWS::AccountId}.dkr.ecr.${AWS::Region}.${AWS::URLSuffix}/assets:image"}
    properties = {
        "Family": family,
        "ContainerDefinitions": [
            {"Name": "worker", "Image": image, "Environment": variables, "StopTimeout": 1}
        ],
        "Cpu": "1024",
        "Memory": "2048",
        "TaskRoleArn": arn(role_id),
    }
    return {"Type": "AWS::ECS::TaskDefinition", "Properties": properties}


def function(name: str, handler: str, role_id: str, *, code: str = "code", **more: object) -> dict:
    properties = {
        "FunctionName": name,
        "Handler": handler,
        "Runtime": RUNTIME,
        "Role": arn(role_id),
        "Code": {"S3Bucket": "assets", "S3Key": f"{code}.zip"},
        "Timeout": 3,
        "MemorySize": 256,
        **more,
    }
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def source(queue_id: str, function_id: str, **more: object) -> dict[str, Any]:
    properties = {
        "EventSourceArn": arn(queue_id),
        "FunctionName": {"Ref": function_id},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        **more,
    }
    return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": properties}


def rule(name: str, expression: str, function_id: str, **more: object) -> dict[str, Any]:
    target = {"Arn": arn(function_id), "Id": "Target0"}
    properties = {"Name": name, "ScheduleExpression": expression, "Targets": [target], **more}
    return {"Type": "AWS::Events::Rule", "Properties": properties}


def permission(function_id: str, rule_id: str) -> dict[str, Any]:
    properties = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": arn(function_id),
        "Principal": "events.amazonaws.com",
        "SourceArn": arn(rule_id),
    }
    return {"Type": "AWS::Lambda::Permission", "Properties": properties}


def alarm(
    name: str, namespace: str, metric: str, *, tells: str | None = None, **dimensions: object
) -> dict[str, Any]:
    """tells: the id of a topic."""
    properties = {
        **({"AlarmActions": [{"Ref": tells}]} if tells else {}),
        "AlarmName": name,
        "Namespace": namespace,
        "MetricName": metric,
        "Dimensions": [{"Name": n, "Value": v} for n, v in dimensions.items()],
        "Statistic": "Maximum",
        "Period": 300,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
    }
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}


def notices(topic_id: str, queue_name: str) -> dict[str, Any]:
    """Return a topic, and the subscription and the policy of a queue that hears of it."""
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn("Heard"),
    }
    document = {"Version": "2012-10-17", "Statement": [allowed]}
    return {
        topic_id: {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "alarms"}},
        "Heard": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": queue_name}},
        "HeardPolicy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {"Queues": [{"Ref": "Heard"}], "PolicyDocument": document},
        },
        "Hears": {
            "Type": "AWS::SNS::Subscription",
            "Properties": {
                "TopicArn": {"Ref": topic_id},
                "Protocol": "sqs",
                "Endpoint": arn("Heard"),
            },
        },
    }


def invoke_config(function_id: str, *, retries: int) -> dict[str, Any]:
    properties = {
        "FunctionName": {"Ref": function_id},
        "Qualifier": "$LATEST",
        "MaximumRetryAttempts": retries,
    }
    return {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": properties}


def outcomes(name: str) -> dict[str, Any]:
    """Return a table of DynamoDB with a partition key."""
    properties = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties}
