"""Machines of EC2 on which tasks run: a group of none to a few, as many as their tasks need."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Aws, CfnTag, Fn, Validations
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.instance import Deployment, capacity_provider
from lakebed.config.machines import MachineType, disk_of_machine, machine_types
from stacks import permissions, trust
from stacks.constructs.names import NamedCluster
from stacks.constructs.python_bundle import target_of

STARTED_AT_ONCE_MAX = 10
"""Machines that ECS asks for in one step."""
WARM_UP_SECONDS = 180
"""Seconds from the start of a machine until it has tasks: it boots, and its agent joins the
cluster. ECS asks for no further ones before."""
OF_ECS = autoscaling.CfnAutoScalingGroup.TagPropertyProperty(
    key="AmazonECSManaged", value="", propagate_at_launch=True
)
"""The tag by which ECS knows groups that it may let grow. It adds it by itself: a deployment must
not take it away."""
ROOT_DEVICE = "/dev/xvda"
AGENT = """\
#!/bin/bash
echo ECS_CLUSTER={cluster} >>/etc/ecs/ecs.config
echo ECS_RESERVED_MEMORY=256 >>/etc/ecs/ecs.config
echo ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION=1m >>/etc/ecs/ecs.config
"""
"""The script that a machine runs when it begins: the agent of ECS learns where it belongs, and that
what a task left on the disk goes with it; else it stays for three hours."""


class Machines(Construct):
    """A group of machines, and the capacity provider by which ECS lets it grow and shrink. No
    person can log in to one, and tasks on it have no way to its own role. Only the provider has a
    name that is known: a group that could not be deleted must not stand in the way of the next.

    provider: the capacity provider, which the cluster must name.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        cluster: NamedCluster,
        subnet_ids: Sequence[str],
        security_group: ec2.CfnSecurityGroup,
        public: bool,
    ) -> None:
        super().__init__(scope, id)
        self._deployment = deployment
        self._cluster = cluster
        architecture = target_of(deployment.settings.architecture).architecture
        types = machine_types(deployment.settings.machine_types, architecture=architecture)
        self._hardware = (
            ecs.AmiHardwareType.ARM if types[0].is_arm else ecs.AmiHardwareType.STANDARD
        )
        template = self._template(types, security_group, public=public)
        group = self._group(types, template, subnet_ids)
        provider = ecs.CfnCapacityProvider
        self.provider = provider(
            self,
            "Provider",
            name=capacity_provider(deployment.instance),
            auto_scaling_group_provider=provider.AutoScalingGroupProviderProperty(
                auto_scaling_group_arn=group.ref,
                managed_draining="ENABLED",
                managed_termination_protection="DISABLED",  # a stack with it cannot be deleted
                managed_scaling=provider.ManagedScalingProperty(
                    status="ENABLED",
                    target_capacity=100,
                    minimum_scaling_step_size=1,
                    maximum_scaling_step_size=STARTED_AT_ONCE_MAX,
                    instance_warmup_period=WARM_UP_SECONDS,
                ),
            ),
        )

    def _profile(self) -> iam.CfnInstanceProfile:
        role = iam.Role(
            self,
            "Role",
            assumed_by=trust.machine_service(),
            inline_policies={"Own": iam.PolicyDocument(statements=_join(self._cluster))},
        )
        permissions.accepted_everywhere(
            role, "IAM knows no resource for finding the address to which an agent of ECS reports"
        )
        plain = (
            "arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:container-instance"
            f"/{self._cluster.cluster_name}/*"
        )
        Validations.of(role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{plain}]",
                reason="machines get their ids when they join; their cluster is exact",
            )
        )
        return iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])

    def _template(
        self, types: list[MachineType], security_group: ec2.CfnSecurityGroup, *, public: bool
    ) -> ec2.CfnLaunchTemplate:
        settings = self._deployment.settings
        disk = disk_of_machine(
            types,
            vcpus=settings.task_vcpus,
            memory_mib=settings.task_memory_mib,
            disk_gib=settings.task_disk_gib,
        )
        launch = ec2.CfnLaunchTemplate
        return launch(
            self,
            "Template",
            launch_template_data=launch.LaunchTemplateDataProperty(
                image_id=ecs.EcsOptimizedImage.amazon_linux2023(self._hardware)
                .get_image(self)
                .image_id,
                iam_instance_profile=launch.IamInstanceProfileProperty(
                    arn=self._profile().attr_arn
                ),
                metadata_options=launch.MetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                ),
                network_interfaces=[
                    launch.NetworkInterfaceProperty(
                        device_index=0,
                        associate_public_ip_address=public,
                        delete_on_termination=True,
                        groups=[security_group.attr_group_id],
                    )
                ],
                block_device_mappings=[
                    launch.BlockDeviceMappingProperty(
                        device_name=ROOT_DEVICE,
                        ebs=launch.EbsProperty(
                            encrypted=True,
                            delete_on_termination=True,
                            volume_size=disk,
                            volume_type="gp3",
                        ),
                    )
                ],
                tag_specifications=[
                    launch.TagSpecificationProperty(
                        resource_type="volume",
                        tags=[
                            CfnTag(key=key, value=value)
                            for key, value in self._deployment.all_tags().items()
                        ],
                    )
                ],
                user_data=Fn.base64(AGENT.format(cluster=self._cluster.cluster_name)),
            ),
        )

    def _group(
        self,
        types: list[MachineType],
        template: ec2.CfnLaunchTemplate,
        subnet_ids: Sequence[str],
    ) -> autoscaling.CfnAutoScalingGroup:
        """Return a group without machines. How many there are, ECS says from then on."""
        made = autoscaling.CfnAutoScalingGroup
        group = made(
            self,
            "Group",
            min_size="0",
            max_size=str(self._deployment.settings.machines_max),
            health_check_type="EC2",
            health_check_grace_period=WARM_UP_SECONDS,
            vpc_zone_identifier=list(subnet_ids),
            tags=[OF_ECS],
            mixed_instances_policy=made.MixedInstancesPolicyProperty(
                instances_distribution=made.InstancesDistributionProperty(
                    on_demand_allocation_strategy="prioritized",
                    on_demand_percentage_above_base_capacity=100,
                ),
                launch_template=made.LaunchTemplateProperty(
                    launch_template_specification=made.LaunchTemplateSpecificationProperty(
                        launch_template_id=template.ref, version=template.attr_latest_version_number
                    ),
                    overrides=[
                        made.LaunchTemplateOverridesProperty(instance_type=one.name)
                        for one in types
                    ],
                ),
            ),
        )
        Validations.of(group).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-AS3",
                reason="machines come and go with tasks, which report that they cannot start",
            ),
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-EC26",
                reason="the rule cannot read the launch template, whose disk is encrypted",
            ),
        )
        return group


def _join(cluster: NamedCluster) -> list[iam.PolicyStatement]:
    """Let an agent of ECS bring its machine into a cluster, take tasks there and report on them.
    The roles of the tasks do all else: they fetch images and write logs."""
    machines = (
        f"arn:{Aws.PARTITION}:ecs:{Aws.REGION}:{Aws.ACCOUNT_ID}:container-instance"
        f"/{cluster.cluster_name}/*"
    )
    in_cluster = {"ArnEquals": {"ecs:cluster": cluster.cluster_arn}}
    return [
        iam.PolicyStatement(actions=["ecs:DiscoverPollEndpoint"], resources=["*"]),
        iam.PolicyStatement(
            actions=[
                "ecs:RegisterContainerInstance",
                "ecs:DeregisterContainerInstance",
                "ecs:SubmitTaskStateChange",
                "ecs:SubmitContainerStateChange",
                "ecs:SubmitAttachmentStateChanges",
            ],
            resources=[cluster.cluster_arn],
        ),
        iam.PolicyStatement(
            actions=["ecs:Poll", "ecs:StartTelemetrySession"],
            resources=[machines],
            conditions=in_cluster,
        ),
    ]
