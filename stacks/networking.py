"""Networking: where tasks run. Functions need none of it and stay outside.

docs/decisions/0015 says why tasks have public addresses unless a setting says otherwise.
"""

from __future__ import annotations

from aws_cdk import CfnCustomResource, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.environments import NetworkCheckEnvironment
from lakebed.config.instance import Deployment, InstanceSettings
from stacks import permissions, trust
from stacks.constructs.kept_exports import keep_exports
from stacks.constructs.log_group import log_group
from stacks.constructs.machines import Machines
from stacks.constructs.names import NamedCluster
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction

ZONES = 2
"""The first ones of the region, where a setting names no others."""
HTTPS = 443
CHECK_SECONDS_MAX = 60
FOR_EMR = "for-use-with-amazon-emr-managed-policies"
"""The tag by which AWS's policy for EMR's service knows what is meant for clusters."""
ENDPOINTS = {
    "EcrApi": ec2.InterfaceVpcEndpointAwsService.ECR,
    "EcrDocker": ec2.InterfaceVpcEndpointAwsService.ECR_DOCKER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
    "Sqs": ec2.InterfaceVpcEndpointAwsService.SQS,
}
"""Services that a task without a public address calls, besides S3 and DynamoDB: its image comes
from ECR."""
CALLED_BY_MACHINES = {
    "Ecs": ec2.InterfaceVpcEndpointAwsService.ECS,
    "EcsAgent": ec2.InterfaceVpcEndpointAwsService.ECS_AGENT,
    "EcsTelemetry": ec2.InterfaceVpcEndpointAwsService.ECS_TELEMETRY,
}
"""Services that a machine without a public address also calls: its agent takes orders from ECS."""
OF_FARGATE = ("FARGATE", "FARGATE_SPOT")


class NetworkingStack(Stack):
    """A cluster, and a network without NAT: the instance's own, or a user's subnets.

    cluster: by name, as other stacks know it. vpc_id, subnet_ids: of tasks. security_group: tasks
    reach TLS ports, and accept no connection. Ids have no names: they are exported in any case,
    so that a stack with tasks can go while this one stays.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("networking"),
            description=f"Lakebed {deployment.instance}: where tasks run",
        )
        settings = deployment.settings
        self.cluster = NamedCluster(deployment.name("tasks"))
        cluster = ecs.CfnCluster(
            self,
            "Cluster",
            cluster_name=self.cluster.cluster_name,
            capacity_providers=list(OF_FARGATE),
            cluster_settings=[
                ecs.CfnCluster.ClusterSettingsProperty(name="containerInsights", value="enabled")
            ],
        )
        vpc = None if settings.vpc_id else self._own(deployment)
        self.vpc_id = vpc.vpc_id if vpc else settings.vpc_id
        self.security_group = ec2.CfnSecurityGroup(
            self,
            "TasksGroup",
            group_name=deployment.name("tasks"),
            group_description=f"Lakebed {deployment.instance}: tasks, which nobody connects to",
            vpc_id=self.vpc_id,
            security_group_egress=[to_services()],
        )
        self.public = settings.task_addresses == "public"
        keep_exports(self, cluster.attr_arn)
        self.export_value(self.security_group.attr_group_id)
        self.subnet_ids = self._subnets(vpc, settings)
        if vpc is None:
            self._check(deployment)
        elif not self.public:
            self._endpoints(deployment, vpc)
        if deployment.settings_in_use().tasks_on_machines():
            machines = self._machines(deployment)
            cluster.capacity_providers = [*OF_FARGATE, machines.provider.ref]

    def _subnets(self, vpc: ec2.Vpc | None, settings: InstanceSettings) -> list[str]:
        """Return the subnets of tasks. Those of a network of the instance are exported."""
        if vpc is None:
            return settings.subnet_ids.split(",")
        subnets = vpc.public_subnets if self.public else vpc.isolated_subnets
        ids = [subnet.subnet_id for subnet in subnets]
        for id_ in (self.vpc_id, *ids):
            self.export_value(id_)
        return ids

    def _machines(self, deployment: Deployment) -> Machines:
        return Machines(
            self,
            "Machines",
            deployment=deployment,
            cluster=self.cluster,
            subnet_ids=self.subnet_ids,
            security_group=self.security_group,
            public=self.public,
        )

    def _check(self, deployment: Deployment) -> None:
        """Check a user's network each time another one is named: one without S3 is refused."""
        vpc_id = deployment.settings.vpc_id
        own = PythonFunction(
            self,
            "Check",
            deployment=deployment,
            bundle=STATE,
            room="networking",
            verb="check",
            environment=NetworkCheckEnvironment(instance=deployment.instance, vpc_id=vpc_id),
            permissions=[permissions.look_at_networks()],
            runs_apart=None,
            timeout_seconds=CHECK_SECONDS_MAX,
            memory_mib=256,
            reported=False,
        )
        reason = "IAM knows no resource for looking at endpoints of a network"
        permissions.accepted_everywhere(own.role, reason)
        checked = CfnCustomResource(self, "Checked", service_token=own.function.function_arn)
        checked.node.add_dependency(own)
        checked.add_property_override("Network", vpc_id)

    def _own(self, deployment: Deployment) -> ec2.Vpc:
        """Return a network with gateways to S3 and DynamoDB, which cost nothing."""
        public = deployment.settings.task_addresses == "public"
        zones = deployment.settings.zones.split(",") if deployment.settings.zones else []
        vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=deployment.name("tasks"),
            max_azs=None if zones else ZONES,
            availability_zones=zones or None,
            nat_gateways=0,
            restrict_default_security_group=False,  # by a function that CDK would bring along
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Tasks",
                    subnet_type=(
                        ec2.SubnetType.PUBLIC if public else ec2.SubnetType.PRIVATE_ISOLATED
                    ),
                    # Tasks ask for an address; machines of clusters cannot, and reach EMR by it.
                    map_public_ip_on_launch=deployment.settings.spark_clusters if public else None,
                    cidr_mask=20,
                )
            ],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDb": ec2.GatewayVpcEndpointOptions(
                    service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
                ),
            },
        )
        for subnet, zone in zip(vpc.public_subnets or vpc.isolated_subnets, zones, strict=False):
            made = subnet.node.default_child
            assert isinstance(made, ec2.CfnSubnet), f"a subnet is made of one, got {made}"
            made.availability_zone, made.availability_zone_id = None, zone
        if deployment.settings.spark_clusters:
            Tags.of(vpc).add(FOR_EMR, "true")
        self._log_refused(deployment, vpc)
        return vpc

    def _endpoints(self, deployment: Deployment, vpc: ec2.Vpc) -> None:
        """Let tasks reach the services that have no gateway: one address each, paid by the hour."""
        group = ec2.CfnSecurityGroup(
            self,
            "EndpointsGroup",
            group_name=deployment.name("endpoints"),
            group_description=f"Lakebed {deployment.instance}: endpoints, for tasks only",
            vpc_id=vpc.vpc_id,
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=HTTPS,
                    to_port=HTTPS,
                    source_security_group_id=self.security_group.attr_group_id,
                    description="tasks",
                )
            ],
        )
        has_machines = deployment.settings_in_use().tasks_on_machines() > 0
        called = ENDPOINTS | (CALLED_BY_MACHINES if has_machines else {})
        for name, service in called.items():
            ec2.CfnVPCEndpoint(
                self,
                f"{name}Endpoint",
                vpc_id=vpc.vpc_id,
                service_name=service.name,
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=self.subnet_ids[:1],
                security_group_ids=[group.attr_group_id],
            )

    def _log_refused(self, deployment: Deployment, vpc: ec2.Vpc) -> None:
        """Log connections that were refused; accepted ones are in the logs of their callers."""
        name = f"/vpc/{deployment.name('refused')}"
        log = log_group(self, "RefusedLog", name=name, deployment=deployment)
        role = iam.Role(
            self,
            "RefusedRole",
            assumed_by=trust.flow_log_service(self),
            inline_policies={
                "Own": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=[
                                "logs:CreateLogStream",
                                "logs:DescribeLogStreams",
                                "logs:PutLogEvents",
                            ],
                            resources=[log.log_group_arn],
                        )
                    ]
                )
            },
        )
        ec2.CfnFlowLog(
            self,
            "Refused",
            resource_id=vpc.vpc_id,
            resource_type="VPC",
            traffic_type="REJECT",
            deliver_logs_permission_arn=role.role_arn,
            log_group_name=log.log_group_name,
        )


def to_services() -> ec2.CfnSecurityGroup.EgressProperty:
    """Return the way out to services of AWS, by TLS."""
    return ec2.CfnSecurityGroup.EgressProperty(
        ip_protocol="tcp",
        from_port=HTTPS,
        to_port=HTTPS,
        cidr_ip="0.0.0.0/0",
        description="services of AWS, by TLS",
    )
