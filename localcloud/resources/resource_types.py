"""Every type of resource that a template may ask for, and what stands in for it here.

Any other type is refused, as is a property that its maker does not know. The page
docs/design/localcloud.md lists the same types; a test compares.
"""

from __future__ import annotations

import msgspec

from localcloud.resources.calls import (
    make_custom,
    make_function,
    make_invoke_config,
    make_permission,
    make_rule,
    make_source,
    make_url,
)
from localcloud.resources.containers import (
    make_capacity_provider,
    make_cluster,
    make_task_definition,
)
from localcloud.resources.making import Maker
from localcloud.resources.networks import PREFIXES, note_network
from localcloud.resources.permissions import (
    make_key,
    make_managed_policy,
    make_policy,
    make_role,
)
from localcloud.resources.spark_applications import (
    make_application,
    make_machine_profile,
    note_security,
)
from localcloud.resources.stores import (
    make_bucket,
    make_bucket_policy,
    make_parameter,
    make_queue,
    make_queue_policy,
    make_table,
)
from localcloud.resources.watching import (
    make_alarm,
    make_dashboard,
    make_log_group,
    make_subscription,
    make_topic,
    make_topic_policy,
)

EMULATOR, RUNNER, NOTED = "emulator", "runner", "noted"


class ResourceType(msgspec.Struct, frozen=True):
    """The treatment of resources of one type.

    by: what stands in for the service.
    what: what it does then.
    """

    by: str
    what: str
    make: Maker


RESOURCE_TYPES = {
    "AWS::CloudFormation::CustomResource": ResourceType(
        NOTED, "it looks at AWS when an instance is deployed", make_custom
    ),
    "AWS::CloudWatch::Alarm": ResourceType(
        EMULATOR, "judged there, by metrics that the runner counts", make_alarm
    ),
    "AWS::CloudWatch::Dashboard": ResourceType(EMULATOR, "kept, not shown", make_dashboard),
    "AWS::DynamoDB::Table": ResourceType(EMULATOR, "with expiry, recovery and streams", make_table),
    "AWS::ECS::CapacityProvider": ResourceType(
        EMULATOR, "kept; tasks on its machines are processes of this one", make_capacity_provider
    ),
    "AWS::ECS::Cluster": ResourceType(EMULATOR, "keeps what tasks were asked for", make_cluster),
    "AWS::ECS::TaskDefinition": ResourceType(
        RUNNER, "a process that sees its image's files, with the task's role", make_task_definition
    ),
    "AWS::EMR::SecurityConfiguration": ResourceType(
        NOTED, "clusters are processes of this machine", note_security
    ),
    "AWS::EMRServerless::Application": ResourceType(
        RUNNER, "runs are local Spark processes, with the run's role", make_application
    ),
    **{
        name: ResourceType(NOTED, "there is one machine, with one network", note_network)
        for name in PREFIXES
    },
    "AWS::Events::Rule": ResourceType(
        RUNNER,
        "schedules call functions, in real or virtual time; the emulator sends events to queues",
        make_rule,
    ),
    "AWS::IAM::InstanceProfile": ResourceType(
        RUNNER, "steps of clusters are local Spark processes, with its role", make_machine_profile
    ),
    "AWS::IAM::ManagedPolicy": ResourceType(
        EMULATOR, "as a policy, for each role that has it", make_managed_policy
    ),
    "AWS::IAM::Policy": ResourceType(EMULATOR, "every request is judged by it", make_policy),
    "AWS::IAM::Role": ResourceType(EMULATOR, "functions have its credentials only", make_role),
    "AWS::KMS::Key": ResourceType(EMULATOR, "kept; nothing is encrypted", make_key),
    "AWS::Lambda::EventInvokeConfig": ResourceType(
        RUNNER, "how often a failed call of a schedule is repeated", make_invoke_config
    ),
    "AWS::Lambda::EventSourceMapping": ResourceType(
        RUNNER, "receives with the function's role, batches beside each other", make_source
    ),
    "AWS::Lambda::Function": ResourceType(
        RUNNER, "processes that see the bundle, the environment and the role", make_function
    ),
    "AWS::Lambda::Permission": ResourceType(
        RUNNER, "a schedule without one calls nothing", make_permission
    ),
    "AWS::Lambda::Url": ResourceType(
        EMULATOR,
        "an address on loopback; who asks is judged, the runner's function answers",
        make_url,
    ),
    "AWS::Logs::LogGroup": ResourceType(RUNNER, "files in the cloud's folder", make_log_group),
    "AWS::S3::Bucket": ResourceType(
        EMULATOR, "with versions and encryption; lifecycle rules are kept, not run", make_bucket
    ),
    "AWS::S3::BucketPolicy": ResourceType(
        EMULATOR, "every request is judged by it", make_bucket_policy
    ),
    "AWS::SNS::Subscription": ResourceType(
        EMULATOR, "notices go to queues; no mail is sent", make_subscription
    ),
    "AWS::SNS::Topic": ResourceType(EMULATOR, "gets the alarms that go off", make_topic),
    "AWS::SNS::TopicPolicy": ResourceType(EMULATOR, "kept", make_topic_policy),
    "AWS::SQS::Queue": ResourceType(EMULATOR, "with dead letters", make_queue),
    "AWS::SQS::QueuePolicy": ResourceType(
        EMULATOR, "every request is judged by it", make_queue_policy
    ),
    "AWS::SSM::Parameter": ResourceType(EMULATOR, "as on AWS", make_parameter),
}
