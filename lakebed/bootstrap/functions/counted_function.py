"""Keeps what a function's runs used, by the clients that its services have."""

from __future__ import annotations

import os

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.stopwatch import seconds_so_far
from lakebed.bootstrap.functions.function_clients import clients_of_function
from lakebed.bootstrap.paying.usage import counted_function
from lakebed.config.environments import ReportedEnvironment, environment_of, variables_named
from lakebed.config.instance import InstanceId, physical_name
from lakebed.observe.usage import take_time_from
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.tasks.budgets import Budgets
from lakebed.tasks.usage_keeper import UsageKeeper

FunctionUsage = UsageKeeper


def function_usage() -> FunctionUsage | None:
    """Return what keeps the usage of this process. None: as `function_ledger`."""
    ledger = function_ledger()
    return None if ledger is None else counted_function(ledger, SystemClock())


def function_ledger() -> UsageLedger | None:
    """Return the ledger, to which most functions only add. None: the variables of this process do
    not say where it is, as those of an older deployment do not."""
    if not variables_named(ReportedEnvironment) <= os.environ.keys():
        return None
    from lakebed.backends.aws.costs.usage_ledger import DynamoUsageLedger

    environment = environment_of(ReportedEnvironment, os.environ)
    return DynamoUsageLedger(clients_of_function(), environment.processes_table, registry="")


def function_budgets() -> Budgets | None:
    """Return what was spent on tables in this month, for functions that may read the ledger. None:
    as `function_ledger`."""
    from lakebed.bootstrap.paying.budgets import budgets_over

    ledger = function_ledger()
    return None if ledger is None else budgets_over(ledger, SystemClock())


def work_of_function(function: str) -> str:
    """Return what a function does, as a kind of work: the end of its name, such as
    `splitting-trigger`. From now on it is known how long work takes."""
    take_time_from(seconds_so_far)
    instance = os.environ.get("LAKEBED_INSTANCE", "")
    return function.removeprefix(physical_name(InstanceId(instance), ""))
