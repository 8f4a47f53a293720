"""What deployed programs count of themselves, held to what the emulator saw of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lakebed.config.people.role_settings import PERSON_ROLES
from lakebed.lake import Lake
from lakebed.observe.usage import Counts
from lakebed.tasks.usage_keeper import UsageKeeper
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.users import stop_tasks

OURS = f"lakebed-{INSTANCE}-"
"""Before the name of each of the instance's roles."""
COUNTERS = {
    "s3:GetObject": "s3_get",
    "s3:PutObject": "s3_put",
    "s3:ListBucket": "s3_list",
    "s3:DeleteObject": "s3_delete",
    "s3:AbortMultipartUpload": "s3_delete",
}
"""As what a request is counted, by what it is called in policies."""
OF_SERVICE = {"dynamodb": "dynamodb_requests", "sqs": "sqs_requests"}


@contextmanager
def exact_ledger(instance: RunningInstance, lake: Lake) -> Iterator[None]:
    """Compare the ledger with the emulator when the block ends, after tasks have ended in it. What
    this process uses of the lake is not kept meanwhile. Tasks that others left are stopped before:
    what they used until then would be kept in the block."""
    stop_tasks(instance)
    with nothing_kept_here():
        seen, kept = seen_requests(instance), kept_requests(lake)
        yield
        seen_now, kept_now = seen_requests(instance), kept_requests(lake)
    difference = {
        counter: (requests, found)
        for counter in sorted({*seen_now, *COUNTERS.values(), *OF_SERVICE.values()})
        if (requests := seen_now.get(counter, 0) - seen.get(counter, 0))
        != (found := kept_now.get(counter, 0) - kept.get(counter, 0))
    }
    assert not difference, f"requests that the emulator saw, and in the ledger: {difference}"


@contextmanager
def nothing_kept_here() -> Iterator[None]:
    """Keep nothing of what this process uses of lakes until the block ends: the emulator knows it
    by no role."""
    with patch.object(UsageKeeper, "_keep", lambda *_, **__: None):
        yield


def seen_requests(instance: RunningInstance) -> Counts:
    """Return the requests of the instance's roles that the emulator saw, by counter."""
    found: Counts = {}
    for role, actions in instance.cloud.requests().items():
        for action, count in actions.items() if is_ours(role) else ():
            service = action.partition(":")[0]
            counter = COUNTERS[action] if service == "s3" else OF_SERVICE.get(service)
            if counter is not None:
                found[counter] = found.get(counter, 0) + count
    return found


def ledger_writes(instance: RunningInstance) -> int:
    """Return how many requests of the instance's roles added to the ledger."""
    found = instance.cloud.requests().items()
    return sum(actions.get("ledger", 0) for role, actions in found if is_ours(role))


def is_ours(role: str) -> bool:
    """Whether a role is one of the instance's programs, and no person's."""
    return role.startswith(OURS) and role.removeprefix(OURS) not in PERSON_ROLES


def kept_requests(lake: Lake) -> Counts:
    """Return all that is in the ledger, by counter."""
    ledger = lake._given_app.paying.ledger
    assert ledger is not None, "an instance has one"
    found: Counts = {}
    for table in ledger.tables():
        for entry in ledger.read(table, since=0, until=1 << 30):
            for counter, amount in entry.counts.items():
                found[counter] = found.get(counter, 0.0) + amount
    return found
