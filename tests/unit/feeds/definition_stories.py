"""A registry with what users apply to it, for stories about definitions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count

from lakebed.backends.faulty import CALM, Faults, FaultyFeedRegistry, RegistryFault, RegistryFaults
from lakebed.backends.memory import MemoryFeedRegistry
from lakebed.config.feeds import feed_file
from lakebed.feeds.apply_definitions import ApplyDefinitions, PlannedChange
from lakebed.feeds.drop_definitions import DropDefinitions
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.feeds.lifecycle import FeedLifecycle
from lakebed.feeds.operating.end_connections import EndConnections
from lakebed.model.feeds.definitions import DefinitionChange, DefinitionKind, WantedState
from lakebed.model.feeds.endings import KnownIn
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TableId
from lakebed.ports.feed_registry import FeedRegistry

ORDERS = """
[feed.orders]
files = "*.log"
decoder = { format = "json" }
[connection.eu]
feed = "orders"
table = "orders"
policy = "Careful"
[connection.us]
feed = "orders"
table = "orders"
[policy.Careful]
extends = "Strict"
"""


class Definitions:
    """A registry, and who changes it."""

    def __init__(self, registry: FeedRegistry | None = None) -> None:
        self.true = MemoryFeedRegistry()
        self.registry: FeedRegistry = registry or self.true
        self._ids = count(1)

    def new_id(self) -> str:
        return f"id{next(self._ids)}"

    def apply(
        self, text: str = ORDERS, *, dry_run: bool = False, above: int = 0
    ) -> list[PlannedChange]:
        service = ApplyDefinitions(registry=self.registry, new_id=self.new_id)
        return service.run(feed_file(text), dry_run=dry_run, above=above)

    def actions(self, text: str = ORDERS, *, dry_run: bool = False) -> dict[str, str]:
        plan = self.apply(text, dry_run=dry_run)
        return {f"{one.kind}.{one.name}": one.action for one in plan}

    @property
    def known(self) -> KnownDefinitions:
        return read_definitions(self.true)

    @property
    def drop(self) -> Callable[..., list[tuple[str, str]]]:
        return DropDefinitions(self.registry, self.end).run

    @property
    def end(self) -> EndConnections:
        """What lets a table forget, which is gone."""
        return EndConnections(
            registry=self.registry,
            known_in=lambda _, key: (KnownIn(connection_id("c1"), TableId(key[1])),),
            find_table=lambda _: None,
        )

    @property
    def lifecycle(self) -> FeedLifecycle:
        return FeedLifecycle(self.registry)


class RacedRegistry(MemoryFeedRegistry):
    """Before a change that is listed, another process makes its own."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Callable[[], object]] = []

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        if self.others:
            self.others.pop(0)()
        return super().change(changes, expected_number=expected_number)

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        if self.others:
            self.others.pop(0)()
        return super().want(kind, name, wanted, expected_revision)


def unlucky(definitions: Definitions, **rates: float) -> RegistryFaults:
    """Let requests of these definitions meet faults, by name; returns the luck."""
    wanted = {RegistryFault[name.upper()]: rate for name, rate in rates.items()}
    luck = RegistryFaults(Faults(random.Random(1), CALM), rates=wanted)
    definitions.registry = FaultyFeedRegistry(definitions.true, luck)
    return luck
