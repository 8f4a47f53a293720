"""Clusters of EMR, on which bulk imports run that ask for one: what EMR and machines may do."""

from aws_cdk import Acknowledgment, Aws, Stack, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emr as emr
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.spark.clusters import LOGS_PREFIX, TYPES
from stacks import permissions, trust
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import target_of
from stacks.constructs.spark_program import SparkProgram
from stacks.networking import FOR_EMR, NetworkingStack, to_services
from stacks.permissions import bucket_name
from stacks.spark.permissions import (
    LOGS,
    logs_arn,
    pass_role,
    write_cluster_logs,
)

SERVICE_POLICY = "service-role/AmazonEMRServicePolicy_v2"


class SparkClustersStack(Stack):
    """Roles, a security group and a security configuration; no cluster, and no cost.

    service_role: by which EMR makes machines. machine_role: that machines have, which are what
    drivers and tasks of bulk imports are on EMR Serverless; they also log.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        network: NetworkingStack,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("spark-clusters"),
            description=f"Lakebed {deployment.instance}: clusters of EMR, while there are any",
        )
        self._deployment = deployment
        self.subnet_ids = network.subnet_ids
        self.machine_role = self._machine_role(stores)
        self.profile = iam.CfnInstanceProfile(
            self,
            "MachineProfile",
            instance_profile_name=deployment.name("spark-machines"),
            roles=[self.machine_role.role_name],
        )
        self.service_role = self._service_role()
        self.security_group = self._security_group(network)
        self.security = emr.CfnSecurityConfiguration(
            self,
            "Security",
            name=deployment.name("spark-clusters"),
            security_configuration={
                "InstanceMetadataServiceConfiguration": {
                    "MinimumInstanceMetadataServiceVersion": 2,
                    "HttpPutResponseHopLimit": 1,
                }
            },
        )

    def variables(self) -> dict[str, str]:
        """Return what who starts clusters reads, by field of `BulkImportRunsEnvironment`."""
        settings = self._deployment.settings
        kinds = settings.spark_cluster_types
        return {
            "cluster_service_role": self.service_role.role_arn,
            "cluster_profile": self.profile.ref,
            "cluster_security": self.security.ref,
            "cluster_security_group": self.security_group.attr_group_id,
            "cluster_subnets": ",".join(self.subnet_ids),
            "cluster_types": kinds or TYPES[target_of(settings.architecture).architecture],
            "cluster_units_max": str(settings.spark_cluster_units_max),
            "cluster_logs": f"s3://{bucket_name(self._deployment)}/{LOGS_PREFIX}/",
            "shared_cluster": settings.shared_cluster,
        }

    def _machine_role(self, stores: LakeStores) -> iam.Role:
        deployment = self._deployment
        program = SparkProgram(self, deployment=deployment)
        own = [*program.permissions(deployment, stores), write_cluster_logs(deployment)]
        role = iam.Role(
            self,
            "MachineRole",
            assumed_by=trust.machine_service(),
            inline_policies={"Own": iam.PolicyDocument(statements=own)},
        )
        Validations.of(role).acknowledge(
            *permissions.accepted(deployment),
            Acknowledgment(
                id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{_plain(logs_arn(deployment))}]",
                reason=LOGS,
            ),
        )
        return role

    def _service_role(self) -> iam.Role:
        """Return what EMR has: AWS's own policy, which names all that machines are made of, and
        allows it for what has EMR's tag."""
        passes = pass_role(self.machine_role, "ec2.amazonaws.com")
        role = iam.Role(
            self,
            "ServiceRole",
            assumed_by=trust.cluster_service(self),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(SERVICE_POLICY)],
            inline_policies={"Own": iam.PolicyDocument(statements=[passes])},
        )
        policy = f"arn:<AWS::Partition>:iam::aws:policy/{SERVICE_POLICY}"
        Validations.of(role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions::AwsSolutions-IAM4[Policy::{policy}]",
                reason="AWS says what EMR needs to make machines, and changes it with EMR; it"
                " holds for what has the tag of EMR only",
            )
        )
        return role

    def _security_group(self, network: NetworkingStack) -> ec2.CfnSecurityGroup:
        """Return the group of all machines: they reach each other, and TLS ports; nothing else
        reaches them."""
        group = ec2.CfnSecurityGroup(
            self,
            "MachinesGroup",
            group_name=self._deployment.name("spark-machines"),
            group_description=f"Lakebed {self._deployment.instance}: machines of clusters",
            vpc_id=network.vpc_id,
            security_group_egress=[to_services()],
        )
        ec2.CfnSecurityGroupIngress(
            self,
            "FromEachOther",
            group_id=group.attr_group_id,
            ip_protocol="-1",
            source_security_group_id=group.attr_group_id,
            description="machines of clusters",
        )
        ec2.CfnSecurityGroupEgress(
            self,
            "ToEachOther",
            group_id=group.attr_group_id,
            ip_protocol="-1",
            destination_security_group_id=group.attr_group_id,
            description="machines of clusters",
        )
        Tags.of(group).add(FOR_EMR, "true")
        return group


def _plain(arn: str) -> str:
    """Return an ARN as cdk-nag writes it, with names in place of what is not known yet."""
    for token, name in (
        (Aws.PARTITION, "AWS::Partition"),
        (Aws.ACCOUNT_ID, "AWS::AccountId"),
        (Aws.REGION, "AWS::Region"),
    ):
        arn = arn.replace(token, f"<{name}>")
    return arn
