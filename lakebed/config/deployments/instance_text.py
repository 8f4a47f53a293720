"""`lakebed.toml` as it is written from what an instance says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.config.definitions.toml_text import toml_text
from lakebed.config.deployments.deployed_settings import DIGESTED, DeployedSettings
from lakebed.config.deployments.instance_file import (
    INSTANCE,
    LISTED,
    NAME,
    PACKAGES,
    PREFIXED,
    TAGS,
    WITHOUT,
)
from lakebed.config.instance import InstanceId
from lakebed.config.settings import named_in


def instance_text(instance: InstanceId, recorded: DeployedSettings) -> str:
    """Return the file with which an instance is deployed as it is.

    What is recorded as digests is named in a remark, and has to be filled in.
    """
    settings = {n: _listed(n, v) for n, v in recorded.settings.items() if n not in DIGESTED}
    sections: dict[str, dict[str, Any]] = {INSTANCE: {NAME: instance}}
    for name, value in settings.items():
        section, key = _key_in_file(name)
        sections.setdefault(section, {})[key] = value
    sections[TAGS] = dict(recorded.tags)
    parts: list[Mapping[str, Any]] = [{WITHOUT: list(recorded.without)}] if recorded.without else []
    parts += [{section: values} for section, values in sections.items() if values]
    return "".join([toml_text(parts), *map(_remark, sorted(set(recorded.settings) & {*DIGESTED}))])


def _key_in_file(name: str) -> tuple[str, str]:
    """Return the section that holds a setting, and its key there."""
    if name == PACKAGES:
        return PACKAGES, "wheels"
    for section in PREFIXED:
        if name.startswith(f"{section}_"):
            return section, name.removeprefix(f"{section}_")
    return INSTANCE, name


def _listed(name: str, value: object) -> object:
    return named_in(str(value)) if name in (*LISTED, PACKAGES) else value


def _remark(name: str) -> str:
    section, key = _key_in_file(name)
    return (
        f"\n# [{section}] {key} is set, and is not written down: an address may hold a token.\n"
        "# Add it, or deploying with this file takes it back.\n"
    )
