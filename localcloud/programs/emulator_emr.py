"""EMR in the emulator's process: clusters and steps, kept as EMR tells of them.

MiniStack's own reports steps as done, and runs none. Nothing is run here either: the runner asks
which steps wait, and reports how they go. Loaded by `emulator_process`, by its path.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any

from ministack import app
from ministack.core import iam_actions, responses, router
from ministack.core.iam_evaluator import enforce

SERVICE = "elasticmapreduce"
OPEN_CLUSTERS = ("STARTING", "RUNNING", "WAITING")
OPEN_STEPS = ("PENDING", "RUNNING", "CANCEL_PENDING")
OPEN_STEPS_MAX = 256
PAGE = 50
INSTANCE_TYPE = re.compile(r"[a-z]{1,3}\d[a-z]*\.\d*x?(large|metal)")
UNMODIFIABLE = "A job flow that is shutting down, terminated, or finished may not be modified."
TOO_MANY = (
    "Maximum number of active steps(State = 'Running', 'Pending' or 'Cancel_Pending') for cluster"
    " exceeded."
)


def cluster_id(name: str, before: int = 0) -> str:
    """Return the id of a cluster. before: how many of its name there were."""
    return "j-" + hashlib.sha256(f"{name}/{before}".encode()).hexdigest()[:13].upper()


class RefusedError(Exception):
    """A request that EMR refuses. code: EMR's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Clusters:
    """The clusters of one account and region, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._clusters: dict[str, dict[str, Any]] = {}
        self._steps: dict[str, list[dict[str, Any]]] = {}

    def answer(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what EMR answers. Raises: RefusedError."""
        match operation:
            case "RunJobFlow":
                return {"JobFlowId": self._run(given)}
            case "ListClusters":
                return self._listed(given)
            case "AddJobFlowSteps":
                return {"StepIds": self._add(self._open(given["JobFlowId"]), given["Steps"])}
            case "ListSteps":
                self._known(given["ClusterId"])
                newest = [_seen(one) for one in reversed(self._steps[given["ClusterId"]])]
                return _page("Steps", newest, given)
            case "TerminateJobFlows":
                for id_ in given["JobFlowIds"]:
                    self.end(self._open(id_), "TERMINATED", "USER_REQUEST", "User request")
                return {}
        raise RefusedError("ValidationException", f"a local cloud does not know {operation}")

    def waiting(self) -> list[dict[str, Any]]:
        """Return the steps that have not ended, each with its cluster."""
        return [
            {"cluster": cluster, "step": step}
            for id_, cluster in self._clusters.items()
            if cluster["Status"]["State"] in OPEN_CLUSTERS
            for step in self._steps[id_]
            if step["Status"]["State"] in OPEN_STEPS
        ]

    def end(self, cluster: str, state: str, code: str, message: str) -> None:
        """End a cluster, and its open steps with it."""
        status = self._clusters[cluster]["Status"]
        status |= {"State": state, "StateChangeReason": {"Code": code, "Message": message}}
        status["Timeline"]["EndDateTime"] = time.time()
        for step in self._open_steps(cluster):
            self._step_ends(step, "CANCELLED", "")

    def set_step(self, cluster: str, step: str, state: str, message: str) -> None:
        """Set the state of a step. A cluster that does not stay ends with its last one."""
        status = self._clusters[cluster]["Status"]
        found = next(one for one in self._steps[cluster] if one["Id"] == step)
        if state == "RUNNING":
            found["Status"]["State"] = status["State"] = state
            status["Timeline"].setdefault("ReadyDateTime", time.time())
            return
        self._step_ends(found, state, message)
        if state == "FAILED" and found["ActionOnFailure"] == "TERMINATE_CLUSTER":
            self.end(cluster, "TERMINATED_WITH_ERRORS", "STEP_FAILURE", message)
        elif not self._clusters[cluster]["stays"] and not list(self._open_steps(cluster)):
            self.end(cluster, "TERMINATED", "ALL_STEPS_COMPLETED", "Steps completed")
        else:
            status["State"] = "WAITING"

    def _run(self, given: dict[str, Any]) -> str:
        instances = given["Instances"]
        for kind in _kinds(given):
            if not INSTANCE_TYPE.fullmatch(kind):
                raise RefusedError(
                    "ValidationException", f"Instance type '{kind}' is not supported."
                )
        before = sum(one["Name"] == given["Name"] for one in self._clusters.values())
        id_ = cluster_id(given["Name"], before)
        stays = bool(instances.get("KeepJobFlowAliveWhenNoSteps"))
        status = {"State": "STARTING", "StateChangeReason": {}}
        timeline = {"CreationDateTime": time.time()}
        self._clusters[id_] = {
            "Id": id_,
            "Name": given["Name"],
            "Status": {**status, "Timeline": timeline},
            "profile": given["JobFlowRole"],
            "kinds": _kinds(given),
            "stays": stays,
        }
        self._steps[id_] = []
        self._add(id_, given.get("Steps", []))
        return id_

    def _add(self, cluster: str, steps: list[dict[str, Any]]) -> list[str]:
        if len(list(self._open_steps(cluster))) + len(steps) > OPEN_STEPS_MAX:
            raise RefusedError("ValidationException", TOO_MANY)
        added = []
        for step in steps:
            id_ = f"s-{len(self._steps[cluster]) + 1:013d}"
            timeline = {"CreationDateTime": time.time()}
            status = {"State": "PENDING", "StateChangeReason": {}, "Timeline": timeline}
            self._steps[cluster].append({**step, "Id": id_, "Status": status})
            added.append(id_)
        return added

    def _step_ends(self, step: dict[str, Any], state: str, message: str) -> None:
        step["Status"]["State"] = state
        step["Status"]["Timeline"]["EndDateTime"] = time.time()
        if message:
            step["Status"]["FailureDetails"] = {"Message": message}

    def _open_steps(self, cluster: str) -> Iterator[dict[str, Any]]:
        return (one for one in self._steps[cluster] if one["Status"]["State"] in OPEN_STEPS)

    def _listed(self, given: dict[str, Any]) -> dict[str, Any]:
        after = given.get("CreatedAfter", 0)
        found = [
            {name: cluster[name] for name in ("Id", "Name", "Status")}
            for cluster in reversed(self._clusters.values())
            if cluster["Status"]["Timeline"]["CreationDateTime"] >= after
        ]
        return _page("Clusters", found, given)

    def _known(self, cluster: str) -> str:
        if cluster not in self._clusters:
            raise RefusedError("InvalidRequestException", f"Cluster id '{cluster}' is not valid.")
        return cluster

    def _open(self, cluster: str) -> str:
        if self._clusters[self._known(cluster)]["Status"]["State"] not in OPEN_CLUSTERS:
            raise RefusedError("ValidationException", UNMODIFIABLE)
        return cluster


CLUSTERS = Clusters()


def install() -> None:
    """Let the emulator answer for EMR. Permissions are judged before, as for the others."""
    app.SERVICE_HANDLERS[SERVICE] = _answer
    # Where it finds which requests carry tags, which conditions of policies name.
    iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = ["emr"]  # noqa: SLF001 - no other way


async def _answer(
    _method: str, _path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    kind = {"Content-Type": "application/x-amz-json-1.1"}
    given = json.loads(body or b"{}")
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    try:
        if operation == "RunJobFlow":
            _check_role(given["ServiceRole"], headers, query)
        found = CLUSTERS.answer(operation, given)
    except RefusedError as refusal:
        error = {"__type": refusal.code, "message": str(refusal)}
        return 400, kind, json.dumps(error).encode()
    return 200, kind, json.dumps(found).encode()


def _check_role(role: str, headers: dict[str, str], query: dict[str, Any]) -> None:
    """Refuse who may not give EMR the role by which it makes machines."""
    key = router.extract_access_key_id(headers, query)
    context = {"iam:PassedToService": f"{SERVICE}.amazonaws.com"}
    region = responses.get_region()
    if (
        role.startswith("arn:")
        and app.AUTH
        and enforce(key, "iam:PassRole", "iam", region, resource_arn=role, service_context=context)
    ):
        raise RefusedError("AccessDeniedException", "not authorized to perform: iam:PassRole")


def _kinds(given: dict[str, Any]) -> list[str]:
    fleets = given["Instances"].get("InstanceFleets", [])
    return [one["InstanceType"] for fleet in fleets for one in fleet["InstanceTypeConfigs"]]


def _seen(step: dict[str, Any]) -> dict[str, Any]:
    return {name: step[name] for name in ("Id", "Name", "ActionOnFailure", "Status")}


def _page(field: str, found: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    begin = int(given.get("Marker", 0))
    more = {"Marker": str(begin + PAGE)} if begin + PAGE < len(found) else {}
    return {field: found[begin : begin + PAGE], **more}
