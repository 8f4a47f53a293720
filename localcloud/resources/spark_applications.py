"""Makers of what runs Spark, applications and machines: the emulator keeps what they are asked for,
the runner runs it."""

from __future__ import annotations

from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import ACCOUNT
from localcloud.templates.running import MachineSpec, SparkSpec

IGNORED = (
    "Architecture",
    "AutoStartConfiguration",
    "AutoStopConfiguration",
    "MaximumCapacity",
    "MonitoringConfiguration",
    "SchedulerConfiguration",
)
"""Properties of capacity and of machines: there is one machine here."""


def make_application(making: Making, properties: Properties) -> Made:
    """Make an application of EMR Serverless for Spark."""
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


def make_machine_profile(making: Making, properties: Properties) -> Made:
    """Note the profile that gives machines of clusters a role."""
    name = properties.take("InstanceProfileName", properties.logical_id)
    (role,) = properties.need("Roles")
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    spark = SparkSpec(name=name, assets=making.assets)
    making.running.machines[name] = MachineSpec(spark=spark, role=arn)
    return Made(name, {"Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/{name}"})


def note_security(_making: Making, properties: Properties) -> Made:
    """Take the configuration by which clusters are secured, and do nothing with it."""
    properties.need("SecurityConfiguration")
    return Made(properties.need("Name"))
