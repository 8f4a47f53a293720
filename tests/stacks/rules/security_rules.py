"""What templates must say so that no service, writer or reader of logs gets more than it should.

Each rule returns its findings, one line for each: none means that templates keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakebed.config.instance import IMPORTS_PREFIX, OBJECTS_PREFIX
from tests.stacks.conftest import Templates
from tests.stacks.deployment_summary import ID_HASH, References

ACCOUNT = "{AccountId}"
WITHOUT_SOURCE = {"ec2.amazonaws.com", "lambda.amazonaws.com"}
"""Services that AWS documents to tell nobody for whom they take a role."""
RESOURCE_POLICIES = ("AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy")
WRITTEN_ONCE = {
    "Null": {"s3:if-none-match": "true"},
    "Bool": {"s3:ObjectCreationOperation": "true"},
}

ROLES_WITHOUT_DATA = {
    "clusters ServiceRole",
    "compaction TasksExecutionRole",
    "feeds TasksExecutionRole",
    "ingest TasksExecutionRole",
    "networking MachinesRole",
    "networking RefusedRole",
}
"""Of EMR, of ECS while it starts tasks, of its agents, and of the network; by stack and id."""
MEETS_DATA = {
    *(f"dynamodb:{action}" for action in ("GetItem", "PutItem", "Query", "UpdateItem")),
    *(f"s3:{action}" for action in ("GetObject", "PutObject")),
    *(f"sqs:{action}" for action in ("ReceiveMessage", "SendMessage")),
}
"""Actions for which the service asks KMS in the name of who does them."""
INSTANCE = "dev"

Found = tuple[str, dict[str, Any]]
"""A resource, by stack and id, and its properties with text in place of expressions."""


def of_type(templates: Templates, *types: str) -> Iterator[Found]:
    references = References(templates)
    for stack, template in templates.items():
        for id_, resource in template["Resources"].items():
            if resource["Type"] in types:
                yield f"{stack} {id_}", references.resolved(resource["Properties"], stack)


def services_without_source(templates: Templates) -> list[str]:
    """Each statement that lets a service of AWS in says for which account and resource."""
    found = []
    for name, role in of_type(templates, "AWS::IAM::Role"):
        found += _unbound(name, role["AssumeRolePolicyDocument"], WITHOUT_SOURCE)
    for name, policy in of_type(templates, *RESOURCE_POLICIES):
        found += _unbound(name, policy["PolicyDocument"], set())
    for name, key in of_type(templates, "AWS::KMS::Key"):
        found += _unbound(name, key["KeyPolicy"], set())
    for name, permission in of_type(templates, "AWS::Lambda::Permission"):
        if not str(permission.get("SourceArn", "")).startswith(("@", "arn:")):
            found.append(f"{name}: {permission['Principal']} may call for anybody")
    return found


def _unbound(name: str, document: dict[str, Any], exempt: set[str]) -> list[str]:
    found = []
    for statement in document["Statement"]:
        principal = statement["Principal"]
        named = principal.get("Service", []) if isinstance(principal, dict) else []
        services = {named} if isinstance(named, str) else set(named)
        if statement["Effect"] != "Allow" or not services - exempt:
            continue
        conditions = statement.get("Condition", {})
        if conditions.get("StringEquals", {}).get("aws:SourceAccount") != ACCOUNT:
            found.append(f"{name}: {', '.join(sorted(services))} may ask for any account")
        arns = [
            keys.get("aws:SourceArn", "")
            for operator, keys in conditions.items()
            if operator in ("ArnLike", "ArnLikeIfExists")
        ]
        if not any(f":{ACCOUNT}:" in arn or arn.startswith("@") for arn in arns):
            found.append(f"{name}: {', '.join(sorted(services))} may ask for any resource")
    return found


def logs_without_key(templates: Templates, key: str) -> list[str]:
    """Each log group is encrypted with a key."""
    return [
        f"{name}: {log['LogGroupName']} is not encrypted with the instance's key"
        for name, log in of_type(templates, "AWS::Logs::LogGroup")
        if log.get("KmsKeyId") != key
    ]


def roles_without_key(templates: Templates, key: str) -> list[str]:
    """Each role may use the key for S3, SQS and DynamoDB, and no other key, but for a few that meet
    no data. What a role without policies of its own may do is in policies of people."""
    found = []
    for name, role in of_type(templates, "AWS::IAM::Role"):
        statements = [s for p in role.get("Policies", []) for s in p["PolicyDocument"]["Statement"]]
        of_key = [s for s in statements if "kms:" in str(s["Action"])]
        if not of_key:
            if statements and ID_HASH.sub("", name) not in ROLES_WITHOUT_DATA:
                found.append(f"{name}: may not use the key")
            continue
        direct = {a for s in of_key if "Condition" not in s for a in s["Action"]}
        through = {a for s in of_key if "Condition" in s for a in s["Action"]}
        if direct != {"kms:Decrypt", "kms:GenerateDataKey"}:
            found.append(f"{name}: uses the key directly for {sorted(direct)}")
        if through != {f"kms:{a}" for a in ("DescribeKey", "Encrypt", *_RE_ENCRYPT)}:
            found.append(f"{name}: DynamoDB uses the key for {sorted(through)}")
        if {s["Resource"] for s in of_key} != {key}:
            found.append(f"{name}: may use another key")
    return found


_RE_ENCRYPT = ("ReEncryptFrom", "ReEncryptTo")


def people_without_key(templates: Templates, key: str) -> list[str]:
    """Each policy of people lets the key be used through the services by which it gives data of the
    instance, and no other key."""
    found = []
    for name, policy in of_type(templates, "AWS::IAM::ManagedPolicy"):
        statements = policy["PolicyDocument"]["Statement"]
        of_key = [s for s in statements if "kms:" in str(s["Action"])]
        for action, services in _used_through(statements).items():
            through = {via for s in of_key if action in s["Action"] for via in _services_of(s)}
            found += [f"{name}: no {action} through {one}" for one in sorted(services - through)]
        if {s["Resource"] for s in of_key} - {key}:
            found.append(f"{name}: may use another key")
    return found


def _services_of(statement: dict[str, Any]) -> set[str]:
    """Return the services that a statement on a key names: it is used through these only."""
    equal = statement.get("Condition", {}).get("StringEquals", {})
    return {str(via).partition(".")[0] for via in equal.get("kms:ViaService", [])}


def _used_through(statements: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Return the actions on a key that statements on data need, each with the services."""
    services = {
        action.partition(":")[0]
        for s in statements
        for action in MEETS_DATA.intersection(_listed(s["Action"]))
        if any(f"lakebed-{INSTANCE}-" in resource for resource in _listed(s["Resource"]))
    }
    return {"kms:Decrypt": services, "kms:DescribeKey": services & {"dynamodb"}}


def objects_written_twice(templates: Templates) -> list[str]:
    """The bucket refuses a write of an immutable object that does not fail where one is."""
    wanted = {f"@Bucket.Arn/{p}/objects/*" for p in (OBJECTS_PREFIX, IMPORTS_PREFIX)}
    denied = {
        resource
        for _, policy in of_type(templates, "AWS::S3::BucketPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Principal"] == {"AWS": "*"}
        and statement["Action"] == "s3:PutObject"
        and statement["Condition"] == WRITTEN_ONCE
        for resource in statement["Resource"]
    }
    return [f"{resource}: may be overwritten" for resource in sorted(wanted - denied)]


def spark_without_lists(templates: Templates) -> list[str]:
    """Each role that reads the program of Spark lists each bucket where it reads, below those
    prefixes."""
    found = []
    for name, role in of_type(templates, "AWS::IAM::Role"):
        statements = [s for p in role.get("Policies", []) for s in p["PolicyDocument"]["Statement"]]
        read = {
            resource
            for statement in statements
            if "s3:GetObject" in statement["Action"]
            for resource in _listed(statement["Resource"])
        }
        if any(resource.endswith(".py") for resource in read):
            listed = _prefixes_listed(statements)
            missing = {one for one in read if not one.startswith(listed)}
            found += [f"{name}: {one}: read, and not listed" for one in sorted(missing)]
    return found


def _prefixes_listed(statements: list[dict[str, Any]]) -> tuple[str, ...]:
    listed: set[str] = set()
    for statement in statements:
        if "s3:ListBucket" in statement["Action"]:
            prefixes = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix", "*")
            listed |= {f"{statement['Resource']}/{prefix}" for prefix in _listed(prefixes)}
    return tuple(prefix.removesuffix("*") for prefix in listed)


def _listed(told: object) -> list[str]:
    return [str(one) for one in told] if isinstance(told, list) else [str(told)]
