"""Checks the region that an instance goes to, as `cdk` gives it to the program that it runs.

Templates name neither account nor region, so that one commit gives one template. What is told is
compared with the settings only: what could never work there is refused before anything is made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from aws_cdk import Annotations, region_info
from constructs import Construct

from lakebed.config.instance import InstanceSettings
from lakebed.config.networks import check_zones_region, zones_with_fargate
from lakebed.config.regions import check_deployed_to
from lakebed.errors import InvalidError, did_you_mean

REGION, ACCOUNT = "CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT"
"""Variables that `cdk` sets, where it knows them: by the profile, `AWS_REGION` or the machine."""
ZONES_WITHOUT_FARGATE = "lakebed:zones-without-fargate"
"""Id of the warning."""


def check_region(
    settings: InstanceSettings, environment: Mapping[str, str], *, partitions: Collection[str]
) -> None:
    """Check that an instance can be deployed where `cdk` says. partitions: of the templates.

    Raises:
        InvalidError: an unknown region, one of another partition, or a setting that names something
            of another region or account.
    """
    region = environment.get(REGION)
    if not region:
        return
    known = {one.name: one.partition or "" for one in region_info.RegionInfo.regions}
    if region not in known:
        raise InvalidError(
            "no region that this release knows",
            region=region,
            hint=f"{did_you_mean(region, known, what='region')}; see AWS_REGION and the profile",
        )
    if known[region] not in partitions:
        raise InvalidError(
            "a region of a partition that templates are not made for",
            region=region,
            partition=known[region],
            hint=f"deploy to a region of {' or '.join(sorted(partitions))}",
        )
    check_deployed_to(settings.arns(), region=region, account=environment.get(ACCOUNT))
    check_zones_region(settings.zones, region=region)


def warn_of_zones(
    scope: Construct, settings: InstanceSettings, environment: Mapping[str, str]
) -> None:
    """Say which zones to name where the first two of the region, which a network of the instance's
    own takes by itself, may lack Fargate. environment: has a region that was checked, or none.
    """
    if settings.zones or settings.vpc_id or not (region := environment.get(REGION)):
        return
    if known := zones_with_fargate(region):
        Annotations.of(scope).add_warning_v2(
            ZONES_WITHOUT_FARGATE,
            f"not all zones of {region} have Fargate, and the first two may be the wrong ones:"
            f" tasks would not be started there; add `-c zones={','.join(known[:2])}` (of"
            f" {', '.join(known)}) before you deploy",
        )
