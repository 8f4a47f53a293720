"""EMR Serverless in the emulator's process, which has none: it keeps applications and runs.

Nothing is run here: the runner asks which runs wait, and reports how they go. Loaded by
`emulator_process`, by its path.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from datetime import datetime
from typing import Any

from ministack import app
from ministack.core import iam_actions, responses, router
from ministack.core.iam_evaluator import enforce

SERVICE = "emr-serverless"
PATH = re.compile(r"/applications(?:/([0-9a-z]+)(?:/jobruns(?:/([0-9a-z]+))?)?)?")
OPEN = ("SUBMITTED", "RUNNING", "CANCELLING")
RUN_FIELDS = ("applicationId", "name", "arn", "createdAt", "updatedAt", "state", "stateDetails")
CANCELLED = "Job run was cancelled"

_applications: dict[str, dict[str, Any]] = {}
_runs: dict[str, dict[str, Any]] = {}
"""Runs by id, in the order in which they were asked for."""


class _RefusedError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def install() -> None:
    """Let the emulator answer for EMR Serverless, with permissions checked as for the others."""
    detect = app.detect_service

    def detect_service(*request: Any) -> str:  # noqa: ANN401 - MiniStack's, passed on
        _, _, headers, _ = request
        if f"/{SERVICE}/aws4_request" in headers.get("authorization", ""):
            return SERVICE
        found: str = detect(*request)
        return found

    app.detect_service = detect_service
    app.SERVICE_HANDLERS[SERVICE] = _answer
    iam_actions.SERVICE_TO_IAM_NAMESPACE[SERVICE] = SERVICE
    iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = [SERVICE]  # noqa: SLF001 - where routes are
    resource_arn = iam_actions.extract_resource_arn

    def extract_resource_arn(*request: Any) -> str:  # noqa: ANN401 - MiniStack's, passed on
        service, _, path, *_, region, account = request
        if service != SERVICE:
            found: str = resource_arn(*request)
            return found
        return f"arn:aws:{SERVICE}:{region}:{account}:{path.removesuffix('/jobruns')}"

    iam_actions.extract_resource_arn = extract_resource_arn


def waiting() -> list[dict[str, Any]]:
    """Return the runs that have not ended."""
    return [run for run in _runs.values() if run["state"] in OPEN]


def application_arns() -> list[str]:
    """Return the ARNs of all applications."""
    return [application["arn"] for application in _applications.values()]


def set_state(run: str, state: str, details: str) -> None:
    """Set the state of a run."""
    _runs[run] |= {"state": state, "stateDetails": details, "updatedAt": time.time()}


async def _answer(
    method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    kind = {"Content-Type": "application/json"}
    try:
        given = json.loads(body or b"{}")
        found = _done(method, path, headers, given, query)
    except _RefusedError as refusal:
        kind["x-amzn-ErrorType"] = refusal.code
        return refusal.status, kind, json.dumps({"message": str(refusal)}).encode()
    return 200, kind, json.dumps(found).encode()


def _done(
    method: str, path: str, headers: dict[str, str], given: dict[str, Any], query: dict[str, Any]
) -> dict[str, Any]:
    found = PATH.fullmatch(path.rstrip("/"))
    if found is None:
        raise _RefusedError(
            400, "ValidationException", f"a local cloud does not know {method} {path}"
        )
    application, run = found.groups()
    if application is None and method == "POST":
        return _create(given)
    if application not in _applications:
        raise _RefusedError(
            404, "ResourceNotFoundException", f"Application {application} not found"
        )
    if path.endswith("/jobruns") and method == "POST":
        return _start(application, headers, given, query)
    if path.endswith("/jobruns") and method == "GET":
        return _listed(application, query)
    if run is None and method == "DELETE":
        del _applications[application]
        return {}
    if run is not None and run in _runs and method in ("GET", "DELETE"):
        if method == "DELETE" and _runs[run]["state"] in OPEN:
            set_state(run, "CANCELLING", "")
        return {"jobRun": _runs[run]} if method == "GET" else _ids(_runs[run])
    raise _RefusedError(404, "ResourceNotFoundException", f"not found: {method} {path}")


def _create(given: dict[str, Any]) -> dict[str, Any]:
    id_ = hashlib.sha256(given["name"].encode()).hexdigest()[:16]
    arn = _arn(f"/applications/{id_}")
    _applications[id_] = {**given, "applicationId": id_, "arn": arn}
    return {"applicationId": id_, "name": given["name"], "arn": arn}


def _start(
    application: str, headers: dict[str, str], given: dict[str, Any], query: dict[str, Any]
) -> dict[str, Any]:
    """Keep a run. The same token gives the same run, and is refused for another request."""
    role = given["executionRoleArn"]
    key = router.extract_access_key_id(headers, query)
    context = {"iam:PassedToService": f"{SERVICE}.amazonaws.com"}
    if app.AUTH and enforce(
        key, "iam:PassRole", "iam", _region(), resource_arn=role, service_context=context
    ):
        raise _RefusedError(403, "AccessDeniedException", "not authorized to perform: iam:PassRole")
    tagging = f"{SERVICE}:TagResource"
    run_arn = _arn(f"/applications/{application}/jobruns/new")
    tags = given.get("tags")
    if tags and app.AUTH and enforce(key, tagging, SERVICE, _region(), resource_arn=run_arn):
        raise _RefusedError(403, "AccessDeniedException", f"not authorized to perform: {tagging}")
    for run in _runs.values():
        if run["applicationId"] == application and run["clientToken"] == given["clientToken"]:
            if run["given"] != given:
                raise _RefusedError(409, "ConflictException", "the token is another request's")
            return _ids(run)
    id_ = f"{len(_runs) + 1:016x}"
    _runs[id_] = {
        **given,
        "given": given,
        "applicationId": application,
        "jobRunId": id_,
        "arn": _arn(f"/applications/{application}/jobruns/{id_}"),
        "createdAt": time.time(),
        "updatedAt": time.time(),
        "state": "SUBMITTED",
        "stateDetails": "",
    }
    return _ids(_runs[id_])


def _listed(application: str, query: dict[str, Any]) -> dict[str, Any]:
    after = _time(query.get("createdAtAfter"))
    found = [
        {"id": run["jobRunId"], **{name: run.get(name) for name in RUN_FIELDS}}
        for run in _runs.values()
        if run["applicationId"] == application and run["createdAt"] >= after
    ]
    return {"jobRuns": found}


def _ids(run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("applicationId", "jobRunId", "arn")}


def _time(value: Any) -> float:  # noqa: ANN401 - as MiniStack parses a query
    text = value[0] if isinstance(value, list) else value
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _arn(resource: str) -> str:
    return f"arn:aws:{SERVICE}:{_region()}:{responses.get_account_id()}:{resource}"


def _region() -> str:
    region: str = responses.get_region()
    return region
