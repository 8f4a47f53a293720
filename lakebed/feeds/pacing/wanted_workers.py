"""Computes how many workers a lake's feeds want, from what is defined: each process that asks at
one moment gets the same answer."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from lakebed.config.policies import Policy
from lakebed.feeds.known_definitions import KnownDefinitions, is_landed
from lakebed.feeds.pacing.elasticity import WorkersAsked
from lakebed.ports.leases import WorkerId


class WorkerBounds(msgspec.Struct, frozen=True):
    """The bounds of how many workers feeds at work want.

    least: 0: none is at work.
    most: 0: none of them is elastic, so the least is all that is wanted.
    """

    least: int = 0
    most: int = 0


def wanted_workers(known: KnownDefinitions) -> WorkerBounds:
    """Return how many workers are wanted. Workers share all feeds, so the greatest numbers count
    that the policy of one of them asks for."""
    policies = _policies_at_work(known)
    least = max((policy.workers_min for policy in policies), default=0)
    most = max((workers_of(policy).most for policy in policies), default=0)
    return WorkerBounds(least, max(least, most) if most else 0)


def workers_of(policy: Policy) -> WorkersAsked:
    """Return how many workers a policy asks for."""
    at_lag = policy.on_lag == "elastic"
    if not at_lag and "elastic" not in policy.on_congestion:
        return WorkersAsked()
    return WorkersAsked(policy.workers_min, policy.workers_max, at_lag)


def _policies_at_work(known: KnownDefinitions) -> list[Policy]:
    """Return the policies of what a worker would run: of feeds that were started and not left to
    the function, and of their connections, but for what failed."""
    found = []
    for feed in known.feeds():
        if feed.wanted != "running" or feed.runs_in_function:
            continue
        connections = known.connections_of(feed.feed.name)
        found += [one.policy for one in connections if one.failed is None]
        if feed.failed is None and is_landed(feed, connections):
            found.append(feed.policy)
    return found


def is_needed(worker: WorkerId, living: Collection[WorkerId], wanted: int) -> bool:
    """Return whether a worker is one of those that are wanted: the first ones by name, of those
    that live. So all who see the same workers agree which of them may end."""
    return sum(other < worker for other in living) < wanted
