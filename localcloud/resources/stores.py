"""Makers of what keeps things: buckets, tables, queues, parameters. The emulator has them."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from botocore.exceptions import ClientError

from lakebed.errors import InvalidError
from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import ACCOUNT, REGION


def make_bucket(making: Making, properties: Properties) -> Made:
    """Make a bucket with all that its template says; one that is there is taken over."""
    s3 = making.client("s3")
    name = properties.need("BucketName")
    with taken_over("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
        configuration = {"LocationConstraint": REGION}
        s3.create_bucket(Bucket=name, CreateBucketConfiguration=configuration)
    if found := properties.take("VersioningConfiguration"):
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=found)
    if found := properties.take("PublicAccessBlockConfiguration"):
        s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=found)
    if found := properties.take("BucketEncryption"):
        rules = found["ServerSideEncryptionConfiguration"]
        rules = [
            {"ApplyServerSideEncryptionByDefault": r["ServerSideEncryptionByDefault"]}
            for r in rules
        ]
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})
    if found := properties.take("LifecycleConfiguration"):
        rules = [_lifecycle_rule(dict(rule)) for rule in found["Rules"]]
        s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})
    if found := properties.take("OwnershipControls"):
        s3.put_bucket_ownership_controls(Bucket=name, OwnershipControls=found)
    attributes = {
        "Arn": f"arn:aws:s3:::{name}",
        "DomainName": f"{name}.s3.amazonaws.com",
        "RegionalDomainName": f"{name}.s3.{REGION}.amazonaws.com",
    }
    return Made(name, attributes, lambda: s3.delete_bucket(Bucket=name))


def _lifecycle_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule as the service's API writes it."""
    written: dict[str, Any] = {
        "ID": rule.pop("Id", ""),
        "Status": rule.pop("Status"),
        "Filter": {"Prefix": rule.pop("Prefix", "")},
    }
    if found := rule.pop("AbortIncompleteMultipartUpload", None):
        written["AbortIncompleteMultipartUpload"] = found
    if found := rule.pop("NoncurrentVersionExpiration", None):
        written["NoncurrentVersionExpiration"] = found
    expiration: dict[str, Any] = {}
    if (days := rule.pop("ExpirationInDays", None)) is not None:
        expiration["Days"] = days
    if (marks := rule.pop("ExpiredObjectDeleteMarker", None)) is not None:
        expiration["ExpiredObjectDeleteMarker"] = marks
    if expiration:
        written["Expiration"] = expiration
    if rule:
        hint = "teach it localcloud/resources/stores.py"
        raise InvalidError("a lifecycle rule that is not known", rule=rule, hint=hint)
    return written


def make_bucket_policy(making: Making, properties: Properties) -> Made:
    """Set who may reach a bucket; the emulator judges by it."""
    s3 = making.client("s3")
    bucket = properties.need("Bucket")
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(properties.need("PolicyDocument")))
    return Made(f"{bucket}-policy", {}, lambda: s3.delete_bucket_policy(Bucket=bucket))


def make_table(making: Making, properties: Properties) -> Made:
    """Make a table of DynamoDB, with expiry, recovery and a stream; one that is there is taken
    over."""
    dynamodb = making.client("dynamodb")
    name = properties.need("TableName")
    expiry = properties.take("TimeToLiveSpecification")
    recovery = properties.take("PointInTimeRecoverySpecification")
    streamed = properties.take("StreamSpecification")
    stream = {"StreamSpecification": {"StreamEnabled": True, **streamed}} if streamed else {}
    properties.take("Tags")
    with taken_over("ResourceInUseException"):
        dynamodb.create_table(TableName=name, **properties.rest(), **stream)
        if expiry:
            dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
        if recovery:
            dynamodb.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification=recovery
            )
    attributes = {"Arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"}
    if streamed:
        table = dynamodb.describe_table(TableName=name)["Table"]
        if "LatestStreamArn" not in table:  # it was made by an older assembly
            table = dynamodb.update_table(TableName=name, **stream)["TableDescription"]
        attributes["StreamArn"] = table["LatestStreamArn"]

    def remove() -> None:
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=name)

    return Made(name, attributes, remove)


def make_queue(making: Making, properties: Properties) -> Made:
    """Make a queue; one that is there gets the attributes that the template says."""
    sqs = making.client("sqs")
    name = properties.need("QueueName")
    properties.take("Tags")
    wanted = {key: _attribute(value) for key, value in properties.rest().items()}
    with taken_over("QueueNameExists", "QueueAlreadyExists"):
        sqs.create_queue(QueueName=name, Attributes=wanted)
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    changeable = {key: value for key, value in wanted.items() if key != "FifoQueue"}
    if changeable:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=changeable)
    attributes = {"Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}", "QueueName": name}
    return Made(url, {**attributes, "QueueUrl": url}, lambda: sqs.delete_queue(QueueUrl=url))


def _attribute(value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def make_queue_policy(making: Making, properties: Properties) -> Made:
    """Set who may reach queues; the emulator judges by it."""
    sqs = making.client("sqs")
    policy = json.dumps(properties.need("PolicyDocument"))
    for url in properties.need("Queues"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    return Made(f"{properties.logical_id}-policy")


def make_parameter(making: Making, properties: Properties) -> Made:
    """Write a parameter of SSM."""
    ssm = making.client("ssm")
    name = properties.need("Name")
    properties.take("Tags")
    rest = properties.rest()
    ssm.put_parameter(Name=name, Overwrite=True, **rest)
    attributes = {"Type": rest.get("Type"), "Value": rest.get("Value")}
    return Made(name, attributes, lambda: ssm.delete_parameter(Name=name))


class taken_over:  # noqa: N801 - reads as contextlib's `suppress` does
    """Suppresses the answers by which a service says that something is there already."""

    def __init__(self, *codes: str) -> None:
        self._codes = codes

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, ClientError):
            return False
        code = str(error.response.get("Error", {}).get("Code", "")).rpartition(".")[2]
        return code in self._codes
