"""What clusters of EMR get from an instance, and that nothing is deployed where none are wanted."""

import json
from typing import Any

import pytest

from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.rules.security_rules import services_without_source
from tests.stacks.test_templates import resources

SHARED = "j-1A2B3C4D5E6F7"


@pytest.fixture(scope="module")
def with_clusters(synthesize: Synthesize) -> Templates:
    return synthesize(spark_clusters="true", shared_cluster=SHARED, sources="s3://landing")


def of_stack(templates: Templates, stack: str, type_: str) -> list[dict[str, Any]]:
    found = templates[stack]["Resources"].values()
    return [one["Properties"] for one in found if one["Type"] == type_]


def statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    (policy,) = role["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def role_for(templates: Templates, stack: str, service: str) -> dict[str, Any]:
    (found,) = [
        role
        for role in of_stack(templates, stack, "AWS::IAM::Role")
        if service in json.dumps(role["AssumeRolePolicyDocument"])
    ]
    return found


def test_without_clusters_nothing_of_them_is_deployed(templates: Templates) -> None:
    text = json.dumps(templates)
    assert "elasticmapreduce" not in text
    assert not resources(templates, "AWS::EMR::SecurityConfiguration")
    (start,) = [
        one
        for one in of_stack(templates, "import", "AWS::Lambda::Function")
        if one["FunctionName"].endswith("-start")
    ]
    variables = start["Environment"]["Variables"]
    assert variables["LAKEBED_CLUSTER_SERVICE_ROLE"] == variables["LAKEBED_SHARED_CLUSTER"] == ""


def test_machines_may_do_what_runs_on_emr_serverless_may_and_log(
    with_clusters: Templates,
) -> None:
    def shown(statement: dict[str, Any]) -> str:
        return json.dumps(statement, sort_keys=True)

    jobs = {shown(s) for s in statements(role_for(with_clusters, "import", "emr-serverless"))}
    machines = statements(role_for(with_clusters, "clusters", "ec2.amazonaws.com"))
    assert [s["Action"] for s in machines if shown(s) not in jobs and s["Action"] == "s3:PutObject"]
    assert {json.dumps(s["Action"]) for s in machines} == {
        json.dumps(json.loads(s)["Action"]) for s in jobs
    }


def test_who_starts_clusters_may_start_those_of_the_instance_only(
    with_clusters: Templates,
) -> None:
    roles = of_stack(with_clusters, "import", "AWS::IAM::Role")
    of_functions = [r for r in roles if "lambda" in json.dumps(r["AssumeRolePolicyDocument"])]
    assert len(of_functions) == 2
    for role in of_functions:
        own = [s for s in statements(role) if "elasticmapreduce" in json.dumps(s["Action"])]
        starts = [s for s in own if s["Action"] == "elasticmapreduce:RunJobFlow"]
        assert [s["Condition"] for s in starts] == [
            {"StringEquals": {"aws:RequestTag/lakebed:instance": "dev"}}
        ]
        (steps,) = [s for s in own if "elasticmapreduce:AddJobFlowSteps" in s["Action"]]
        assert json.dumps(steps["Resource"]).endswith(f':cluster/{SHARED}"]]}}')
        passed = {
            s["Condition"]["StringEquals"]["iam:PassedToService"]
            for s in statements(role)
            if s["Action"] == "iam:PassRole"
        }
        assert passed >= {"elasticmapreduce.amazonaws.com", "ec2.amazonaws.com"}


def test_statements_name_what_iam_knows_and_services_say_for_whom_they_ask(
    with_clusters: Templates,
) -> None:
    assert not unknown_to_iam(with_clusters)
    assert not services_without_source(with_clusters)


def test_machines_are_reached_by_each_other_only_and_ask_for_credentials_with_a_token(
    with_clusters: Templates,
) -> None:
    (group,) = of_stack(with_clusters, "clusters", "AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
    (ingress,) = of_stack(with_clusters, "clusters", "AWS::EC2::SecurityGroupIngress")
    assert "SourceSecurityGroupId" in ingress
    assert "CidrIp" not in ingress
    (security,) = of_stack(with_clusters, "clusters", "AWS::EMR::SecurityConfiguration")
    metadata = security["SecurityConfiguration"]["InstanceMetadataServiceConfiguration"]
    assert metadata["MinimumInstanceMetadataServiceVersion"] == 2


def test_logs_of_clusters_go(with_clusters: Templates) -> None:
    (rule,) = [
        rule
        for bucket in of_stack(with_clusters, "data", "AWS::S3::Bucket")
        for rule in bucket["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "spark-logs/"
    ]
    assert rule["ExpirationInDays"] == 30


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"shared_cluster": SHARED}, "spark_clusters=true"),
        ({"spark_clusters": "true", "task_addresses": "private"}, "no way to EMR"),
        ({"shared_cluster": "my-cluster"}, "shared_cluster"),
        ({"spark_cluster_types": "huge"}, "spark_cluster_types"),
        ({"spark_cluster_types": ",".join(["m7g.large"] * 6)}, "spark_cluster_types"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidError) as caught:
        instance_settings(settings)
    assert says in str(caught.value)
