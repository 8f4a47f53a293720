"""Starts tasks by hand: on ECS as the instance's own function would, or processes here."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.feeds.further_processes import PROGRAM
from lakebed.bootstrap.functions.task_start import task_runner
from lakebed.bootstrap.object_locations import GIVEN
from lakebed.config.environments import StartedTaskEnvironment, environment_of
from lakebed.config.fargate import SPOT
from lakebed.config.instance import instance_id, physical_name
from lakebed.errors import InvalidError
from lakebed.tasks.start_by_hand import StartByHand, TasksStarted

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

OF_A_DIRECTORY = "compaction"
WORK = ("--kind", "compaction-creation", "--kind", "compaction", "--json")


def start_tasks(app: App, kind: str, count: int) -> TasksStarted:
    """Start tasks of a lake. Raises: see `OperatedLake.start_tasks`."""
    if app.location.startswith(INSTANCE_SCHEME):
        from lakebed.bootstrap.aws import new_clients

        with closing(new_clients(SystemClock(), system_random())) as clients:
            return start_on_platform(
                clients, app.location.removeprefix(INSTANCE_SCHEME), kind, count
            )
    if kind != OF_A_DIRECTORY:
        hint = "`lakebed ingest` takes files in at once; `tasks start compaction` merges"
        raise InvalidError("a directory has no tasks of this kind", kind=kind, hint=hint)
    if app.local is None or app.local.directory.objects == GIVEN:
        hint = "`Lake.run` does the work in this process"
        raise InvalidError(
            "other processes do not find this lake's objects", lake=app.location, hint=hint
        )
    return _processes(app.location, count)


def start_on_platform(clients: AmazonClients, instance: str, kind: str, count: int) -> TasksStarted:
    """Start tasks on ECS, as the function of the instance is told that starts them by schedule."""
    environment = _environment(clients, instance, kind)
    starts = StartByHand(
        kind,
        runner=task_runner(clients, environment),
        tasks_max=int(environment.tasks_max),
        setting=f"{kind}_tasks_max",
        rng=system_random(),
    )
    return starts.run(count, spot=environment.capacity == SPOT)


def _environment(clients: AmazonClients, instance: str, kind: str) -> StartedTaskEnvironment:
    from lakebed.backends.aws.requests import Request
    from lakebed.backends.aws.service_answers import AMAZON_FUNCTION

    name = physical_name(instance_id(instance), f"{kind}-tasks", "start")
    request = Request(what="looking how tasks are started", needs="lambda:GetFunctionConfiguration")
    answer = clients.requests(AMAZON_FUNCTION, name).run(
        request, lambda: clients.functions.get_function_configuration(FunctionName=name)
    )
    return environment_of(
        StartedTaskEnvironment, answer.get("Environment", {}).get("Variables", {})
    )


def _processes(lake: str, count: int) -> TasksStarted:
    """Run processes on this machine until nothing is left to merge. They stop with this one."""
    program = PROGRAM.format(process=os.getpid())
    command = [sys.executable, "-c", program, "--lake", lake, "run", *WORK]
    running = [
        subprocess.Popen(  # noqa: S603 - our own program, without a shell
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for _ in range(count)
    ]
    outputs = [process.communicate()[0] for process in running]
    failed = sum(process.returncode != 0 for process in running)
    return TasksStarted(
        kind=OF_A_DIRECTORY,
        started=count,
        jobs_done=sum(map(_jobs_done, outputs)),
        failed=failed,
    )


def _jobs_done(output: bytes) -> int:
    try:
        return int(msgspec.json.decode(output)["jobs_done"])
    except (msgspec.DecodeError, KeyError, TypeError):  # it failed before it said anything
        return 0
