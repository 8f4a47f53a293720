"""Stacks that an instance may do without: which there are, what needs them, and what to do where
one was left out.

To add one: an entry of `OPTIONAL_STACKS`, a line of `stacks/instance.py`, and a row of
docs/operate/optional-stacks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from lakebed.config.instance import InstanceSettings
from lakebed.config.job_queues import (
    BATCHING,
    BULK_IMPORT_JOBS,
    INGEST_JOBS,
    QUERIES,
    SUBMISSIONS,
)
from lakebed.errors import InvalidError, did_you_mean

ALWAYS = (
    "release",
    "data",
    "state",
    "committer",
    "compaction",
    "splitting",
    "garbage",
    "snapshots",
    "address",
)
"""Stacks that each instance has: a table is not kept whole and quick without these."""


class OptionalStack(msgspec.Struct, frozen=True, kw_only=True):
    """A stack that an instance may do without.

    name: the end of its physical name.
    queues: kinds of the messages whose queues are in it.
    instead: what does the same without it, for an error.
    asked_for: settings of which one at least must be set for it to be there; none: it is there
        unless it is left out.
    """

    name: str
    queues: tuple[str, ...] = ()
    instead: str
    asked_for: tuple[str, ...] = ()

    def asking(self, settings: InstanceSettings) -> list[str]:
        """Return the settings that ask for it, and are set."""
        return [name for name in self.asked_for if getattr(settings, name)]

    def is_in(self, settings: InstanceSettings) -> bool:
        """Return whether it is there, if it is not left out."""
        return not self.asked_for or bool(self.asking(settings))


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A stack that does not work without another.

    by: the stack that needs.
    of: the optional stack that is needed.
    holds: whether it is, by the settings.
    cure: what to do so that it is not.
    """

    by: str
    of: str
    holds: Callable[[InstanceSettings], bool]
    cure: str


OPTIONAL_STACKS = (
    OptionalStack(
        name="ingest",
        queues=(INGEST_JOBS.kind,),
        instead="ingest from a process of yours: `lakebed ingest`, `Table.ingest`",
    ),
    OptionalStack(
        name="bulk-import",
        queues=(BULK_IMPORT_JOBS.kind,),
        instead="import with Spark of yours: `lakebed bulk-import`",
    ),
    OptionalStack(
        name="spark-clusters",
        instead="import on EMR Serverless, which needs no network",
        asked_for=("spark_clusters",),
    ),
    OptionalStack(
        name="batching",
        queues=(BATCHING.kind, SUBMISSIONS.kind),
        instead="send each file as a message to `ingest`, or `lakebed ingest`",
    ),
    OptionalStack(
        name="query",
        queues=(QUERIES.kind,),
        instead="query from a process of yours: `lakebed query`, `Table.query`",
    ),
    OptionalStack(
        name="feeds",
        instead="run feeds on a machine of yours: `lakebed feed run`",
        asked_for=("feed_workers_max", "feed_take"),
    ),
    OptionalStack(
        name="feed-push",
        instead="let senders put records into a queue that a feed reads",
        asked_for=("feed_push",),
    ),
    OptionalStack(
        name="job-events",
        instead="ask for jobs: `lakebed jobs`",
        asked_for=("job_events",),
    ),
    OptionalStack(
        name="history",
        instead="ask within a month: `lakebed jobs`",
        asked_for=("history_days",),
    ),
    OptionalStack(
        name="tables",
        instead="declare tables from a machine of yours: `lakebed apply`",
        asked_for=("tables",),
    ),
    OptionalStack(name="people", instead="attach what `lakebed table policy` prints for a table"),
    OptionalStack(name="dashboard", instead="see the metrics in CloudWatch"),
    OptionalStack(name="networking", instead="run jobs on machines of yours: `lakebed run`"),
)

NEEDS = (
    Need(
        by="ingest",
        of="networking",
        holds=lambda _: True,
        cure="leave `ingest` out, too",
    ),
    Need(
        by="spark-clusters",
        of="networking",
        holds=lambda _: True,
        cure="set spark_clusters=false",
    ),
    Need(
        by="spark-clusters",
        of="bulk-import",
        holds=lambda _: True,
        cure="set spark_clusters=false",
    ),
    Need(
        by="batching",
        of="ingest",
        holds=lambda _: True,
        cure="leave `batching` out, too",
    ),
    Need(
        by="compaction",
        of="networking",
        holds=lambda settings: settings.compaction_tasks_max > 0,
        cure="set compaction_tasks_max=0",
    ),
    Need(
        by="feeds",
        of="networking",
        holds=lambda settings: settings.feed_workers_max > 0,
        cure="set feed_workers_max=0",
    ),
)
"""Needs of optional stacks. A stack that is always there is needed without being listed."""

STACK_NAMES = tuple(stack.name for stack in OPTIONAL_STACKS)
_BY_NAME = {stack.name: stack for stack in OPTIONAL_STACKS}
_BY_QUEUE = {kind: stack for stack in OPTIONAL_STACKS for kind in stack.queues}


def stacks_of(settings: InstanceSettings, without: Collection[str]) -> frozenset[str]:
    """Return the names of the optional stacks that an instance has. without: those left out.

    Raises:
        InvalidError: a name of no stack, or of one that each instance has; one that a setting asks
            for, or that another stack needs.
    """
    for name in without:
        _check_optional(name)
    for stack in OPTIONAL_STACKS:
        if stack.name in without and stack.asking(settings):
            raise InvalidError(
                "a stack is left out that settings ask for",
                stack=stack.name,
                settings=", ".join(stack.asking(settings)),
                hint=f"take {stack.name!r} out of `without`, or the settings back",
            )
    present = (s.name for s in OPTIONAL_STACKS if s.name not in without and s.is_in(settings))
    there = frozenset(present)
    _check_needs(settings, there)
    return there


def _check_optional(name: str) -> None:
    if name in ALWAYS:
        cures = {need.by: need.cure for need in NEEDS}
        hint = f"{cures[name]} to have it without tasks" if name in cures else "leave it in"
        raise InvalidError("each instance has this stack", stack=name, hint=hint)
    if name not in STACK_NAMES:
        hint = did_you_mean(name, STACK_NAMES, what="stack")
        raise InvalidError("there is no such stack to leave out", stack=ascii(name)[:80], hint=hint)


def _check_needs(settings: InstanceSettings, there: Collection[str]) -> None:
    """Refuse an instance without a stack that others need: all of them are named."""
    needs = [need for need in NEEDS if need.by in {*ALWAYS, *there} and need.holds(settings)]
    for missing in sorted({need.of for need in needs} - set(there)):
        missed = [need for need in needs if need.of == missing]
        cures = "; ".join(need.cure for need in missed)
        raise InvalidError(
            "a stack is left out that other stacks need",
            stack=missing,
            needed_by=", ".join(need.by for need in missed),
            hint=f"take {missing!r} out of `without`, or: {cures}",
        )


class LeftOutStacks(msgspec.Struct, frozen=True):
    """The optional stacks that an instance was deployed without.

    names: of optional stacks.
    """

    instance: str
    names: frozenset[str] = frozenset()

    def refuse(self, stack: str) -> None:
        """Raise InvalidError, if the instance was deployed without a stack."""
        if stack in self.names:
            found = _BY_NAME[stack]
            choice = " or ".join(f"`{name}`" for name in found.asked_for)
            deploy = f"set {choice}" if choice else f"take {stack!r} out of `without`"
            raise InvalidError(
                f"this instance was deployed without {stack}",
                instance=self.instance,
                hint=f"{found.instead}; or {deploy}, and deploy again",
            )

    def refuse_queue(self, kind: str) -> None:
        """Raise InvalidError, if the queue of some messages is in a stack that is not there."""
        if kind in _BY_QUEUE:
            self.refuse(_BY_QUEUE[kind].name)


def queues_without(stacks: Collection[str]) -> frozenset[str]:
    """Return the kinds of messages that have no queue in an instance with these optional stacks."""
    return frozenset(kind for kind, stack in _BY_QUEUE.items() if stack.name not in stacks)


def left_out_of(instance: str, stacks: Iterable[str]) -> LeftOutStacks:
    """Return what an instance was deployed without. stacks: the optional ones that it has."""
    return LeftOutStacks(instance, frozenset(STACK_NAMES) - frozenset(stacks))
