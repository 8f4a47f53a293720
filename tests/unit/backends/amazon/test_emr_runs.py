"""Clusters of EMR, for one run and shared: what is asked of EMR, and what its answers mean."""

from collections.abc import Iterator
from typing import Any

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.spark.cluster_runs import EmrClusterRuns
from lakebed.backends.aws.spark.shared_runs import OPEN_STEPS_MAX, EmrSharedRuns
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunAsked, RunState
from localcloud.programs.emulator_emr import cluster_id
from tests.contracts.spark.doubles import ENVIRONMENT, EmrDouble, with_shared
from tests.unit.backends.amazon_clients import made_up_clients

NAME = "a" * 32
CLUSTER = RunAsked(platform="cluster")


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=2) as made:
        yield made


@pytest.fixture
def emr(clients: AmazonClients) -> EmrDouble:
    return EmrDouble(clients, shared=False)


def requested(clients: AmazonClients, asked: RunAsked, launch: int = 0) -> dict[str, Any]:
    return EmrClusterRuns(clients, ENVIRONMENT)._request(NAME, asked, launch)


def test_a_cluster_runs_one_step_which_ends_it(clients: AmazonClients) -> None:
    asked = requested(clients, RunAsked(spark_conf={"spark.executor.cores": "2"}))
    assert asked["Name"] == f"{NAME}-0"
    assert asked["Instances"]["KeepJobFlowAliveWhenNoSteps"] is False
    assert asked["Instances"]["Ec2SubnetIds"] == ["subnet-1", "subnet-2"]
    assert asked["AutoTerminationPolicy"] == {"IdleTimeout": 600}
    assert asked["LogUri"] == "s3://data/spark-logs/"
    assert {"Key": "lakebed:instance", "Value": "dev"} in asked["Tags"]
    (step,) = asked["Steps"]
    assert step["ActionOnFailure"] == "TERMINATE_CLUSTER"
    words = step["HadoopJarStep"]["Args"]
    assert words[:3] == ["spark-submit", "--deploy-mode", "cluster"]
    assert words[-2:] == ["s3://assets/main.py", NAME]
    conf = dict(word.split("=", 1) for word in words[4:-2:2])
    assert conf["spark.executor.cores"] == "2"
    assert conf["spark.yarn.maxAppAttempts"] == "1"
    assert conf["spark.archives"] == "s3://assets/archive.zip#environment"
    assert conf["spark.yarn.appMasterEnv.LAKEBED_INSTANCE"] == "dev"
    assert conf["spark.executorEnv.PYTHONPATH"] == "./environment"


def test_no_message_says_where_our_code_is(clients: AmazonClients) -> None:
    asked = requested(clients, RunAsked(spark_conf={"spark.archives": "s3://other/x.zip"}))
    assert "other" not in str(asked)


def test_the_first_machine_is_never_a_spare_one_and_others_fall_back(
    clients: AmazonClients,
) -> None:
    asked = RunAsked(instance_types=("r7g.4xlarge",), units_max=7, spot=True)
    request = requested(clients, asked)
    first, rest = request["Instances"]["InstanceFleets"]
    assert (first["InstanceFleetType"], first["TargetOnDemandCapacity"]) == ("MASTER", 1)
    assert (rest["InstanceFleetType"], rest["TargetSpotCapacity"]) == ("CORE", 1)
    (spare,) = rest["LaunchSpecifications"].values()
    assert spare["TimeoutAction"] == "SWITCH_TO_ON_DEMAND"
    limits = request["ManagedScalingPolicy"]["ComputeLimits"]
    assert limits["MaximumCapacityUnits"] == 7
    assert rest["InstanceTypeConfigs"][0]["InstanceType"] == "r7g.4xlarge"


def test_each_launch_takes_the_next_kind_of_machines(clients: AmazonClients) -> None:
    def kind(asked: RunAsked, launch: int) -> str:
        fleets = requested(clients, asked, launch)["Instances"]["InstanceFleets"]
        kinds = {
            one["InstanceTypeConfigs"][0]["InstanceType"] for fleet in fleets for one in [fleet]
        }
        return str(kinds.pop())

    assert [kind(CLUSTER, n) for n in range(3)] == ["m7g.2xlarge", "m6g.2xlarge", "m7g.2xlarge"]
    own = RunAsked(platform="cluster", instance_types=("c7g.xlarge",))
    assert [kind(own, n) for n in range(2)] == ["c7g.xlarge"] * 2


def test_more_machines_than_the_instance_allows_are_refused(emr: EmrDouble) -> None:
    with pytest.raises(InvalidError, match="units_max=11") as caught:
        emr.runs.start(NAME, RunAsked(platform="cluster", units_max=11))
    assert "spark_cluster_units_max" in str(caught.value)
    assert emr.started() == 0


def test_a_kind_of_machine_that_does_not_exist_is_refused_with_what_emr_says(
    emr: EmrDouble,
) -> None:
    with pytest.raises(InvalidError, match="'huge' is not supported"):
        emr.runs.start(NAME, RunAsked(platform="cluster", instance_types=("huge",)))


def test_want_of_machines_is_told_from_failures_and_they_are_asked_for_again(
    emr: EmrDouble,
) -> None:
    first = emr.runs.start(NAME, CLUSTER)
    emr.clusters.end(first, "TERMINATED_WITH_ERRORS", "INSTANCE_FLEET_TIMEOUT", "no m7g")
    (run,) = emr.runs.since(Micros(0))
    assert (run.state, run.launches) == ("no capacity", 1)
    assert run.ended_at > 0
    assert "no m7g" in run.reason
    assert f"s3://data/spark-logs/{first}/" in run.reason
    assert emr.runs.start(NAME, CLUSTER) == first  # the message came again
    second = emr.runs.start(NAME, CLUSTER, launch=1)
    assert second != first
    assert emr.runs.start(NAME, CLUSTER, launch=1) == second
    (run,) = emr.runs.since(Micros(0))
    assert (run.id, run.state, run.launches) == (second, "open", 2)


@pytest.mark.parametrize(
    ("code", "message", "was_ready", "means"),
    [
        ("INSTANCE_FLEET_TIMEOUT", "", False, "no capacity"),
        ("INTERNAL_ERROR", "Insufficient capacity of m7g.2xlarge", False, "no capacity"),
        ("INSTANCE_FAILURE", "insufficient instances: taken back", True, "failed"),
        ("BOOTSTRAP_FAILURE", "", False, "failed"),
        ("STEP_FAILURE", "", True, "failed"),
    ],
)
def test_a_cluster_that_ran_did_not_want_machines(
    emr: EmrDouble, code: str, message: str, was_ready: bool, means: RunState
) -> None:
    cluster = emr.runs.start(NAME, CLUSTER)
    if was_ready:
        emr.begin()
    emr.clusters.end(cluster, "TERMINATED_WITH_ERRORS", code, message)
    assert [run.state for run in emr.runs.since(Micros(0))] == [means]


def test_a_cluster_that_somebody_ended_failed(emr: EmrDouble) -> None:
    emr.clusters.answer("TerminateJobFlows", {"JobFlowIds": [emr.runs.start(NAME, CLUSTER)]})
    (run,) = emr.runs.since(Micros(0))
    assert run.state == "failed"
    assert "USER_REQUEST" in run.reason


def test_clusters_of_others_are_passed_over_and_all_pages_are_read(emr: EmrDouble) -> None:
    for _ in range(60):
        emr.given_cluster()
    emr.runs.start(NAME, CLUSTER)
    for _ in range(60):
        emr.given_cluster()
    assert [run.name for run in emr.runs.since(Micros(0))] == [NAME]


def test_a_shared_cluster_with_as_many_steps_as_emr_allows_is_busy(
    clients: AmazonClients,
) -> None:
    emr = EmrDouble(clients, shared=True)
    for number in range(OPEN_STEPS_MAX):
        emr.clusters._add(cluster_id("shared"), [step(number)])
    with pytest.raises(UnavailableError, match="as many open steps"):
        emr.runs.start(NAME, RunAsked(platform="shared"))
    emr.succeed()
    emr.runs.start(NAME, RunAsked(platform="shared"))


def step(number: int) -> dict[str, Any]:
    return {"Name": f"other-{number}", "ActionOnFailure": "CONTINUE"}


def test_a_shared_cluster_that_is_gone_is_told_with_the_setting(clients: AmazonClients) -> None:
    EmrDouble(clients, shared=True)
    runs = EmrSharedRuns(clients, with_shared("j-gone"))
    with pytest.raises(InvalidError, match="j-gone"):
        runs.start(NAME, RunAsked(platform="shared"))
