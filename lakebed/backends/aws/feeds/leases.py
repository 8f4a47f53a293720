"""Beats and owners, in the table of DynamoDB that holds names of tables.

pk: "feed-workers". sk: a worker. counter: of its beats. report: of its last one.
pk: "feed-owners". sk: what was claimed. number: of the newest claim. worker: that made it, or "".
claim: a random number of the claimer, so that it knows its own claim when the answer was lost.
Items of owners stay for ever, so that numbers never go back.
"""

from __future__ import annotations

import random
from contextlib import suppress

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError, Patience
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.errors import UnavailableError
from lakebed.ports.leases import (
    OWNERS_MAX,
    Owner,
    OwnerNumber,
    WorkerBeat,
    WorkerId,
    check_claim,
    check_report,
    check_worker,
)

CLAIMS_MAX = 20
"""A claim begins again when the owner changes under its hands; so often, then it gives up."""

BEAT_PATIENCE = Patience(tries_max=2, seconds_max=2.0)
"""The next beat comes soon: one that waits for long keeps no worker alive."""

_WORKERS, _OWNERS = "feed-workers", "feed-owners"


class DynamoLeases:
    """Beats and owners. rng: names claims."""

    def __init__(self, clients: AmazonClients, table: str, *, rng: random.Random) -> None:
        self._items = Items(clients, table)
        self._beats = Items(clients, table, patience=BEAT_PATIENCE)
        self._rng = rng

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives."""
        check_worker(worker)
        check_report(report)
        # it always holds: an update of ours has a condition
        condition = WriteCondition(
            f"{IS_NEW} OR attribute_exists({PARTITION_KEY})",
            {":one": {"N": "1"}, ":zero": {"N": "0"}, ":report": {"B": report}},
            {"#counter": "counter"},
        )
        change = "SET #counter = if_not_exists(#counter, :zero) + :one, report = :report"
        self._beats.update(_key(_WORKERS, worker), change, condition)

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker."""
        return [
            WorkerBeat(
                WorkerId(item[SORT_KEY]["S"]),
                int(item["counter"]["N"]),
                bytes(item["report"]["B"]),
            )
            for item in self._items.all(_WORKERS)
        ]

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list."""
        check_worker(worker)
        self._items.delete(_key(_WORKERS, worker))

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner.

        Raises:
            UnavailableError: the owner changes all the time; this worker is none.
        """
        check_claim(name, worker, at_least)
        for _ in range(CLAIMS_MAX):
            before = self.owner(name)
            number = OwnerNumber(max(at_least, 1 if before is None else before.number + 1))
            token = f"{self._rng.getrandbits(64):016x}"
            item = {
                **_key(_OWNERS, name),
                "number": {"N": str(number)},
                "worker": {"S": worker},
                "claim": {"S": token},
            }
            try:
                self._items.put(item, _as_seen(before))
            except ConditionError:
                found = self._items.get(_key(_OWNERS, name))
                if found.get("claim") != item["claim"]:  # another claim, or a release
                    continue
            return number
        hint = "try again"
        raise UnavailableError("the owner changes too often", name=name, hint=hint)

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got."""
        check_claim(name, worker, number)
        condition = WriteCondition(
            "#worker = :worker AND #number = :number",
            {":worker": {"S": worker}, ":number": {"N": str(number)}, ":none": {"S": ""}},
            {"#worker": "worker", "#number": "number"},
        )
        with suppress(ConditionError):  # it was claimed anew, or an earlier try did it
            self._items.update(_key(_OWNERS, name), "SET #worker = :none", condition)

    def owner(self, name: str) -> Owner | None:
        """Return who owns it."""
        item = self._items.get(_key(_OWNERS, name))
        return _owner(item) if item else None

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed."""
        found: list[Owner] = []
        start, inclusive, more = max(after, prefix), prefix > after, True
        while more and len(found) < owners_max:
            page, more = self._items.page(
                _OWNERS,
                after={"S": start} if start else None,
                items_max=owners_max - len(found),
                inclusive=inclusive,
            )
            fitting = [item for item in page if item[SORT_KEY]["S"].startswith(prefix)]
            found += map(_owner, fitting)
            more = more and len(fitting) == len(page)
            start, inclusive = (page[-1][SORT_KEY]["S"], False) if page else (start, inclusive)
        return found


def _key(partition: str, name: str) -> Item:
    return {PARTITION_KEY: {"S": partition}, SORT_KEY: {"S": name}}


def _as_seen(before: Owner | None) -> WriteCondition:
    """Return the condition that an owner is the one that was read, and not given up since."""
    if before is None:
        return WriteCondition(IS_NEW)
    return WriteCondition(
        "#number = :seen", {":seen": {"N": str(before.number)}}, {"#number": "number"}
    )


def _owner(item: Item) -> Owner:
    return Owner(
        item[SORT_KEY]["S"], OwnerNumber(int(item["number"]["N"])), WorkerId(item["worker"]["S"])
    )
