"""Computes what the expressions of a template mean: Ref, Fn::GetAtt, Fn::Join and their like."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakebed.errors import InvalidError
from localcloud.services.emulator import ACCOUNT, REGION

PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}
NOTHING = object()
"""The value of AWS::NoValue: as if it were not written."""

_SUBSTITUTED = re.compile(r"\$\{([^!}][^}]*)\}")


class Expressions:
    """The expressions of one stack.

    attribute: returns the attribute of a resource that is made; of "Ref", its id.
    exports: what earlier stacks export.
    """

    def __init__(
        self,
        stack: str,
        *,
        attribute: Callable[[str, str], object],
        exports: Mapping[str, object],
        conditions: Mapping[str, Any],
    ) -> None:
        self._stack = stack
        self._attribute = attribute
        self._exports = exports
        self._conditions = conditions

    def value(self, written: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return what is meant by what is written.

        Raises:
            InvalidError: a function that is not known here, or something that does not exist.
        """
        if isinstance(written, list):
            return [v for item in written if (v := self.value(item)) is not NOTHING]
        if not isinstance(written, dict):
            return written
        if len(written) == 1:
            ((name, given),) = written.items()
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, given)
        values = {key: self.value(item) for key, item in written.items()}
        return {key: value for key, value in values.items() if value is not NOTHING}

    def holds(self, condition: str) -> bool:
        """Return whether a condition of the stack holds."""
        return bool(self.value(self._conditions[condition]))

    def _call(self, name: str, given: Any) -> Any:  # noqa: ANN401 - any JSON
        match name:
            case "Ref":
                return self._ref(given)
            case "Fn::GetAtt":
                id_, attribute = given.split(".", 1) if isinstance(given, str) else given
                return self._attribute(id_, attribute)
            case "Fn::ImportValue":
                return self._exports[self.value(given)]
            case "Fn::Join":
                return given[0].join(str(part) for part in self.value(given[1]))
            case "Fn::Sub":
                return self._substituted(given)
            case "Fn::Select":
                return self.value(given[1])[int(self.value(given[0]))]
            case "Fn::Split":
                return self.value(given[1]).split(given[0])
            case "Fn::Base64":
                return b64encode(str(self.value(given)).encode()).decode()
            case "Fn::GetAZs":
                return [f"{REGION}{letter}" for letter in "abc"]
            case "Fn::If":
                return self.value(given[1] if self.holds(given[0]) else given[2])
            case "Fn::Equals":
                return self.value(given[0]) == self.value(given[1])
        hint = "a local cloud knows no such function: teach it localcloud/templates/expressions.py"
        raise InvalidError(
            "unknown function in a template", stack=self._stack, function=name, hint=hint
        )

    def _ref(self, name: str) -> object:
        if name == "AWS::NoValue":
            return NOTHING
        if name in {"AWS::StackName", "AWS::StackId"}:
            return self._stack
        return PSEUDO[name] if name in PSEUDO else self._attribute(name, "Ref")

    def _substituted(self, given: Any) -> str:  # noqa: ANN401 - any JSON
        text, named = (given, {}) if isinstance(given, str) else given

        def one(found: re.Match[str]) -> str:
            name = found[1]
            if name in named:
                return str(self.value(named[name]))
            id_, _, attribute = name.partition(".")
            return str(self._attribute(id_, attribute) if attribute else self._ref(id_))

        return _SUBSTITUTED.sub(one, text).replace("${!", "${")


def needed_by(written: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yield what an expression refers to: logical ids, and names that are none."""
    if isinstance(written, list):
        for item in written:
            yield from needed_by(item)
    elif isinstance(written, dict):
        for key, given in written.items():
            if key == "Ref":
                yield given
            elif key == "Fn::GetAtt":
                yield given.partition(".")[0] if isinstance(given, str) else given[0]
            elif key == "Fn::Sub":
                text = given if isinstance(given, str) else given[0]
                yield from (name.partition(".")[0] for name in _SUBSTITUTED.findall(text))
            yield from needed_by(given)
