"""A deployment in memory, in which a test plants faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.dynamo_tables import DYNAMO_TABLES
from lakebed.config.instance import ARRIVALS, physical_name
from lakebed.errors import InvalidError
from lakebed.model.jobs import COMPACTION_QUEUE, INGEST_QUEUE, TICK_KINDS
from lakebed.ports.examined.deployed_parts import (
    DeployedAlarm,
    DeployedBucket,
    DeployedFunction,
    DeployedNetwork,
    DeployedQueue,
    DeployedRule,
    DeployedStack,
    DeployedTable,
    DeployedTask,
    EventSource,
    Identity,
    Recipient,
)
from lakebed.tasks.watched_folders import bucket_of

ACCOUNT, REGION = "123456789012", "eu-central-1"
KEPT_SECONDS = 14 * 86_400
KEY = "key-1"
BY_TASKS = (COMPACTION_QUEUE, INGEST_QUEUE)
"""Queues that tasks take from."""

PartT = TypeVar(
    "PartT", DeployedRule, DeployedFunction, DeployedAlarm, DeployedTable, DeployedStack
)


class MemoryDeployedParts:
    """Parts by their names, as a deployment makes them: public, to be changed by hand.

    asked: is called before each answer with the name of the method: what it raises, the platform
        says.
    """

    def __init__(
        self, resources: InstanceResources, *, asked: Callable[[str], None] = lambda _: None
    ) -> None:
        instance, kinds = resources.instance, sorted(resources.queues)
        self._asked = asked
        self.who = Identity(
            account=ACCOUNT, arn=f"arn:aws:iam::{ACCOUNT}:role/operator", region=REGION
        )
        self.own_topic = f"arn:aws:sns:{REGION}:{ACCOUNT}:{physical_name(instance, 'alarms')}"
        self.heard_by = [Recipient(protocol="email", endpoint="ops@example.org", confirmed=True)]
        self.rule_of = _named(
            DeployedRule(name=physical_name(instance, kind), enabled=True, targets=1)
            for kind in TICK_KINDS
        )
        self.sending = {bucket_of(source) for source in resources.sources or ()}
        for bucket in self.sending:
            name = physical_name(instance, ARRIVALS, bucket)
            self.rule_of[name] = DeployedRule(name=name, enabled=True, targets=1, scheduled=False)
        self.function_of = _named(
            DeployedFunction(name=physical_name(instance, kind, "handle")) for kind in kinds
        )
        self.source_of = {kind: _source(kind) for kind in kinds if kind not in BY_TASKS}
        self.queue_of = {
            kind: DeployedQueue(kind=kind, has_dead_letters=True, kept_seconds=KEPT_SECONDS)
            for kind in kinds
        }
        self.alarm_of = _named(
            _alarm(physical_name(instance, kind, what), self.own_topic)
            for kind in kinds
            for what in ("dead-letters", "age")
        )
        self.own_bucket: DeployedBucket | None = _bucket(resources.bucket)
        self.table_of = _named(
            _table(physical_name(instance, shape.part), shape.expiry or "")
            for shape in DYNAMO_TABLES
        )
        self.key_states = {KEY: "Enabled"}
        self.task_of = {
            kind: DeployedTask(kind=kind, image=f"{kind}:1", is_there=True) for kind in BY_TASKS
        }
        self.cluster, self.spark = "ACTIVE", "STOPPED"
        self.own_network: DeployedNetwork | None = DeployedNetwork(
            id="vpc-1", gateways=("dynamodb", "s3")
        )
        self.stack_of = _named(
            DeployedStack(name=physical_name(instance, part), status="UPDATE_COMPLETE")
            for part in ("data", "state", "compaction")
        )

    def identity(self) -> Identity:
        """Return who asks."""
        self._asked("identity")
        return self.who

    def rules(self) -> Sequence[DeployedRule]:
        """Return the schedules, and the rules that send events on."""
        self._asked("rules")
        return list(self.rule_of.values())

    def event_sources(self, queue: str) -> Sequence[EventSource]:
        """Return what takes messages of a queue."""
        self._asked("event_sources")
        return [one for one in self.source_of.values() if one.queue == queue]

    def functions(self) -> Sequence[DeployedFunction]:
        """Return the functions."""
        self._asked("functions")
        return list(self.function_of.values())

    def queue(self, kind: str) -> DeployedQueue | None:
        """Return a queue."""
        self._asked("queue")
        return self.queue_of.get(kind)

    def alarms(self) -> Sequence[DeployedAlarm]:
        """Return the alarms."""
        self._asked("alarms")
        return list(self.alarm_of.values())

    def recipients(self) -> Sequence[Recipient]:
        """Return who hears of alarms."""
        self._asked("recipients")
        return list(self.heard_by)

    def topic(self) -> str:
        """Return the topic of alarms."""
        self._asked("topic")
        return self.own_topic

    def bucket(self) -> DeployedBucket | None:
        """Return the bucket of the lake."""
        self._asked("bucket")
        return self.own_bucket

    def sends_file_events(self, bucket: str) -> bool:
        """Return whether a user's bucket sends events of new files."""
        self._asked("sends_file_events")
        return bucket in self.sending

    def tables(self) -> Sequence[DeployedTable]:
        """Return the tables."""
        self._asked("tables")
        return list(self.table_of.values())

    def key_state(self, key: str) -> str:
        """Return the state of a key."""
        self._asked("key_state")
        return self.key_states[key]

    def tasks(self) -> Sequence[DeployedTask]:
        """Return what tasks run."""
        self._asked("tasks")
        return list(self.task_of.values())

    def cluster_state(self) -> str:
        """Return the state of the cluster."""
        self._asked("cluster_state")
        return self.cluster

    def network(self) -> DeployedNetwork | None:
        """Return the instance's own network."""
        self._asked("network")
        return self.own_network

    def spark_state(self) -> str:
        """Return the state of what runs bulk imports."""
        self._asked("spark_state")
        return self.spark

    def stacks(self) -> Sequence[DeployedStack]:
        """Return the stacks."""
        self._asked("stacks")
        return list(self.stack_of.values())

    def turn_on_rule(self, name: str) -> None:
        """Let a schedule go off again."""
        self._asked("turn_on_rule")
        self.rule_of[name] = msgspec.structs.replace(self.rule_of[name], enabled=True)

    def turn_on_event_source(self, id_: str) -> None:
        """Let a queue hand over its messages again."""
        self._asked("turn_on_event_source")
        for kind, one in self.source_of.items():
            if one.id == id_:
                self.source_of[kind] = msgspec.structs.replace(one, enabled=True)

    def turn_on_alarm(self, name: str) -> None:
        """Let an alarm tell whom it names again."""
        self._asked("turn_on_alarm")
        self.alarm_of[name] = msgspec.structs.replace(self.alarm_of[name], is_on=True)

    def add_alarm_action(self, name: str, topic: str) -> None:
        """Let an alarm tell a topic, too."""
        self._asked("add_alarm_action")
        alarm = self.alarm_of[name]
        actions = tuple(dict.fromkeys((*alarm.actions, topic)))
        self.alarm_of[name] = msgspec.structs.replace(alarm, actions=actions)

    def keep_versions(self) -> None:
        """Let the bucket keep what is deleted."""
        self._asked("keep_versions")
        if self.own_bucket is None:
            raise InvalidError("there is no such bucket", hint="name a bucket that exists")
        self.own_bucket = msgspec.structs.replace(self.own_bucket, versioned=True)

    def keep_history(self, table: str) -> None:
        """Let a table recover."""
        self._asked("keep_history")
        self.table_of[table] = msgspec.structs.replace(self.table_of[table], recovers=True)

    def protect(self, table: str) -> None:
        """Let a table refuse to be deleted."""
        self._asked("protect")
        self.table_of[table] = msgspec.structs.replace(self.table_of[table], protected=True)


def _named(parts: Iterable[PartT]) -> dict[str, PartT]:
    return {part.name: part for part in parts}


def _source(kind: str) -> EventSource:
    return EventSource(id=f"source-{kind}", queue=kind, function=kind, enabled=True)


def _alarm(name: str, topic: str) -> DeployedAlarm:
    return DeployedAlarm(name=name, state="OK", actions=(topic,), is_on=True)


def _bucket(name: str) -> DeployedBucket:
    return DeployedBucket(
        name=name, versioned=True, closed=True, old_versions_days=1, expiring=(), write_once=True
    )


def _table(name: str, expiry: str) -> DeployedTable:
    return DeployedTable(
        name=name, status="ACTIVE", recovers=True, protected=True, expiry=expiry, key=KEY
    )
