"""Policies that users define: each extends another, down to one that every lake has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakebed.config.definitions.toml_fields import at_of, check_names, checked, section
from lakebed.config.policies import DEFAULT_POLICY, PRESETS, Policy
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.definitions import definition_name

EXTENDS_MAX = 16
"""Most policies in a chain in which each extends the next."""

SCHEMA_PARTS = ("table", "column", "type")
"""Names in `schema = { ... }`, each a parameter of its own: `schema_table`."""


class PolicyDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A policy as a user says it.

    extends: the policy whose parameters it has but for `changes`.
    """

    name: str
    extends: str = DEFAULT_POLICY
    changes: Mapping[str, Any] = {}


def policy_definition(name: str, said: object) -> PolicyDefinition:
    """Return the policy that a section says.

    Raises:
        InvalidError: it says what there is not. It names the field, and the nearest.
    """
    at = at_of("policy", name)
    definition_name("policy", name)
    if name in PRESETS:
        hint = f'give it another name, and `extends = "{name}"`'
        raise InvalidError("a policy that every lake has is not changed", at=at, hint=hint)
    fields = dict(section(said, at))
    extends = fields.pop("extends", DEFAULT_POLICY)
    if not isinstance(extends, str):
        hint = 'write `extends = "NAME"`'
        raise InvalidError("it is the name of a policy", at=f"{at}.extends", hint=hint)
    changes = _flat(fields, at)
    checked(changes, Policy, at)
    return PolicyDefinition(name=name, extends=extends, changes=changes)


def policy_of(name: str, known: Mapping[str, PolicyDefinition], *, at: str = "") -> Policy:
    """Return the parameters of a policy.

    known: those that users defined, by name.
    at: where it is named, for messages.

    Raises:
        InvalidError: there is none of that name, one extends itself, or its parameters do not fit
            together.
    """
    chain = policy_chain(name, known, at=at)
    merged = dict(PRESETS[chain[-1]])
    for one in reversed(chain[:-1]):
        merged |= known[one].changes
    policy = checked(merged, Policy, at_of("policy", name))
    _check_together(policy, at_of("policy", name))
    return policy


def policy_chain(
    name: str, known: Mapping[str, PolicyDefinition], *, at: str = ""
) -> tuple[str, ...]:
    """Return a policy and those that it extends, up to the one that every lake has.

    Raises:
        InvalidError: there is none of that name, or one extends itself.
    """
    chain: list[str] = []
    while True:
        if name in chain:
            circle = " -> ".join([*chain[chain.index(name) :], name])
            where = at_of("policy", name)
            hint = f"{circle}: let one of them extend another"
            raise InvalidError("a policy extends itself", at=f"{where}.extends", hint=hint)
        if name not in PRESETS and name not in known:
            hint = did_you_mean(name, [*PRESETS, *known], what="policy")
            raise InvalidError("no policy has this name", at=at, policy=name, hint=hint)
        chain.append(name)
        if len(chain) > EXTENDS_MAX:
            hint = f"let at most {EXTENDS_MAX} extend each other"
            raise InvalidError("a chain of policies is too long", at=at, hint=hint)
        if name in PRESETS:
            return tuple(chain)
        at, name = f"{at_of('policy', name)}.extends", known[name].extends


def _flat(fields: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return parameters one by one: `schema = { type = ... }`, or one word for all of it."""
    names = [*Policy.__struct_fields__, "schema", "extends"]
    check_names(fields, names, at)
    changes = {name: value for name, value in fields.items() if name != "schema"}
    said = fields.get("schema", {})
    parts = said if isinstance(said, Mapping) else dict.fromkeys(SCHEMA_PARTS[1:], said)
    check_names(parts, SCHEMA_PARTS, f"{at}.schema")
    for part, value in parts.items():
        if f"schema_{part}" in changes:
            hint = "say it once"
            raise InvalidError("a parameter is said twice", at=f"{at}.schema.{part}", hint=hint)
        changes[f"schema_{part}"] = value
    return changes


def _check_together(policy: Policy, at: str) -> None:
    wrong = (
        (policy.workers_min > policy.workers_max, "workers_min", "workers_max"),
        (
            policy.restart_seconds_min > policy.restart_seconds_max,
            "restart_seconds_min",
            "restart_seconds_max",
        ),
    )
    for is_wrong, least, most in wrong:
        if is_wrong:
            hint = f"let it be at most {most}"
            raise InvalidError("a least that is above the most", at=f"{at}.{least}", hint=hint)
    if len(set(policy.on_congestion)) < len(policy.on_congestion):
        hint = "name each once"
        raise InvalidError("a step is named twice", at=f"{at}.on_congestion", hint=hint)
    if "spill" in policy.on_congestion and policy.rate_records_max:
        hint = "leave `spill` out: what is held back stays in the source"
        raise InvalidError("a rate, and reading ahead", at=f"{at}.rate_records_max", hint=hint)
    if (policy.dedupe == "window") != bool(policy.dedupe_field):
        hint = 'give `dedupe = "window"` and `dedupe_field` together'
        raise InvalidError("half of a window", at=f"{at}.dedupe_field", hint=hint)
