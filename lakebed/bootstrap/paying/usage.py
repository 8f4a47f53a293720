"""Keeps the usage of this process: of a function, a task, or any other program."""

from __future__ import annotations

import os

from lakebed.backends.system.stopwatch import seconds_so_far
from lakebed.bootstrap.machine import task_size
from lakebed.bootstrap.releases import FUNCTION_VARIABLE
from lakebed.observe.usage import PROCESS, collect_in, take_time_from
from lakebed.ports.clock import Clock
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.tasks.usage_keeper import RunsOn, UsageKeeper

FUNCTION_MEMORY_VARIABLE = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
"""The variable in which Lambda gives the memory of this function, in MiB."""


def counted_process(ledger: UsageLedger | None, clock: Clock) -> UsageKeeper:
    """Return what keeps the usage of a process that opened a lake. A function's is kept at the end
    of its runs by what runs it (`counted_function`), and not here."""
    take_time_from(seconds_so_far)
    if FUNCTION_VARIABLE in os.environ:
        return UsageKeeper(None, clock=clock, collector=PROCESS)
    vcpus, gb = task_size() or (0.0, 0.0)
    keeper = UsageKeeper(ledger, clock=clock, runs_on=RunsOn(vcpus=vcpus, gb=gb))
    collect_in(keeper.collector)
    return keeper


def counted_function(ledger: UsageLedger, clock: Clock) -> UsageKeeper:
    """Return what keeps the usage of a function's runs."""
    memory_mib = os.environ.get(FUNCTION_MEMORY_VARIABLE, "")
    gb = int(memory_mib) / 1024 if memory_mib.isdecimal() else 0.0
    return UsageKeeper(
        ledger, clock=clock, collector=PROCESS, runs_on=RunsOn(lambda_gb=gb, in_runs=True)
    )
