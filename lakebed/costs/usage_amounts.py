"""Converts counted usage into amounts of what Amazon charges for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakebed.costs.amounts import AMOUNTS, DAYS_OF_MONTH, EXPIRY_ROUNDED_DAYS, Amounts

GB: Final = 1e9
HOUR: Final = 3_600.0

PAID: Final[Mapping[str, tuple[str, float]]] = {
    "s3_get": ("s3_get", 1.0),
    "s3_put": ("s3_put", 1.0),
    "s3_list": ("s3_put", 1.0),
    "stored_byte_days": ("s3_gb_month", 1 / GB / DAYS_OF_MONTH),
    "sqs_requests": ("sqs_request", 1.0),
    "sqs_polls": ("sqs_request", 1.0),
    "lambda_runs": ("lambda_request", 1.0),
    "lambda_gb_seconds": ("lambda_gb_second", 1.0),
    "dynamodb_write_units": ("dynamodb_write_unit", 1.0),
    "dynamodb_read_units": ("dynamodb_read_unit", 1.0),
    "fargate_vcpu_seconds": ("fargate_vcpu_hour", 1 / HOUR),
    "fargate_gb_seconds": ("fargate_gb_hour", 1 / HOUR),
    "address_seconds": ("address_hour", 1 / HOUR),
    "emr_vcpu_seconds": ("emr_vcpu_hour", 1 / HOUR),
    "emr_gb_seconds": ("emr_gb_hour", 1 / HOUR),
    "log_bytes": ("log_gb", 1 / GB),
}
"""The paid unit of each counter, and how much of it one count is. Other counters cost nothing: S3
deletes for free, and a directory has no prices."""

SERVICES: Final[Mapping[str, str]] = {
    "s3_put": "S3",
    "s3_get": "S3",
    "s3_gb_month": "S3",
    "sqs_request": "SQS",
    "lambda_request": "Lambda",
    "lambda_gb_second": "Lambda",
    "dynamodb_write_unit": "DynamoDB",
    "dynamodb_read_unit": "DynamoDB",
    "dynamodb_gb_month": "DynamoDB",
    "fargate_vcpu_hour": "Fargate",
    "fargate_gb_hour": "Fargate",
    "address_hour": "VPC",
    "emr_vcpu_hour": "EMR Serverless",
    "emr_gb_hour": "EMR Serverless",
    "alarm_month": "CloudWatch",
    "metric_month": "CloudWatch",
    "dashboard_month": "CloudWatch",
    "log_gb": "CloudWatch",
    "image_gb_month": "ECR",
}
"""The service that charges for each thing that has a price."""
if set(SERVICES) != set(AMOUNTS):
    raise AssertionError("each thing is charged for by a service")


def amounts_of(counts: Mapping[str, float], *, deleted_days: float = 0.0) -> Amounts:
    """Return what counted usage is of what Amazon charges for.

    deleted_days: after which the lifecycle removes the old version that a deleted object is; 0:
        there is none.
    """
    found = dict.fromkeys(AMOUNTS, 0.0)
    days = deleted_days + EXPIRY_ROUNDED_DAYS if deleted_days else 0.0
    found["s3_gb_month"] = counts.get("deleted_bytes", 0.0) * days / GB / DAYS_OF_MONTH
    for counter, amount in counts.items():
        if counter in PAID:
            thing, each = PAID[counter]
            found[thing] += amount * each
    return Amounts(**found)
