"""Runs of Spark as steps of a cluster of EMR that stays.

EMR adds a step each time that it is asked, and knows no token: so a step of the run's name is
looked for first; and should there be two after all, one of them commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_EMR
from lakebed.backends.aws.spark.emr_requests import micros_of, pages, refused_as, submit_step
from lakebed.backends.aws.spark.submit_conf import REASON_LENGTH, messages_since
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunAsked, RunState, SparkRun

OPEN_STEPS_MAX = 256
"""Most open steps that EMR allows in one cluster."""
_ACTIVE_STEPS = "active steps"
"""Words in EMR's message about a cluster that has as many active steps as it may."""
_STATES: Mapping[str, RunState] = {
    "COMPLETED": "succeeded",
    "CANCELLED": "failed",
    "FAILED": "failed",
    "INTERRUPTED": "failed",
}
_LIST = Request(what="looking at a cluster's steps", needs="elasticmapreduce:ListSteps")
_ADD = Request(what="adding a step", needs="elasticmapreduce:AddJobFlowSteps", once=True)


class EmrSharedRuns:
    """Steps of the cluster that its environment names."""

    def __init__(self, clients: AmazonClients, environment: BulkImportRunsEnvironment) -> None:
        self._clients = clients
        self._environment = environment
        self._cluster = environment.shared_cluster
        self._requests = clients.requests(AMAZON_EMR, self._cluster)

    def since(self, at: Micros) -> list[SparkRun]:
        """Return the runs whose steps were added since a time. Of several of a name, the first
        counts."""
        runs: dict[str, SparkRun] = {}
        for step in self._steps(at):  # newest first
            run = _run_of(step, self._cluster)
            runs[run.name] = run
        return list(runs.values())

    def _steps(self, at: Micros) -> Iterator[Any]:
        asked = {"ClusterId": self._cluster}
        for step in pages(self._requests, _LIST, self._clients.emr.list_steps, asked, "Steps"):
            if micros_of(step["Status"].get("Timeline", {}).get("CreationDateTime")) < at:
                return
            yield step

    def start(self, name: str, asked: RunAsked, *, launch: int = 0) -> str:
        """Add a step, unless one of this name was added. launch: not looked at, for the cluster is
        there.

        Raises:
            InvalidError: with what EMR says of the request, too. UnavailableError: the cluster has
                as many open steps as EMR allows, or the step may be added; try it again.
        """
        del launch
        runs = self.since(messages_since(self._clients.clock))
        for known in runs:
            if known.name == name:
                return known.id
        if sum(run.state == "open" for run in runs) >= OPEN_STEPS_MAX:
            raise self._full()
        step = submit_step(name, self._environment, self._clients.region, asked)
        request = {
            "JobFlowId": self._cluster,
            "Steps": [{**step, "ActionOnFailure": "CONTINUE"}],
        }
        hint = "deploy with a `shared_cluster` that is there, or change `platform`"
        try:
            answer = self._requests.run(
                _ADD,
                lambda: refused_as(lambda: self._clients.emr.add_job_flow_steps(**request), hint),
            )
        except InvalidError as error:
            if _ACTIVE_STEPS in str(error.facts.get("why", "")):  # others were faster
                raise self._full() from None
            raise
        return _id_of(self._cluster, answer["StepIds"][0])

    def _full(self) -> UnavailableError:
        hint = "it is tried again; add clusters, or send with another `platform`"
        return UnavailableError(
            "the shared cluster has as many open steps as EMR allows",
            cluster=self._cluster,
            max=OPEN_STEPS_MAX,
            hint=hint,
        )


def _id_of(cluster: str, step: str) -> str:
    return f"{cluster}/{step}"


def _run_of(step: Any, cluster: str) -> SparkRun:  # noqa: ANN401 - a summary as boto3 gives it
    status = step["Status"]
    details = status.get("FailureDetails", {})
    state: RunState = _STATES.get(str(status["State"]), "open")
    said = " ".join(str(details[name]) for name in ("Reason", "Message") if name in details)
    what = f"{status['State']}: {said or status.get('StateChangeReason', {}).get('Message', '')}"
    logs = f" (logs: {details['LogFile']})" if "LogFile" in details else ""
    return SparkRun(
        name=str(step["Name"]),
        id=_id_of(cluster, step["Id"]),
        state=state,
        reason="" if state == "succeeded" else what[:REASON_LENGTH] + logs,
        ended_at=micros_of(status.get("Timeline", {}).get("EndDateTime")),
    )
