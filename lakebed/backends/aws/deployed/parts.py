"""The parts of an instance: each is asked for once, however many checks want it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.deployed import platform, stores, wiring
from lakebed.backends.aws.deployed.asking import Asking
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId
from lakebed.model.asked_once import AskedOnce
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

T = TypeVar("T")


class AmazonDeployedParts:
    """The parts that were deployed as one instance, in the account and region of some clients. Safe
    to share among threads. What was asked for once stays the answer, until a part is changed by
    this.

    resources: returns what the instance's parameter names, which not all parts are found by.
    """

    def __init__(
        self,
        clients: AmazonClients,
        instance: InstanceId,
        resources: Callable[[], InstanceResources],
    ) -> None:
        self._resources = resources
        self._asking = Asking(clients, instance)
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, ...], AskedOnce[object]] = {}

    def identity(self) -> Identity:
        """Return who asks."""
        return self._once(self._identity, "identity")

    def _identity(self) -> Identity:
        clients = self._asking.clients
        who = self._asking.ask("sts:GetCallerIdentity", clients.sts.get_caller_identity)
        return Identity(account=who["Account"], arn=who["Arn"], region=clients.region)

    def rules(self) -> Sequence[DeployedRule]:
        """Return the schedules, and the rules that send events on."""
        return self._once(lambda: wiring.rules(self._asking), "rules")

    def event_sources(self, queue: str) -> Sequence[EventSource]:
        """Return what takes messages of a queue."""
        found = self._attributes(queue)
        if found is None:
            return ()
        arn = found["QueueArn"]
        return self._once(
            lambda: wiring.event_sources(self._asking, queue, arn), "event_sources", queue
        )

    def functions(self) -> Sequence[DeployedFunction]:
        """Return the functions."""
        return self._once(lambda: wiring.functions(self._asking), "functions")

    def queue(self, kind: str) -> DeployedQueue | None:
        """Return a queue."""
        return wiring.queue(kind, self._attributes(kind))

    def _attributes(self, kind: str) -> dict[str, str] | None:
        url = self._resources().queues[kind]
        return self._once(lambda: wiring.queue_attributes(self._asking, url), "attributes", kind)

    def alarms(self) -> Sequence[DeployedAlarm]:
        """Return the alarms."""
        return self._once(lambda: wiring.alarms(self._asking), "alarms")

    def topic(self) -> str:
        """Return the address of the instance's own topic of alarms."""
        account = self.identity().account
        return self._once(lambda: wiring.topic(self._asking, account), "topic")

    def recipients(self) -> Sequence[Recipient]:
        """Return who hears of alarms."""
        topic = self.topic()
        return self._once(lambda: wiring.recipients(self._asking, topic), "recipients")

    def bucket(self) -> DeployedBucket | None:
        """Return the bucket of the lake."""
        name = self._resources().bucket
        return self._once(lambda: stores.bucket(self._asking, name), "bucket")

    def sends_file_events(self, bucket: str) -> bool:
        """Return whether a user's bucket sends events of new files."""
        return self._once(
            lambda: stores.sends_file_events(self._asking, bucket), "sends_file_events", bucket
        )

    def tables(self) -> Sequence[DeployedTable]:
        """Return the tables of log, registry and tracker."""
        return self._once(self._tables, "tables")

    def _tables(self) -> list[DeployedTable]:
        own = self._resources()
        names = (own.log_table, own.registry_table, own.tracker_table)
        found = (stores.table(self._asking, name) for name in names)
        return [table for table in found if table is not None]

    def key_state(self, key: str) -> str:
        """Return the state of a key."""
        return self._once(lambda: stores.key_state(self._asking, key), "key_state", key)

    def tasks(self) -> Sequence[DeployedTask]:
        """Return what tasks run."""
        return self._once(lambda: platform.tasks(self._asking), "tasks")

    def cluster_state(self) -> str:
        """Return the state of the cluster that tasks run in."""
        return self._once(lambda: platform.cluster_state(self._asking), "cluster_state")

    def network(self) -> DeployedNetwork | None:
        """Return the instance's own network."""
        return self._once(lambda: platform.network(self._asking), "network")

    def spark_state(self) -> str:
        """Return the state of what runs bulk imports."""
        return self._once(lambda: platform.spark_state(self._asking), "spark_state")

    def stacks(self) -> Sequence[DeployedStack]:
        """Return the stacks."""
        return self._once(lambda: platform.stacks(self._asking), "stacks")

    def turn_on_rule(self, name: str) -> None:
        """Let a schedule go off again."""
        wiring.turn_on_rule(self._asking, name)
        self._forget()

    def turn_on_event_source(self, id_: str) -> None:
        """Let a queue hand its messages to a function again."""
        wiring.turn_on_event_source(self._asking, id_)
        self._forget()

    def turn_on_alarm(self, name: str) -> None:
        """Let an alarm tell whom it names again."""
        wiring.turn_on_alarm(self._asking, name)
        self._forget()

    def add_alarm_action(self, name: str, topic: str) -> None:
        """Let an alarm tell a topic, too."""
        wiring.add_alarm_action(self._asking, name, topic)
        self._forget()

    def keep_versions(self) -> None:
        """Let the lake's bucket keep what is deleted."""
        stores.keep_versions(self._asking, self._resources().bucket)
        self._forget()

    def keep_history(self, table: str) -> None:
        """Let a table recover to any time from now on."""
        stores.keep_history(self._asking, table)
        self._forget()

    def protect(self, table: str) -> None:
        """Let a table refuse to be deleted."""
        stores.protect(self._asking, table)
        self._forget()

    def _once(self, ask: Callable[[], T], *name: str) -> T:
        with self._lock:
            asked = self._asked.setdefault(name, AskedOnce[object](ask))
        answer: T = asked()  # type: ignore[assignment]  # what is kept under the name
        return answer

    def _forget(self) -> None:
        with self._lock:
            self._asked.clear()
