"""Makes what the templates ask for, in their order, and takes it down again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from lakebed.errors import InvalidError, did_you_mean
from localcloud.resources.making import DEFINITION, Made, Making, Properties
from localcloud.resources.resource_types import RESOURCE_TYPES
from localcloud.services.amazon import Amazon
from localcloud.templates.assembly import Template
from localcloud.templates.expressions import Expressions, needed_by
from localcloud.templates.running import Running

KEPT = ("Retain", "RetainExceptOnCreate")


class LocalDeployment:
    """All stacks of an assembly, made when this is. images: a folder for what tasks run.

    Raises:
        InvalidError: a template asks for what is not known here: nothing of its stack is made.
    """

    def __init__(self, templates: Sequence[Template], amazon: Amazon, *, images: Path) -> None:
        self.running = Running()
        self.outputs: dict[str, dict[str, Any]] = {}
        self._amazon = amazon
        self._images = images
        self._exports: dict[str, Any] = {}
        self._removals: list[Made] = []
        for template in templates:
            refuse_unknown_types(template)
        for template in templates:
            self._deploy(template)
        self._check_permissions()

    def destroy(self) -> list[str]:
        """Take down all but what templates say is retained. Returns what could not be."""
        left = []
        for made in reversed(self._removals):
            assert made.remove is not None
            try:
                made.remove()
            except ClientError as error:
                left.append(f"{made.id}: {error}")
        self._removals.clear()
        return left

    def _deploy(self, template: Template) -> None:
        made = {name: Made(str(one["Default"])) for name, one in template.parameters.items()}

        def attribute(id_: str, name: str) -> object:
            if id_ not in made:
                hint = did_you_mean(id_, template.resources, what="resource")
                raise InvalidError("no such resource in a template", resource=id_, hint=hint)
            if name == "Ref":
                return made[id_].id
            if name not in made[id_].attributes:
                hint = f"let its maker say it: {DEFINITION}"
                raise InvalidError("unknown attribute", resource=id_, attribute=name, hint=hint)
            return made[id_].attributes[name]

        expressions = Expressions(
            template.stack,
            attribute=attribute,
            exports=self._exports,
            conditions=template.conditions,
        )
        making = Making(self._amazon, template, running=self.running, images=self._images)
        for id_ in in_order(template.resources):
            resource = template.resources[id_]
            if "Condition" in resource and not expressions.holds(resource["Condition"]):
                continue
            type_ = resource["Type"]
            properties = Properties(type_, id_, expressions.value(resource.get("Properties", {})))
            made[id_] = RESOURCE_TYPES[type_].make(making, properties)
            properties.end()
            if made[id_].remove and resource.get("DeletionPolicy") not in KEPT:
                self._removals.append(made[id_])
        outputs = {name: expressions.value(o) for name, o in template.outputs.items()}
        self.outputs[template.stack] = {name: o["Value"] for name, o in outputs.items()}
        for output in outputs.values():
            if "Export" in output:
                self._exports[output["Export"]["Name"]] = output["Value"]

    def _check_permissions(self) -> None:
        """Refuse schedules that AWS would not let call their functions."""
        allowed = {
            (permission.function, permission.source)
            for permission in self.running.permissions
            if permission.principal == "events.amazonaws.com"
        }
        for rule in self.running.rules.values():
            for arn in rule.inputs:
                name = arn.rpartition(":")[2]
                if name not in self.running.functions:
                    hint = "its stack comes later, or another instance has it"
                    raise InvalidError("a schedule without its function", rule=rule.name, hint=hint)
                if not {(name, rule.arn), (arn, rule.arn), (name, None)} & allowed:
                    hint = "give the function an AWS::Lambda::Permission for the rule"
                    raise InvalidError(
                        "a schedule may not call its function",
                        rule=rule.name,
                        function=name,
                        hint=hint,
                    )


def refuse_unknown_types(template: Template) -> None:
    """Raise InvalidError, if a resource is of a type for which nothing stands in."""
    for id_, resource in template.resources.items():
        if resource["Type"] not in RESOURCE_TYPES:
            raise InvalidError(
                "a local cloud has nothing that stands in for a resource",
                stack=template.stack,
                resource=id_,
                type=resource["Type"],
                hint=f"say in {DEFINITION} what does",
            )


def in_order(resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the logical ids, each after those that it needs."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(id_: str) -> None:
        if id_ in seen or id_ not in resources:
            return
        seen.add(id_)
        dependencies = resources[id_].get("DependsOn", [])
        for needed in [dependencies] if isinstance(dependencies, str) else dependencies:
            visit(needed)
        for needed in needed_by(resources[id_].get("Properties", {})):
            visit(needed)
        order.append(id_)

    for id_ in resources:
        visit(id_)
    return order
