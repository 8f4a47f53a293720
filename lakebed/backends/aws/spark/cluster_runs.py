"""Runs of Spark on clusters of EMR, one for each, which ends with it.

EMR starts a cluster each time that it is asked, and knows no token: so clusters of the run's name
are looked for first; and should there be two after all, one of them commits.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_EMR
from lakebed.backends.aws.spark.emr_requests import micros_of, pages, refused_as, submit_step
from lakebed.backends.aws.spark.submit_conf import REASON_LENGTH, messages_since
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.config.instance import INSTANCE_TAG
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import RunAsked, RunState, SparkRun

IDLE_SECONDS_MAX = 600
"""Seconds after which a cluster that has nothing to do ends, should its step not end it."""
SPOT_MINUTES = 10
"""Minutes to wait for spot capacity; then on-demand machines are taken."""
NO_CAPACITY = "INSTANCE_FLEET_TIMEOUT"
NO_CAPACITY_WORDS = ("insufficient", "not enough capacity", "no spot capacity")
"""Words in EMR's message about a cluster that never came up for want of machines."""
_NAME = re.compile(r"([0-9a-f]{32})-(\d+)")
"""A run's name, and how often machines were asked for before."""
_LIST = Request(what="looking at clusters", needs="elasticmapreduce:ListClusters")
_RUN = Request(
    what="starting a cluster",
    needs="elasticmapreduce:RunJobFlow, elasticmapreduce:AddTags, iam:PassRole",
    once=True,
)


class EmrClusterRuns:
    """Clusters that are started for one run each, as its environment says."""

    def __init__(self, clients: AmazonClients, environment: BulkImportRunsEnvironment) -> None:
        self._clients = clients
        self._environment = environment
        self._requests = clients.requests(AMAZON_EMR, "clusters")

    def since(self, at: Micros) -> list[SparkRun]:
        """Return the runs whose clusters were created since a time. Of one for which machines were
        asked for again, the newest cluster counts."""
        newest: dict[str, tuple[int, Any]] = {}
        asked = {"CreatedAfter": datetime.fromtimestamp(at // MICROS_PER_SECOND, UTC)}
        for cluster in pages(
            self._requests, _LIST, self._clients.emr.list_clusters, asked, "Clusters"
        ):
            found = _NAME.fullmatch(str(cluster["Name"]))
            if found is None:  # somebody else's
                continue
            name, launch = found[1], int(found[2])
            if name not in newest or newest[name][0] < launch:
                newest[name] = launch, cluster
        logs = self._environment.cluster_logs
        return [_run_of(name, *seen, logs=logs) for name, seen in newest.items()]

    def start(self, name: str, asked: RunAsked, *, launch: int = 0) -> str:
        """Start a cluster that runs one step and ends, unless one was started as often.

        Raises:
            InvalidError: with what EMR says of the request, too. UnavailableError: it may be
                started; try it again.
        """
        for known in self.since(messages_since(self._clients.clock)):
            if known.name == name and known.launches > launch:
                return known.id
        request = self._request(name, asked, launch)
        hint = "change `instance_types`, `units_max` or `spark_conf`"
        answer = self._requests.run(
            _RUN, lambda: refused_as(lambda: self._clients.emr.run_job_flow(**request), hint)
        )
        return str(answer["JobFlowId"])

    def _request(self, name: str, asked: RunAsked, launch: int) -> dict[str, Any]:
        own = self._environment
        kinds = asked.instance_types or own.cluster_types.split(",")
        step = submit_step(name, own, self._clients.region, asked)
        limits = {"UnitType": "InstanceFleetUnits", "MinimumCapacityUnits": 1}
        return {
            "Name": f"{name}-{launch}",
            "ReleaseLabel": own.spark_release,
            "Applications": [{"Name": "Spark"}],
            "LogUri": own.cluster_logs,
            "ServiceRole": own.cluster_service_role,
            "JobFlowRole": own.cluster_profile,
            "SecurityConfiguration": own.cluster_security,
            "VisibleToAllUsers": True,
            "Instances": {
                "InstanceFleets": _fleets(kinds[launch % len(kinds)], spot=asked.spot),
                "Ec2SubnetIds": own.cluster_subnets.split(","),
                "EmrManagedMasterSecurityGroup": own.cluster_security_group,
                "EmrManagedSlaveSecurityGroup": own.cluster_security_group,
                "KeepJobFlowAliveWhenNoSteps": False,
                "TerminationProtected": False,
            },
            "ManagedScalingPolicy": {
                "ComputeLimits": {**limits, "MaximumCapacityUnits": self._units(asked)}
            },
            "AutoTerminationPolicy": {"IdleTimeout": IDLE_SECONDS_MAX},
            "Steps": [{**step, "ActionOnFailure": "TERMINATE_CLUSTER"}],
            "Tags": [{"Key": key, "Value": value} for key, value in self._tags().items()],
        }

    def _tags(self) -> dict[str, str]:
        """Return the tags of a cluster: the instance's, and the one that EMR's own policy asks
        for."""
        given = msgspec.json.decode(self._environment.tags, type=dict[str, str])
        own = {INSTANCE_TAG: self._environment.instance}
        return {**given, **own, "for-use-with-amazon-emr-managed-policies": "true"}

    def _units(self, asked: RunAsked) -> int:
        """Return how many machines may work. Raises: InvalidError for more than are allowed."""
        most = int(self._environment.cluster_units_max)
        if asked.units_max is not None and asked.units_max > most:
            hint = "ask for fewer, or deploy with a larger `spark_cluster_units_max`"
            raise InvalidError(
                "more machines than one import may have",
                units_max=asked.units_max,
                max=most,
                hint=hint,
            )
        return most if asked.units_max is None else asked.units_max


def _fleets(kind: str, *, spot: bool) -> list[dict[str, Any]]:
    """Return a first machine, which is never a spare one, and those that do the work: one at first,
    as many as work needs."""
    first = {
        "InstanceFleetType": "MASTER",
        "TargetOnDemandCapacity": 1,
        "InstanceTypeConfigs": [{"InstanceType": kind}],
    }
    rest: dict[str, Any] = {
        "InstanceFleetType": "CORE",
        "TargetSpotCapacity" if spot else "TargetOnDemandCapacity": 1,
        "InstanceTypeConfigs": [{"InstanceType": kind, "WeightedCapacity": 1}],
    }
    if spot:
        rest["LaunchSpecifications"] = {
            "SpotSpecification": {
                "TimeoutDurationMinutes": SPOT_MINUTES,
                "TimeoutAction": "SWITCH_TO_ON_DEMAND",
                "AllocationStrategy": "capacity-optimized",
            }
        }
    return [first, rest]


def _run_of(name: str, launch: int, cluster: dict[str, Any], *, logs: str) -> SparkRun:
    status = cluster["Status"]
    changed = status.get("StateChangeReason", {})
    code, timeline = str(changed.get("Code", "")), status.get("Timeline", {})
    said = str(changed.get("Message", ""))
    state = _cluster_state(str(status["State"]), code)
    if state == "failed" and "ReadyDateTime" not in timeline and _lacks_capacity(code, said):
        state = "no capacity"
    what = f"{status['State']}: {code} {said}"[:REASON_LENGTH]
    return SparkRun(
        name=name,
        id=str(cluster["Id"]),
        state=state,
        reason="" if state == "succeeded" else f"{what} (logs: {logs}{cluster['Id']}/)",
        launches=launch + 1,
        ended_at=micros_of(timeline.get("EndDateTime")),
    )


def _lacks_capacity(code: str, said: str) -> bool:
    return code == NO_CAPACITY or any(word in said.lower() for word in NO_CAPACITY_WORDS)


def _cluster_state(state: str, code: str) -> RunState:
    if state == "TERMINATED_WITH_ERRORS":
        return "failed"
    if state != "TERMINATED":
        return "open"
    return "succeeded" if code == "ALL_STEPS_COMPLETED" else "failed"
