"""The text that a person reviews: a line for each thing that a deployment makes.

The summary is made from normalised templates. It shows each resource with its settings, and lines
of their own for what it holds: grants, the environment, rules. What it leaves out
(`LEFT_TO_DIGESTS`) is held by the digest of each stack.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tests.stacks.normalised_templates import HIDDEN, Templates, digest

ABOUT = """\
# What is deployed as an instance called `dev` with default settings.
# Each line begins with its stack and the name of a resource; then follows one of:
#
#   TYPE #HASH SETTINGS   The resource. The hash ends its id: CloudFormation replaces a resource
#                         whose id changes. Behind a semicolon: who may assume a role, and what a
#                         resource holds if that is one thing.
#   allow, deny           A grant, to this role or by this policy: to whom, what, on what, when.
#   env NAME=VALUE, ...   The environment of a function or task.
#   SETTING: ...          One item of a setting that is a list.
#   digest                The stack's whole template, with what no line shows: tags, outputs,
#                         the dashboard's body, what waits for what.
#
# @name is another resource of the stack, @stack/name one of another stack, @name.Arn its attribute.
# "-" stands for a setting that is not set.
# `python -m tests.stacks.normalised_templates STACK` prints the template that a digest stands for.
"""

SENTENCES = {
    "AWS::CloudWatch::Alarm": "{AlarmName}: {Namespace} {MetricName} of {Dimensions}, {Statistic} "
    "{ComparisonOperator} {Threshold} in {EvaluationPeriods} x {Period} s, "
    'without data {TreatMissingData}, "{AlarmDescription}"',
    "AWS::ECS::TaskDefinition": "{Family}: {Cpu} CPU units, {Memory} MiB",
    "AWS::Events::Rule": "{Name}: {ScheduleExpression}, {State}",
    "AWS::Lambda::EventSourceMapping": "from {EventSourceArn} to {FunctionName}: {BatchSize} "
    "messages at once, {ScalingConfig.MaximumConcurrency} runs at once",
    "AWS::Lambda::Function": "{FunctionName}: {MemorySize} MiB, {Timeout} s, {Handler}",
    "AWS::SQS::Queue": "{QueueName}: kept for {MessageRetentionPeriod} s",
}
"""What is said first of a type of resource; its other settings follow as `name=value`."""

SIGNS = {
    "GreaterThanOrEqualToThreshold": ">=",
    "GreaterThanThreshold": ">",
    "LessThanOrEqualToThreshold": "<=",
    "LessThanThreshold": "<",
}

LEFT_TO_DIGESTS = {"Code", "DashboardBody", "DependsOn", "Tags"}
"""Settings without a line: long, or alike everywhere."""

Json = Any
"""What `json.loads` returns."""

ID_HASH = re.compile(r"[0-9A-F]{8}$")


class References:
    """Turns what templates say of other resources into text."""

    def __init__(self, templates: Templates) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self._exports: dict[str, tuple[str, Any]] = {}
        for stack, template in templates.items():
            ids = list(template.get("Resources", {}))
            often = Counter(ID_HASH.sub("", id_) for id_ in ids)
            self._names[stack] = {
                id_: short if often[short := ID_HASH.sub("", id_)] == 1 else id_ for id_ in ids
            }
            for output in template.get("Outputs", {}).values():
                if "Export" in output:
                    self._exports[output["Export"]["Name"]] = (stack, output["Value"])

    def name(self, stack: str, id_: str) -> str:
        """Return a resource's id without the hash that ends it, where that names one resource."""
        return self._names[stack].get(id_, id_)

    def resolved(self, value: Json, stack: str, prefix: str = "@") -> Json:
        """Return a value of a stack's template with text in place of CloudFormation's functions."""
        if isinstance(value, list):
            return [self.resolved(item, stack, prefix) for item in value]
        if not isinstance(value, dict):
            return value
        match list(value.items()):
            case [("Ref", str(id_))]:
                pseudo = id_.removeprefix("AWS::")
                return f"{{{pseudo}}}" if pseudo != id_ else prefix + self.name(stack, id_)
            case [("Fn::GetAtt", [id_, attribute])]:
                return f"{prefix}{self.name(stack, id_)}.{attribute}"
            case [("Fn::ImportValue", str(export))] if export in self._exports:
                other, exported = self._exports[export]
                return self.resolved(exported, other, f"@{other}/")
            case [("Fn::Join", [separator, list(parts)])]:
                texts = [str(self.resolved(part, stack, prefix)) for part in parts]
                return separator.join(texts)
            case [("Fn::Sub", str(text))]:
                return re.sub(r"\$\{AWS::(\w+)\}", r"{\1}", text)
            case [(str(function), argument)] if function.startswith("Fn::"):
                text = _text(self.resolved(argument, stack, prefix))
                return f"{function.removeprefix('Fn::')}({text})"
        return {key: self.resolved(item, stack, prefix) for key, item in value.items()}


def deployment_summary(templates: Templates) -> str:
    """Return the summary of normalised templates.

    Lines are sorted by stack and resource.
    """
    references = References(templates)
    parts = [ABOUT]
    for stack, template in sorted(templates.items()):
        lines = [f"{stack} digest {digest(template)}"]
        named = sorted((references.name(stack, id_), id_) for id_ in template["Resources"])
        for name, id_ in named:
            resource = references.resolved(template["Resources"][id_], stack)
            lines += [f"{stack} {name} {line}" for line in _lines(id_, resource)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _lines(id_: str, resource: Mapping[str, Any]) -> list[str]:
    """Return the lines of a resource: its own, then those of what it holds, sorted.

    Its own line also says who may assume it, or the one thing that it holds.
    """
    type_ = resource["Type"]
    rest = {key: value for key, value in resource.items() if key not in ("Type", "Properties")}
    shown = {
        key: value
        for key, value in (dict(resource.get("Properties", {})) | rest).items()
        if key not in LEFT_TO_DIGESTS
    }
    env = _environment(shown)
    beside = list(_grants(shown.pop("AssumeRolePolicyDocument", {"Statement": []})))
    held = sorted(_held(type_, shown))
    if not beside and len(held) == 1:
        beside, held = held, []
    settings = dict(_settings(shown))
    sentence = re.sub(
        r"\{([\w.]+)\}", lambda field: settings.pop(field[1], "-"), SENTENCES.get(type_, "")
    )
    found = ID_HASH.search(id_)
    title = [type_.removeprefix("AWS::"), *([f"#{found[0]}"] if found else [])]
    others = [f"{name}={value}" for name, value in sorted(settings.items())]
    own = " ".join([*title, ", ".join(filter(None, [sentence, *others]))]).rstrip()
    return ["; ".join([own, *beside]), *env, *held]


def _environment(shown: dict[str, Any]) -> list[str]:
    """Take the environment of a function or of a task's containers out of what is shown.

    Returns a line for each that has variables.
    """
    function = shown.pop("Environment", {}).get("Variables", {})
    containers = [
        {pair["Name"]: pair["Value"] for pair in container.pop("Environment", [])}
        for container in shown.get("ContainerDefinitions", [])
    ]
    return [
        "env " + ", ".join(f"{name}={_text(value)}" for name, value in sorted(variables.items()))
        for variables in [function, *containers]
        if variables
    ]


def _held(type_: str, shown: dict[str, Any]) -> Iterator[str]:
    """Yield lines of what a resource holds, and take that out of what is shown."""
    for policy in shown.pop("Policies", []):
        yield from _grants(policy["PolicyDocument"])
    yield from _grants(shown.pop("PolicyDocument", {"Statement": []}))
    if type_ == "AWS::Lambda::Permission":
        yield from _grants({"Statement": [_statement_of(shown)]})
    if type_ == "AWS::SSM::Parameter":
        yield from (f"value {key}={value}" for key, value in _settings(json.loads(shown["Value"])))
        del shown["Value"]
    for path, row in _rows(shown):
        settings = sorted(_settings(row))
        yield f"{path}: " + ", ".join(f"{name}={value}" for name, value in settings)


def _statement_of(permission: dict[str, Any]) -> dict[str, Any]:
    """Take what a function's permission says out of it, as a statement of a policy."""
    statement = {"Effect": "Allow", "Resource": permission.pop("FunctionName")}
    statement |= {key: permission.pop(key) for key in ("Principal", "Action")}
    if "SourceArn" in permission:
        statement["Condition"] = {"ArnLike": {"aws:SourceArn": permission.pop("SourceArn")}}
    return statement


def _grants(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each grant: statements that differ in their resources alone are one."""
    resources: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for statement in document["Statement"]:
        resources[_grant(statement)].update(_listed(statement.get("Resource", [])))
    for (head, tail), found in resources.items():
        on = f"on {', '.join(sorted(found))}" if found else ""
        yield " ".join(filter(None, [head, on, tail]))


def _grant(statement: Mapping[str, Any]) -> tuple[str, str]:
    """Return what stands before and behind the resources of a statement."""
    rest = {name: value for name, value in statement.items() if name != "Resource"}
    effect = rest.pop("Effect").lower()
    principal = rest.pop("Principal", {})
    who = dict(_settings(principal if isinstance(principal, dict) else {"Service": principal}))
    actions = ", ".join(sorted(_listed(rest.pop("Action", []))))
    conditions = [
        f"{operator} {key} {' or '.join(_listed(value))}"
        for operator, keys in sorted(rest.pop("Condition", {}).items())
        for key, value in sorted(keys.items())
    ]
    tail = ["if " + " and ".join(conditions)] if conditions else []
    tail += [f"with {key}={value}" for key, value in sorted(_settings(rest))]
    head = [effect, *(f"{kind}={name}" for kind, name in who.items()), actions]
    return " ".join(filter(None, head)), " ".join(tail)


def _settings(value: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting of a value with its path, but for lists of mappings (`_rows`)."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _settings(item, f"{path}.{key}" if path else key)
    elif path and not _is_rows(value) and value not in (HIDDEN, [HIDDEN]):
        yield path, _text(value)


def _rows(value: Json, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mapping that stands in a list, with the path of the list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _rows(item, f"{path}.{key}" if path else key)
    elif _is_rows(value):
        for row in value:
            yield path, row
            yield from _rows(row, path)


def _is_rows(value: Json) -> bool:
    has_mappings = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return has_mappings and not _are_pairs(value)


def _are_pairs(values: list[Any]) -> bool:
    return all(isinstance(item, dict) and set(item) == {"Name", "Value"} for item in values)


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        if _are_pairs(value):
            return " ".join(f"{pair['Name']}={_text(pair['Value'])}" for pair in value) or "nothing"
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return SIGNS.get(value, value) if isinstance(value, str) else json.dumps(value)


def _listed(value: Json) -> list[str]:
    return [_text(item) for item in (value if isinstance(value, list) else [value])]
