"""A small instance in moto, made part by part, for what the doctor reads of AWS."""

import io
import json
import zipfile
from typing import Any

import boto3

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.deployed.parts import AmazonDeployedParts
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId

REGION, ACCOUNT = "us-east-1", "123456789012"
BUCKET = "lakebed-dev-data"


def parts_of(clients: AmazonClients, resources: InstanceResources) -> AmazonDeployedParts:
    return AmazonDeployedParts(clients, resources.instance, lambda: resources)


class Cloud:
    """A small instance in the emulator, with parts of another whose name begins with its own."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        sqs = self.client("sqs")
        dead = sqs.create_queue(
            QueueName="lakebed-dev-garbage-dead.fifo", Attributes={"FifoQueue": "true"}
        )["QueueUrl"]
        self.dead_arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:lakebed-dev-garbage-dead.fifo"
        self.queue = sqs.create_queue(
            QueueName="lakebed-dev-garbage.fifo",
            Attributes={
                "FifoQueue": "true",
                "MessageRetentionPeriod": "1209600",
                "RedrivePolicy": json.dumps(
                    {"deadLetterTargetArn": self.dead_arn, "maxReceiveCount": 5}
                ),
            },
        )["QueueUrl"]
        assert dead
        self._parameters()
        self._functions()
        self._alarms()
        self._stores()
        self.resources = InstanceResources(
            instance=InstanceId("dev"),
            bucket=BUCKET,
            log_table="lakebed-dev-log",
            registry_table="lakebed-dev-registry",
            tracker_table="lakebed-dev-tracker",
            queues={"garbage": self.queue, "sweep": f"{self.queue}-gone"},
        )

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's
        return boto3.client(service, region_name=REGION)

    def _parameters(self) -> None:
        for name in ("dev", "dev-two", "other"):
            self.client("ssm").put_parameter(Name=f"/lakebed/{name}", Value="{}", Type="String")

    def _functions(self) -> None:
        role = self.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
        body = io.BytesIO()
        with zipfile.ZipFile(body, "w") as archive:
            archive.writestr("m.py", "")
        functions = self.client("lambda")
        for name in ("lakebed-dev-garbage-handle", "lakebed-dev-two-garbage-handle"):
            functions.create_function(
                FunctionName=name,
                Runtime="python3.12",
                Role=role["Role"]["Arn"],
                Handler="m.h",
                Code={"ZipFile": body.getvalue()},
            )
        self.source = functions.create_event_source_mapping(
            EventSourceArn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:lakebed-dev-garbage.fifo",
            FunctionName="lakebed-dev-garbage-handle",
        )["UUID"]
        events = self.client("events")
        for name in ("lakebed-dev-garbage", "lakebed-dev-two-garbage"):
            events.put_rule(Name=name, ScheduleExpression="rate(5 minutes)")
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:lakebed-dev-garbage-handle"
        pattern = json.dumps({"source": ["aws.s3"]})
        events.put_rule(Name="lakebed-dev-arrivals-0", EventPattern=pattern)
        events.put_targets(Rule="lakebed-dev-garbage", Targets=[{"Id": "1", "Arn": arn}])

    def _alarms(self) -> None:
        topics = self.client("sns")
        self.topic = topics.create_topic(Name="lakebed-dev-alarms")["TopicArn"]
        topics.subscribe(TopicArn=self.topic, Protocol="email", Endpoint="ops@example.org")
        self.put_alarm("lakebed-dev-garbage-age", AlarmActions=[self.topic])

    def put_alarm(self, name: str, **more: object) -> None:
        self.client("cloudwatch").put_metric_alarm(
            AlarmName=name,
            AlarmDescription="see docs/operate/queue-age.md",
            MetricName="Age",
            Namespace="AWS/SQS",
            Statistic="Maximum",
            Period=300,
            EvaluationPeriods=1,
            Threshold=3_600.0,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
            **more,
        )

    def _stores(self) -> None:
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        s3.put_public_access_block(
            Bucket=BUCKET,
            PublicAccessBlockConfiguration={
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
        )
        self.put_rules()
        statement = {
            "Sid": "ObjectsAreWrittenOnce",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/lake/objects/*",
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(policy))
        for part in ("log", "registry"):
            self._table(f"lakebed-dev-{part}")

    def put_rules(self, *more: dict[str, object]) -> None:
        rules = [
            {
                "ID": "kept",
                "Status": "Enabled",
                "Filter": {"Prefix": ""},
                "NoncurrentVersionExpiration": {"NoncurrentDays": 3},
                "Expiration": {"ExpiredObjectDeleteMarker": True},
            },
            {
                "ID": "old",
                "Status": "Enabled",
                "Filter": {"Prefix": "lake/unfinished/"},
                "Expiration": {"Days": 7},
            },
            {
                "ID": "imports",
                "Status": "Enabled",
                "Filter": {"Prefix": "bulk-import/"},
                "Expiration": {"Days": 30},
            },
            *more,
        ]
        self.client("s3").put_bucket_lifecycle_configuration(
            Bucket=BUCKET, LifecycleConfiguration={"Rules": rules}
        )

    def _table(self, name: str) -> None:
        dynamodb = self.client("dynamodb")
        dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            DeletionProtectionEnabled=True,
        )
        dynamodb.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
