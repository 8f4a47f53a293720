"""Reports a function's release at its events, by the clients that its services have."""

from __future__ import annotations

import os

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import clients_of_function
from lakebed.bootstrap.releases import new_process_name
from lakebed.config.environments import ReportedEnvironment, environment_of, variables_named
from lakebed.upgrades.release_reports import ReleaseReports


def function_reports(function: str) -> ReleaseReports | None:
    """Return what reports this process. function: its name. None: its variables do not say where,
    as those of an older deployment do not."""
    if not variables_named(ReportedEnvironment) <= os.environ.keys():
        return None
    from lakebed.backends.aws.releases.processes import DynamoProcessReports

    environment = environment_of(ReportedEnvironment, os.environ)
    return ReleaseReports(
        DynamoProcessReports(clients_of_function(), environment.processes_table),
        clock=SystemClock(),
        process=new_process_name(system_random()),
        program=f"function {function}",
    )
