"""Amounts of what Amazon charges for, and what they cost."""

from __future__ import annotations

from typing import Self

import msgspec

from lakebed.costs.prices import Prices


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of each thing that has a price: the same names as in a file of prices."""

    s3_put: float = 0.0
    s3_get: float = 0.0
    s3_gb_month: float = 0.0
    sqs_request: float = 0.0
    lambda_request: float = 0.0
    lambda_gb_second: float = 0.0
    dynamodb_write_unit: float = 0.0
    dynamodb_read_unit: float = 0.0
    dynamodb_gb_month: float = 0.0
    fargate_vcpu_hour: float = 0.0
    fargate_gb_hour: float = 0.0
    address_hour: float = 0.0
    emr_vcpu_hour: float = 0.0
    emr_gb_hour: float = 0.0
    alarm_month: float = 0.0
    metric_month: float = 0.0
    dashboard_month: float = 0.0
    log_gb: float = 0.0
    image_gb_month: float = 0.0

    def __add__(self, other: Amounts) -> Self:
        """Return the sum, thing by thing."""
        return type(self)(**{n: getattr(self, n) + getattr(other, n) for n in AMOUNTS})

    def __mul__(self, times: float) -> Self:
        """Return so many times as much of each."""
        return type(self)(**{name: getattr(self, name) * times for name in AMOUNTS})

    def dollars(self, prices: Prices) -> float:
        """Return what all of it costs."""
        return float(sum(getattr(self, name) * prices.prices[name] for name in AMOUNTS))


DAYS_OF_MONTH = 365 / 12

EXPIRY_ROUNDED_DAYS = 0.5
"""Days that a deleted version is paid for, in the mean, beyond the days of its lifecycle rule: S3
adds the days to when it was deleted, and rounds up to the next midnight UTC (Amazon S3 User Guide,
"Lifecycle rules: Based on an object's age")."""

AMOUNTS = Amounts.__struct_fields__
"""The names of all things that have a price."""
