"""Records how an instance is set, in its parameter: what differs from the defaults.

People and functions that read tables may read the parameter, so it holds no secret. Of all
settings, only addresses of `notices_https` may hold one, a token in the path: they are recorded as
digests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

import msgspec

from lakebed.config.deployments.optional_stacks import OPTIONAL_STACKS
from lakebed.config.instance import Deployment, InstanceSettings
from lakebed.config.settings import named_in

DIGESTED = ("notices_https",)
"""Settings that are recorded as digests of what they name."""
FOLDERS = ("packages", "tables")
"""Settings that name files of the machine that deploys, which each machine names otherwise."""
DIGEST_PREFIX = "sha256:"
DIGEST_CHARACTERS = 16
NOTHING = "nothing"
"""Stands in a comparison for what one side does not say."""


class DeployedSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The configuration that an instance was deployed with.

    settings: those that differ from their defaults. A newer release may know more of them.
    without: optional stacks that were left out.
    tags: of its owner.
    """

    settings: Mapping[str, object] = {}
    without: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}


class SettingDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that a file and an instance do not agree on.

    name: of the setting; `without`; or `tags.KEY`.
    deployed, declared: `NOTHING`: the tag is not there.
    """

    name: str
    deployed: object
    declared: object


def deployed_settings(deployment: Deployment) -> DeployedSettings:
    """Return what the parameter records of a deployment."""
    there: dict[str, object] = msgspec.to_builtins(deployment.settings)
    usual: dict[str, object] = msgspec.to_builtins(InstanceSettings())
    differing = {name: value for name, value in there.items() if value != usual[name]}
    return DeployedSettings(
        settings={name: _recorded(name, value) for name, value in differing.items()},
        without=tuple(
            stack.name
            for stack in OPTIONAL_STACKS
            if stack.is_in(deployment.settings) and stack.name not in deployment.stacks
        ),
        tags=dict(deployment.tags),
    )


def setting_differences(
    deployed: DeployedSettings, declared: DeployedSettings
) -> list[SettingDifference]:
    """Return what differs, by name. Of folders only whether there is one."""
    return list(_differences(deployed, declared))


def _differences(
    deployed: DeployedSettings, declared: DeployedSettings
) -> Iterator[SettingDifference]:
    usual: dict[str, object] = msgspec.to_builtins(InstanceSettings())
    for name in sorted({*deployed.settings, *declared.settings}):
        default = usual.get(name, NOTHING)
        sides = [side.settings.get(name, default) for side in (deployed, declared)]
        compared = list(map(bool, sides)) if name in FOLDERS else sides
        if compared[0] != compared[1]:
            yield SettingDifference(name=name, deployed=sides[0], declared=sides[1])
    left_out = [sorted(side.without) for side in (deployed, declared)]
    if left_out[0] != left_out[1]:
        yield SettingDifference(name="without", deployed=left_out[0], declared=left_out[1])
    for key in sorted({*deployed.tags, *declared.tags}):
        values = [side.tags.get(key, NOTHING) for side in (deployed, declared)]
        if values[0] != values[1]:
            yield SettingDifference(name=f"tags.{key}", deployed=values[0], declared=values[1])


def _recorded(name: str, value: object) -> object:
    if name not in DIGESTED:
        return value
    return ",".join(_digest(one) for one in named_in(str(value)))


def _digest(text: str) -> str:
    return DIGEST_PREFIX + sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
