"""Exports that stacks of the release before import: without them no upgrade could be deployed.

CloudFormation refuses to take an export away while a stack that is deployed imports it, and stacks
are deployed one after the other. The release after this one drops them (rule: what goes away goes
in two releases).
"""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct


def keep_exports(scope: Construct, *values: str) -> None:
    """Export values of a stack's resources as CDK does where another stack refers to them."""
    for value in values:
        Stack.of(scope).export_value(value)
