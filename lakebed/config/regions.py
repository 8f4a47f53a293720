"""Regions of AWS, the partitions that they belong to, and what ARNs say of both.

An ARN in a setting names a region and an account of its own. They are compared with each other, and
with those of the deployment, before anything is made.
"""

from __future__ import annotations

from typing import NamedTuple

from lakebed.errors import InvalidError

PARTITIONS = {
    "cn-": "aws-cn",
    "eusc-": "aws-eusc",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "us-isof-": "aws-iso-f",
    "eu-isoe-": "aws-iso-e",
}
"""AWS partitions, by prefixes of the regions' names. All other regions are in `aws`."""


class Arn(NamedTuple):
    """The first parts of an ARN."""

    partition: str
    service: str
    region: str
    account: str


def arn_of(text: str) -> Arn:
    """Return the parts of an ARN that has a region and an account."""
    _, partition, service, region, account, _ = text.split(":", 5)
    return Arn(partition, service, region, account)


def partition_of(region: str) -> str:
    """Return the partition of a region, by its name."""
    found = (partition for start, partition in PARTITIONS.items() if region.startswith(start))
    return next(found, "aws")


def check_arns(arns: dict[str, str]) -> None:
    """Check that ARNs fit together. arns: by the setting that names each.

    Raises:
        InvalidError: an ARN's partition is not its region's, or two are of different regions.
    """
    for name, text in arns.items():
        arn = arn_of(text)
        if arn.partition != partition_of(arn.region):
            raise InvalidError(
                "an ARN of a region that is in another partition",
                **{name: text},
                hint=f"the partition of {arn.region} is {partition_of(arn.region)}",
            )
    regions = {arn_of(text).region for text in arns.values()}
    if len(regions) > 1:
        raise InvalidError(
            "settings name things in different regions",
            **arns,
            hint="an instance uses a key and a topic of its own region only",
        )


def check_deployed_to(arns: dict[str, str], *, region: str, account: str | None) -> None:
    """Check that ARNs are of the region, and a key of the account, of a deployment.

    account: None: it is not known yet.

    Raises:
        InvalidError: one is not.
    """
    for name, text in arns.items():
        arn = arn_of(text)
        if arn.region != region:
            raise InvalidError(
                "an ARN of another region than the deployment's",
                **{name: text},
                region=region,
                hint=f"deploy to {arn.region}, or name one of {region}",
            )
        if arn.service == "kms" and account is not None and arn.account != account:
            raise InvalidError(
                "a key of another account than the deployment's",
                **{name: text},
                account=account,
                hint=f"name a key of {account}: only its roles are given the use of it",
            )
