"""Encodes what the deployment of an instance made, as it writes it into the instance's
parameter."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from lakebed.config.deployments.deployed_settings import DeployedSettings
from lakebed.config.deployments.optional_stacks import LeftOutStacks, left_out_of
from lakebed.config.instance import OBJECTS_PREFIX, InstanceId, parameter_name
from lakebed.config.packages import DeployedPackage
from lakebed.errors import CorruptError, InvalidError, NewerFormatError

RESOURCES_FORMAT = 1
RESOURCES_BYTES_MAX = 4_096
"""Most bytes of a parameter that costs nothing."""


class InstanceResources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that the deployment of an instance made, by physical name.

    batches_table: UNSET: it was deployed without batching.
    sources: where files that arrive are told; UNSET: they are told nowhere.
    queues: the URL of each kind of job's queue; its dead letters are where its redrive policy says.
    quotas: what the instance may use at one time of each quota, by code; empty: it does not say.
    packages: of users, that are in its bundles and images, if there are any.
    key_arn: of the key that encrypts it, if it has one of its own.
    release: that deployed it; "": one that does not say.
    stacks: the optional ones that it has; UNSET: it does not say, and was deployed by a release
        that left none out.
    deployed_with: how it is set; None: that is more than the parameter holds; UNSET: it does not
        say, and was deployed by a release that did not record it.
    format: of who wrote it. A newer release may add fields, which are ignored here; `needs`, if it
        is there, says of which format a reader must be.
    """

    format: int = RESOURCES_FORMAT
    instance: InstanceId
    bucket: str
    prefix: str = OBJECTS_PREFIX
    log_table: str
    registry_table: str
    tracker_table: str
    batches_table: str | UnsetType = UNSET
    sources: tuple[str, ...] | UnsetType = UNSET
    queues: dict[str, str] = {}
    quotas: dict[str, int] = {}
    packages: tuple[DeployedPackage, ...] | UnsetType = UNSET
    key_arn: str | UnsetType = UNSET
    release: str = ""
    stacks: tuple[str, ...] | UnsetType = UNSET
    deployed_with: DeployedSettings | UnsetType | None = UNSET

    def recorded_settings(self) -> DeployedSettings:
        """Return how the instance is set.

        Raises:
            InvalidError: it does not say.
        """
        if self.deployed_with is UNSET:
            raise InvalidError(
                "the instance does not say how it is set",
                instance=self.instance,
                release=self.release or "unknown",
                hint="deploy it again: this release records settings, older ones did not",
            )
        if self.deployed_with is None:
            raise InvalidError(
                "the settings of the instance are more than its parameter holds",
                instance=self.instance,
                bytes_max=RESOURCES_BYTES_MAX,
                hint="look at the file that it was deployed with; or deploy it with shorter lists"
                " and fewer tags",
            )
        return self.deployed_with

    def arrival_folders(self) -> tuple[str, ...] | None:
        """Return the folders of whose new files the instance hears; None: it hears of none."""
        return None if self.sources is UNSET else self.sources

    def left_out(self) -> LeftOutStacks:
        """Return what the instance was deployed without, as far as it says."""
        if self.stacks is UNSET:
            return LeftOutStacks(self.instance)
        return left_out_of(self.instance, self.stacks)


def encode_resources(resources: InstanceResources) -> str:
    """Return what the parameter holds."""
    return msgspec.json.encode(resources).decode()


def decode_resources(text: str, instance: InstanceId) -> InstanceResources:
    """Return what an instance's parameter says.

    Raises:
        NewerFormatError: a newer Lakebed deployed the instance, and this one cannot do without what
            it says.
        CorruptError: it is not what a deployment writes, or another instance's.
    """
    parameter = parameter_name(instance)
    try:
        decoded = msgspec.json.decode(text)
        format_ = decoded.get("format") if isinstance(decoded, dict) else None
        needs = decoded.get("needs", format_) if isinstance(decoded, dict) else None
        if type(needs) is int and needs > RESOURCES_FORMAT:
            raise NewerFormatError(
                "a newer Lakebed deployed the instance", instance=instance, format=needs
            )
        found = msgspec.convert(decoded, InstanceResources)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        hint = "deploy the instance again: its stack writes the parameter"
        raise CorruptError(
            "a parameter is not what a deployment writes",
            parameter=parameter,
            reason=error,
            hint=hint,
        ) from None
    if type(format_) is not int or format_ < RESOURCES_FORMAT or found.instance != instance:
        raise CorruptError(
            "a parameter describes another instance or format",
            parameter=parameter,
            instance=found.instance,
            format=format_,
            hint="deploy the instance again: its stack writes the parameter",
        )
    return found
