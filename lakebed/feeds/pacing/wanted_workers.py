"""How many workers a lake's feeds want, by what is defined and nothing else: each process that asks
at one moment gets the same answer."""

from __future__ import annotations

from collections.abc import Collection

from lakebed.config.policies import Policy
from lakebed.feeds.known_definitions import KnownDefinitions, is_landed
from lakebed.ports.leases import WorkerId


def wanted_workers(known: KnownDefinitions) -> int:
    """Return how many workers are wanted: as many as the policy of a feed at work asks for at the
    least, the greatest of them, as workers share all feeds. None, while no feed is at work."""
    return max((policy.workers_min for policy in _policies_at_work(known)), default=0)


def _policies_at_work(known: KnownDefinitions) -> list[Policy]:
    """Return the policies of what a worker would run: of feeds that were started, and of their
    connections, but for what failed."""
    found = []
    for feed in known.feeds():
        if feed.wanted != "running":
            continue
        connections = known.connections_of(feed.feed.name)
        found += [one.policy for one in connections if one.failed is None]
        if feed.failed is None and is_landed(feed, connections):
            found.append(feed.policy)
    return found


def is_needed(worker: WorkerId, living: Collection[WorkerId], wanted: int) -> bool:
    """Whether a worker is one of those that are wanted: the first ones by name, of those that
    live. So all who see the same workers agree which of them may end."""
    return sum(other < worker for other in living) < wanted
