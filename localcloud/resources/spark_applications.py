"""Makers of applications that run Spark: the emulator keeps them, the runner runs what they are
asked for."""

from __future__ import annotations

from localcloud.resources.making import Made, Making, Properties
from localcloud.templates.running import SparkSpec

IGNORED = (
    "Architecture",
    "AutoStartConfiguration",
    "AutoStopConfiguration",
    "MaximumCapacity",
    "MonitoringConfiguration",
    "SchedulerConfiguration",
)
"""Of capacity and of machines: there is one machine here."""


def make_application(making: Making, properties: Properties) -> Made:
    """An application of EMR Serverless for Spark."""
    client = making.client("emr-serverless")
    properties.only("Type", "SPARK", "Spark")
    for ignored in IGNORED:
        properties.take(ignored)
    name = properties.need("Name")
    answer = client.create_application(
        name=name, releaseLabel=properties.need("ReleaseLabel"), type="SPARK"
    )
    id_ = answer["applicationId"]
    making.running.spark[id_] = SparkSpec(name=name, assets=making.assets)
    attributes = {"ApplicationId": id_, "Arn": answer["arn"]}
    return Made(id_, attributes, lambda: client.delete_application(applicationId=id_))
