"""Tasks of ECS in the emulator's process: who may ask for them, under which token, with which tags.

Loaded by `emulator_process`, by its path.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core import iam_actions, iam_evaluator, responses
from ministack.services import ecs

TAGGED = "lakebed:tagged"
"""Key of a request that is judged: it asks for tasks with tags."""


def install() -> None:
    """Mend what differs from AWS."""
    _mend_tags()
    _mend_requests()


def _mend_requests() -> None:
    """Judge who asks for tasks as AWS does: by definition or task, or by nothing where all are to
    be told, with the cluster as a condition, and by the roles that a task is given. Start what was
    asked for under one token once."""
    resource_of, context_of = iam_actions.extract_resource_arn, iam_actions.request_tag_context
    judged, run_task = iam_evaluator.enforce, ecs._ACTION_MAP["RunTask"]  # noqa: SLF001 - as below
    answers: dict[str, Any] = {}

    def resource(service: str, *given: Any) -> str:  # noqa: ANN401 - MiniStack's, passed on
        request = json.loads(given[3] or b"{}") if service == "ecs" else {}
        if "taskDefinition" in request:
            return str(request["taskDefinition"])
        if "cluster" in request:
            return str(request["tasks"][0] if "tasks" in request else "*")
        if "clusters" in request:
            return _cluster_arn(request["clusters"][0])
        found: str = resource_of(service, *given)
        return found

    def context(service: str, action: str, body: bytes, params: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = context_of(service, action, body, params)
        request = json.loads(body or b"{}") if service == "ecs" else {}
        cluster = {"ecs:cluster": _cluster_arn(request["cluster"])} if "cluster" in request else {}
        return found | cluster

    def enforce(
        key: str,
        action: str,
        *given: Any,  # noqa: ANN401 - MiniStack's, passed on
        resource_arn: str = "*",
        **more: Any,  # noqa: ANN401 - the same
    ) -> Any:  # noqa: ANN401 - the same
        denied = judged(key, action, *given, resource_arn=resource_arn, **more)
        if action != "ecs:RunTask" or denied:
            return denied
        passed = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
        key_of = resource_arn.rpartition("/")[2]
        definition = ecs._task_defs.get(key_of, {})  # noqa: SLF001 - as below
        roles = [definition.get(name) for name in ("taskRoleArn", "executionRoleArn")]
        refused = (
            judged(key, "iam:PassRole", *given, resource_arn=role, service_context=passed)
            for role in roles
            if role
        )
        return next(filter(None, refused), None)

    def run(request: dict[str, Any]) -> Any:  # noqa: ANN401 - the same
        token = request.get("clientToken")
        if token is None:
            return run_task(request)
        if token not in answers:
            answers[token] = run_task(request)
        return answers[token]

    iam_actions.extract_resource_arn = resource
    iam_actions.request_tag_context = context
    iam_evaluator.enforce = enforce
    ecs._ACTION_MAP["RunTask"] = run  # noqa: SLF001 - it knows no tokens


def _mend_tags() -> None:
    """Judge who asks for tasks with tags by the permission to tag them while they are started. Give
    tasks the tags of their definition, if they are asked for: MiniStack passes over that."""
    context_of = iam_actions.request_tag_context
    judged, run_task = iam_evaluator.enforce, ecs._ACTION_MAP["RunTask"]  # noqa: SLF001 - as below

    def context(service: str, action: str, body: bytes, params: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = context_of(service, action, body, params)
        request = json.loads(body or b"{}") if action == "ecs:RunTask" else {}
        with_tags = request.get("propagateTags") or request.get("tags")
        return found | ({TAGGED: "true"} if with_tags else {})

    def enforce(
        key: str,
        action: str,
        *given: Any,  # noqa: ANN401 - MiniStack's, passed on
        **more: Any,  # noqa: ANN401 - the same
    ) -> Any:  # noqa: ANN401 - the same
        denied = judged(key, action, *given, **more)
        asked = more.get("service_context") or {}
        if action != "ecs:RunTask" or denied or TAGGED not in asked:
            return denied
        task = f"{asked['ecs:cluster'].replace(':cluster/', ':task/')}/new"
        started = {"ecs:CreateAction": "RunTask"}
        return judged(key, "ecs:TagResource", *given, resource_arn=task, service_context=started)

    def run(request: dict[str, Any]) -> Any:  # noqa: ANN401 - MiniStack's
        if request.get("propagateTags") == "TASK_DEFINITION":
            known = ecs._tags.get(request["taskDefinition"], [])  # noqa: SLF001 - as below
            request = {**request, "tags": [*known, *request.get("tags", [])]}
        return run_task(request)

    iam_actions.request_tag_context = context
    iam_evaluator.enforce = enforce
    ecs._ACTION_MAP["RunTask"] = run  # noqa: SLF001 - no public member has tags of definitions


def ended(arn: str, code: int) -> None:
    """Let ECS know how a task ended that it takes for running since it was asked for."""
    account, region = arn.split(":")[4], arn.split(":")[3]
    with responses.request_scope(account, region):
        task = ecs._tasks[arn]  # noqa: SLF001 - there is no API for what containers do
        ecs._mark_task_stopped(  # noqa: SLF001 - the same
            arn, task, "Essential container in task exited", "EssentialContainerExited", code
        )


def _cluster_arn(name: str) -> str:
    account, region = responses.get_account_id(), responses.get_region()
    return name if name.startswith("arn:") else f"arn:aws:ecs:{region}:{account}:cluster/{name}"
