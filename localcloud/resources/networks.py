"""Makers of networks and of machines: there is one of each here, so they are only noted."""

from __future__ import annotations

import hashlib

from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import REGION

PREFIXES = {
    "AWS::AutoScaling::AutoScalingGroup": "asg",
    "AWS::EC2::FlowLog": "fl",
    "AWS::EC2::InternetGateway": "igw",
    "AWS::EC2::LaunchTemplate": "lt",
    "AWS::EC2::Route": "route",
    "AWS::EC2::RouteTable": "rtb",
    "AWS::EC2::SecurityGroup": "sg",
    "AWS::EC2::SecurityGroupEgress": "sgr",
    "AWS::EC2::SecurityGroupIngress": "sgr",
    "AWS::EC2::Subnet": "subnet",
    "AWS::EC2::SubnetRouteTableAssociation": "rtbassoc",
    "AWS::EC2::VPC": "vpc",
    "AWS::EC2::VPCEndpoint": "vpce",
    "AWS::EC2::VPCGatewayAttachment": "attachment",
}


def note_network(making: Making, properties: Properties) -> Made:
    """Part of a network, or machines: it gets an id, and takes whatever its template says."""
    rest = properties.rest()
    digest = hashlib.sha256(f"{making.stack}/{properties.logical_id}".encode()).hexdigest()
    id_ = f"{PREFIXES[properties.type]}-{digest[:17]}"
    attributes = {
        "AvailabilityZone": rest.get("AvailabilityZone", f"{REGION}a"),
        "CidrBlock": rest.get("CidrBlock"),
        "DefaultSecurityGroup": f"sg-{digest[:17]}",
        "GroupId": id_,
        "Id": id_,
        "InternetGatewayId": id_,
        "LatestVersionNumber": "1",
        "RouteTableId": id_,
        "SubnetId": id_,
        "VpcId": rest.get("VpcId", id_),
    }
    return Made(id_, attributes)
