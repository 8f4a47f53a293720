"""The door to what a deployment made: what of it is there, and what was changed by hand since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lakebed.config.functions import DISK_MIB_MIN


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of the caller.

    arn: of the user or the role.
    """

    account: str
    arn: str
    region: str


class DeployedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, or a rule that sends events on.

    targets: how many it runs, or sends to.
    scheduled: whether it is a schedule.
    """

    name: str
    enabled: bool
    targets: int
    scheduled: bool = True


class EventSource(msgspec.Struct, frozen=True, kw_only=True):
    """The event source that hands messages of a queue to a function.

    id: as the platform names it.
    problem: what the platform says of its last try; "": nothing.
    """

    id: str
    queue: str
    function: str
    enabled: bool
    problem: str = ""


class DeployedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function.

    problem: why it cannot run, in the platform's words; "": it can.
    reserved: how many runs of it are allowed at one time; None: no bound of its own.
    disk_mib: of its /tmp.
    """

    name: str
    problem: str = ""
    reserved: int | None = None
    disk_mib: int = DISK_MIB_MIN


class DeployedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue.

    has_dead_letters: whether what fails is kept.
    kept_seconds: of messages.
    """

    kind: str
    has_dead_letters: bool
    kept_seconds: int


class DeployedAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm.

    actions: the topics that it tells.
    is_on: whether it tells them.
    reason: of its state.
    """

    name: str
    state: str
    actions: tuple[str, ...]
    is_on: bool
    reason: str = ""


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient that hears of alarms.

    confirmed: whether it has said that it wants to.
    """

    protocol: str
    endpoint: str
    confirmed: bool


class DeployedBucket(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket.

    old_versions_days: after which deleted objects are gone for good; None: never.
    expiring: prefixes below which objects that are in use expire.
    write_once: whether its policy denies that objects are overwritten.
    """

    name: str
    versioned: bool
    closed: bool
    old_versions_days: int | None
    expiring: tuple[str, ...]
    write_once: bool


class DeployedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of items.

    expiry: the field by which items go; "": none.
    key: that encrypts it, of the user's; "": one of the platform's.
    """

    name: str
    status: str
    recovers: bool
    protected: bool
    expiry: str
    key: str = ""


class DeployedTask(msgspec.Struct, frozen=True, kw_only=True):
    """The image that tasks of one kind run.

    image: its name.
    is_there: whether its registry has it.
    """

    kind: str
    image: str
    is_there: bool


class DeployedNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The instance's own network.

    gateways: services that its subnets have a route to.
    """

    id: str
    gateways: tuple[str, ...]


class DeployedStack(msgspec.Struct, frozen=True, kw_only=True):
    """A stack.

    drift: what the platform found when it was last asked to look; "": not asked.
    """

    name: str
    status: str
    drift: str = ""


class DeployedParts(Protocol):
    """The parts of one instance. Every implementation passes
    `tests/contracts/examined/test_deployed_parts.py`.

    All methods raise DeniedError where the credentials do not permit to look or to change, and
    UnavailableError where the platform is busy. What is None or left out is not there. Methods that
    change something may be called again.
    """

    def identity(self) -> Identity:
        """Return who asks."""
        ...

    def rules(self) -> Sequence[DeployedRule]:
        """Return the schedules, and the rules that send events on."""
        ...

    def event_sources(self, queue: str) -> Sequence[EventSource]:
        """Return what takes messages of a queue, by its kind."""
        ...

    def functions(self) -> Sequence[DeployedFunction]:
        """Return the functions."""
        ...

    def queue(self, kind: str) -> DeployedQueue | None:
        """Return a queue, by its kind."""
        ...

    def alarms(self) -> Sequence[DeployedAlarm]:
        """Return the alarms."""
        ...

    def recipients(self) -> Sequence[Recipient]:
        """Return who hears of alarms that tell the instance's own topic."""
        ...

    def topic(self) -> str:
        """Return the address of the instance's own topic of alarms; "": it has none."""
        ...

    def bucket(self) -> DeployedBucket | None:
        """Return the bucket of the lake."""
        ...

    def sends_file_events(self, bucket: str) -> bool:
        """Return whether a user's bucket sends events of new files."""
        ...

    def tables(self) -> Sequence[DeployedTable]:
        """Return the tables of log, registry and tracker, those that are there."""
        ...

    def key_state(self, key: str) -> str:
        """Return the state of a key, such as `Enabled`."""
        ...

    def tasks(self) -> Sequence[DeployedTask]:
        """Return what tasks run, by the newest definition of each kind that there is."""
        ...

    def cluster_state(self) -> str:
        """Return the state of the cluster that tasks run in, such as `ACTIVE`; "": there is
        none."""
        ...

    def network(self) -> DeployedNetwork | None:
        """Return the instance's own network."""
        ...

    def spark_state(self) -> str:
        """Return the state of what runs bulk imports, such as `STOPPED`; "": there is none."""
        ...

    def stacks(self) -> Sequence[DeployedStack]:
        """Return the stacks."""
        ...

    def turn_on_rule(self, name: str) -> None:
        """Let a schedule go off again, or a rule send events on."""
        ...

    def turn_on_event_source(self, id_: str) -> None:
        """Let a queue hand its messages to a function again."""
        ...

    def turn_on_alarm(self, name: str) -> None:
        """Let an alarm tell whom it names again."""
        ...

    def add_alarm_action(self, name: str, topic: str) -> None:
        """Let an alarm tell a topic, too."""
        ...

    def keep_versions(self) -> None:
        """Let the lake's bucket keep what is deleted."""
        ...

    def keep_history(self, table: str) -> None:
        """Let a table recover to any time of the last 35 days, from now on."""
        ...

    def protect(self, table: str) -> None:
        """Let a table refuse to be deleted."""
        ...
