"""Checks which settings of a network go together, and where Fargate is, before anything is made.

Source: "Supported Regions for Amazon ECS on AWS Fargate", Amazon ECS Developer Guide.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta

from lakebed.errors import InvalidError

SUBNETS_MAX = 16
"""Most subnets that ECS takes for a task."""

ZONE = r"[a-z]+[0-9]-az[0-9]"
"""The id of an availability zone. Names like us-east-1a mean another zone in each account."""

_SUBNET = r"subnet-[0-9a-f]{8,17}"

TaskAddresses = Annotated[
    Literal["public", "private"],
    Meta(
        description="`public`: tasks have addresses that refuse connections, and cost"
        " nothing while none runs. `private`: none; the instance's own network then has"
        " endpoints, paid by the hour (`lakebed explain cost`)."
    ),
]
VpcId = Annotated[
    str,
    Meta(
        pattern=r"\A(vpc-[0-9a-f]{8,17})?\Z",
        description="A network of yours, in which tasks run. None: one of the instance's own.",
    ),
]
SubnetIds = Annotated[
    str,
    Meta(
        pattern=rf"\A({_SUBNET}(,{_SUBNET})*)?\Z",
        description="Subnets of `vpc_id` for tasks, with commas between.",
    ),
]
Zones = Annotated[
    str,
    Meta(
        pattern=rf"\A({ZONE}(,{ZONE})*)?\Z",
        description="Availability zones of the instance's own network, by their ids"
        " (`use1-az1`), with commas between. None: the first two of the region. Where one"
        " of these lacks Fargate, name zones that have it.",
    ),
]

_SOME_ZONES = {
    "apne1": ("apne1-az1", "apne1-az2", "apne1-az4"),
    "usw1": ("usw1-az1", "usw1-az3"),
}
"""Zones with Fargate in regions where it is not in all, by what the ids of their zones begin
with."""


def check_network(*, vpc_id: str, subnet_ids: str, zones: str) -> None:
    """Check that the settings describe one network, and that tasks can run there.

    Raises:
        InvalidError: half of a network, too many subnets or one twice, zones of a network that
            exists, zones that are named twice or lie in several regions, a zone without Fargate.
    """
    if bool(vpc_id) != bool(subnet_ids):
        raise InvalidError(
            "a network of yours needs both settings",
            vpc_id=vpc_id or "none",
            subnet_ids=subnet_ids or "none",
            hint="add `-c vpc_id=vpc-... -c subnet_ids=subnet-...,subnet-...`, or neither",
        )
    subnets = subnet_ids.split(",")
    if len(subnets) > SUBNETS_MAX or len(set(subnets)) < len(subnets):
        raise InvalidError(
            "not the subnets of a task",
            subnet_ids=subnet_ids,
            hint=f"name at most {SUBNETS_MAX}, each once",
        )
    if zones:
        _check_zones(zones, vpc_id=vpc_id)


def check_zones_region(zones: str, *, region: str) -> None:
    """Check that zones are of the region of a deployment: eu-central-1 has euc1-az1.

    Raises:
        InvalidError: they are not.
    """
    short = _short(region)
    strangers = [id_ for id_ in zones.split(",") if zones and id_.partition("-")[0] != short]
    if strangers:
        raise InvalidError(
            "a zone of another region than the deployment's",
            zone=strangers[0],
            region=region,
            hint=f"name zones of {region}, whose ids begin with {short}-az",
        )


def zones_with_fargate(region: str) -> tuple[str, ...]:
    """Return the ids of the zones that have Fargate, of a region where not all do; else none."""
    return _SOME_ZONES.get(_short(region), ())


def _short(region: str) -> str:
    """Return a region as ids of its zones abbreviate it: ap-southeast-2 is apse2."""
    where, point, number = region.split("-")
    initials = re.sub(r"(north|south|east|west|central)", lambda found: found[0][0], point)
    return f"{where}{initials}{number}"


def _check_zones(zones: str, *, vpc_id: str) -> None:
    if vpc_id:
        hint = "leave `zones` out: subnets of yours have theirs"
        raise InvalidError("zones of a network that exists", zones=zones, vpc_id=vpc_id, hint=hint)
    ids = zones.split(",")
    if len(set(ids)) < len(ids):
        raise InvalidError("a zone is named twice", zones=zones, hint="name each once")
    regions = {id_.partition("-")[0] for id_ in ids}
    if len(regions) > 1:
        hint = "an instance is in one region: name its zones"
        raise InvalidError("zones of several regions", zones=zones, hint=hint)
    _check_fargate(ids, region=regions.pop())


def _check_fargate(ids: list[str], *, region: str) -> None:
    """Raise InvalidError for a zone without Fargate. region: as ids of zones abbreviate it."""
    known = _SOME_ZONES.get(region)
    for id_ in ids:
        if known is not None and id_ not in known:
            raise InvalidError(
                "a zone without Fargate", zone=id_, hint=f"name some of {', '.join(known)}"
            )
