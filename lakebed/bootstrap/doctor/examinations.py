"""Examines a lake: in a directory, or an instance on AWS. A lake that does not open is examined,
too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.backends.system.this_machine import ThisMachine
from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.aws import cache_folder, new_clients, open_instance, resources_of
from lakebed.bootstrap.doctor.seen_lake import QUEUE_DAMAGED, SeenLake
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.machine import memory_bytes
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId, instance_id
from lakebed.doctor.check import Cure, DoctorReport
from lakebed.doctor.checks.all_checks import ALL_CHECKS
from lakebed.doctor.patient import Patient
from lakebed.doctor.run_checks import RunChecks
from lakebed.errors import InvalidError
from lakebed.model.addresses import directory_named
from lakebed.model.asked_once import AskedOnce
from lakebed.model.names import MICROS_PER_SECOND

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.ports.account import Account
    from lakebed.ports.examined.deployed_parts import DeployedParts
    from lakebed.ports.table_marks import TableMarks

TIME_SECONDS_MAX = 60.0
"""Greatest age of the store's time, in seconds, for a comparison with this clock."""


class Examination:
    """Looks at one lake once, and can do something about what was found. Close it.

    location: a directory, or `aws:INSTANCE`.
    """

    def __init__(self, location: str) -> None:
        self._closing = ExitStack()
        self._checks = RunChecks(ALL_CHECKS, clock=SystemClock())
        if location.startswith(INSTANCE_SCHEME):
            self._patient = _instance(location.removeprefix(INSTANCE_SCHEME), self._closing)
        else:
            self._patient = _directory(location, self._closing)

    def run(self) -> DoctorReport:
        """Return what each check answered. Changes nothing."""
        return self._checks.run(self._patient)

    def cures(self) -> list[Cure]:
        """Return what may be done about what was found."""
        return self._checks.cures()

    def close(self) -> bool:
        """Close the lake. False: a check hangs and may hold it, so it was left open."""
        if self._checks.has_hung:
            return False
        self._closing.close()
        return True


def _directory(location: str, closing: ExitStack) -> Patient:
    path = Path(directory_named(location, instances=INSTANCE_SCHEME))
    opened = AskedOnce(lambda: open_local(path, create=False))
    closing.callback(_close, opened)
    machine = ThisMachine(
        [path],
        own=path,
        clock=SystemClock(),
        memory_bytes=memory_bytes,
        ahead_seconds=lambda: None,
        find_leftovers=lambda: _found_in(opened()),
        sweep_leftovers=partial(_swept_in, opened),
    )
    return Patient(
        is_instance=False,
        machine=machine,
        lake=SeenLake(opened),
        resources=_not_here,
        parts=_not_here,
        account=_not_here,
    )


def _instance(name: str, closing: ExitStack) -> Patient:
    """Nothing of AWS is imported here: that its packages are missing is found, too."""
    id_ = instance_id(name)
    clients = AskedOnce(_new_clients)
    resources = AskedOnce(lambda: resources_of(clients(), id_))
    opened = AskedOnce(lambda: open_instance(id_))
    closing.callback(_close, clients)
    closing.callback(_close, opened)
    machine = ThisMachine(
        [cache_folder()],
        own=None,
        clock=SystemClock(),
        memory_bytes=memory_bytes,
        ahead_seconds=partial(_ahead_seconds, clients, resources),
        find_leftovers=lambda: _found_in(opened()),
        sweep_leftovers=partial(_swept_in, opened),
    )
    return Patient(
        is_instance=True,
        machine=machine,
        lake=SeenLake(opened, marks=AskedOnce(lambda: _marks(clients(), resources()))),
        resources=resources,
        parts=AskedOnce(lambda: _parts(clients(), id_, resources)),
        account=AskedOnce(lambda: _account(clients())),
    )


def _new_clients() -> AmazonClients:
    return new_clients(SystemClock(), system_random())


def _ahead_seconds(
    clients: Callable[[], AmazonClients], resources: Callable[[], InstanceResources]
) -> float | None:
    """Return how far this clock is ahead of AWS's, which tells the time with each answer."""
    resources()
    time = clients().store_time.now(age_seconds_max=TIME_SECONDS_MAX)
    return None if time is None else (clients().clock.now() - time) / MICROS_PER_SECOND


def _marks(clients: AmazonClients, resources: InstanceResources) -> TableMarks:
    from lakebed.backends.aws.table_marks import DynamoTableMarks

    return DynamoTableMarks(clients, resources.registry_table)


def _parts(
    clients: AmazonClients, instance: InstanceId, resources: Callable[[], InstanceResources]
) -> DeployedParts:
    from lakebed.backends.aws.deployed.parts import AmazonDeployedParts

    return AmazonDeployedParts(clients, instance, resources)


def _account(clients: AmazonClients) -> Account:
    from lakebed.backends.aws.account import AmazonAccount

    return AmazonAccount(clients)


def _found_in(app: App) -> list[str]:
    found = (one for one in app.leftovers.find() if one.code != QUEUE_DAMAGED)
    return [f"{one.code} {' '.join(map(str, one.facts.values()))}" for one in found]


def _swept_in(opened: Callable[[], App]) -> int:
    return opened().leftovers.sweep()


def _close(opened: AskedOnce[App] | AskedOnce[AmazonClients]) -> None:
    if opened.answer is not None:
        opened.answer.close()


def _not_here() -> NoReturn:
    hint = "name an instance on AWS: `lakebed --at INSTANCE doctor`"
    raise InvalidError("a directory was not deployed", hint=hint)
