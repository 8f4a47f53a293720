"""Checks what was deployed: does each schedule, queue and function lead to the next?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.config.instance import ARRIVALS, physical_name
from lakebed.doctor.check import Check, Cure, Sign
from lakebed.doctor.patient import Patient
from lakebed.errors import InvalidError
from lakebed.model.jobs import COMPACTION_QUEUE, INGEST_QUEUE, TICK_KINDS
from lakebed.ports.examined.deployed_parts import DeployedRule, EventSource
from lakebed.tasks.watched_folders import bucket_of, watchable_folders

BY_TASKS = {COMPACTION_QUEUE, INGEST_QUEUE}
"""Queues that tasks take from; of the others functions do."""
KEPT_SECONDS_MIN = 86_400
DEPLOY = "deploy the instance again: `cdk deploy --all -c instance=NAME`"

_check = partial(Check, section="what was deployed", of="an instance")


def _sources(patient: Patient) -> Iterator[tuple[str, list[EventSource]]]:
    parts = patient.parts()
    for kind in sorted(set(patient.resources().queues) - BY_TASKS):
        yield kind, list(parts.event_sources(kind))


def is_paused(patient: Patient) -> bool:
    """Return whether each schedule rests: that is how the setting `paused` is deployed."""
    schedules = _schedules(patient)
    return bool(schedules) and not any(rule.enabled for rule in schedules)


def _schedules(patient: Patient) -> list[DeployedRule]:
    return [rule for rule in patient.parts().rules() if rule.scheduled]


def _paused(patient: Patient) -> Iterator[Sign]:
    if is_paused(patient):
        yield Sign(about=f"{len(_schedules(patient))} schedules rest")


def _rules_off(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    paused = is_paused(patient)
    for rule in parts.rules():
        if not rule.enabled and not (rule.scheduled and paused):
            does = f"turn {'the schedule' if rule.scheduled else 'the rule'} {rule.name} on"
            yield Sign(
                about=rule.name, cure=Cure(does=does, act=partial(parts.turn_on_rule, rule.name))
            )


def _rules_empty(patient: Patient) -> Iterator[Sign]:
    for rule in patient.parts().rules():
        if not rule.targets:
            yield Sign(about=rule.name)


def _rules_missing(patient: Patient) -> Iterator[Sign]:
    names = {rule.name for rule in patient.parts().rules()}
    for kind in TICK_KINDS:
        name = physical_name(patient.resources().instance, kind)
        if name not in names:
            yield Sign(about=name)
    buckets = {bucket_of(source) for source in patient.resources().arrival_folders() or ()}
    arrivals = physical_name(patient.resources().instance, ARRIVALS, "")
    missing = len(buckets) - sum(name.startswith(arrivals) for name in names)
    if missing > 0:
        yield Sign(about=f"{missing} of {len(buckets)} rules {arrivals}*")


def _folders_outside(patient: Patient) -> Iterator[Sign]:
    watchable = watchable_folders(patient.resources().arrival_folders())
    for entry in patient.lake.entries():
        try:
            watchable.check(entry.watched)
        except InvalidError as error:
            yield Sign(about=f"{entry.name} watches {entry.watched}: {error.message}")


def _buckets_silent(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    watched = [entry.watched for entry in patient.lake.entries() if entry.watched]
    for bucket in sorted({bucket_of(folder) for folder in watched}):
        if not parts.sends_file_events(bucket):
            yield Sign(about=bucket)


def _sources_off(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    if is_paused(patient):
        return
    for kind, sources in _sources(patient):
        for one in sources:
            if not one.enabled:
                does = f"let the queue {kind} hand its messages to {one.function} again"
                act = partial(parts.turn_on_event_source, one.id)
                yield Sign(about=f"{kind} to {one.function}", cure=Cure(does=does, act=act))


def _unheard(patient: Patient) -> Iterator[Sign]:
    for kind, sources in _sources(patient):
        if not sources:
            yield Sign(about=kind)


def _sources_failing(patient: Patient) -> Iterator[Sign]:
    for kind, sources in _sources(patient):
        for one in sources:
            if one.problem:
                yield Sign(about=f"{kind} to {one.function}: {one.problem}")


def _functions_broken(patient: Patient) -> Iterator[Sign]:
    for one in patient.parts().functions():
        if one.problem:
            yield Sign(about=f"{one.name}: {one.problem}")


def _functions_stopped(patient: Patient) -> Iterator[Sign]:
    for one in patient.parts().functions():
        if one.reserved == 0:
            yield Sign(about=one.name)


def _queues_missing(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for kind in sorted(patient.resources().queues):
        if parts.queue(kind) is None:
            yield Sign(about=kind)


def _letters_lost(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for kind in sorted(patient.resources().queues):
        queue = parts.queue(kind)
        if queue is not None and not queue.has_dead_letters:
            yield Sign(about=kind)


def _kept_short(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for kind in sorted(patient.resources().queues):
        queue = parts.queue(kind)
        if queue is not None and queue.kept_seconds < KEPT_SECONDS_MIN:
            yield Sign(about=f"{kind}: {queue.kept_seconds:,} s")


WIRING_CHECKS = (
    _check(
        id="instance-paused",
        found_when="all schedules rest: nothing is split, merged or collected",
        cure="deploy with `-c paused=false` when the reason has gone",
        look=_paused,
    ),
    _check(
        id="schedules-off",
        found_when="some schedules, or rules of files that arrive, were turned off by hand",
        cure="turn them on; `--fix` does",
        look=_rules_off,
    ),
    _check(
        id="schedules-missing",
        found_when="a kind of work on tables has no schedule, or a bucket of `sources` no rule",
        cure=DEPLOY,
        look=_rules_missing,
    ),
    _check(
        id="schedules-empty",
        found_when="a schedule runs no function",
        cure=DEPLOY,
        look=_rules_empty,
    ),
    _check(
        id="folders-outside",
        found_when="a table watches a folder of whose files nothing is told",
        cure="`lakebed table watch` another, or deploy with its location among `-c sources=...`",
        look=_folders_outside,
    ),
    _check(
        id="buckets-silent",
        found_when="a bucket with a folder that a table watches sends no events to EventBridge",
        cure="turn them on in the bucket's properties (`lakebed explain batches`); submit what"
        " arrived meanwhile",
        look=_buckets_silent,
    ),
    _check(
        id="event-sources-off",
        found_when="a queue does not hand its messages to its function",
        cure="turn the event source on; `--fix` does",
        look=_sources_off,
    ),
    _check(
        id="event-sources-failing",
        found_when="the platform could not hand messages of a queue to their function",
        cure="do what its message says; a role or key that was changed by hand: deploy again",
        look=_sources_failing,
    ),
    _check(
        id="queues-unheard",
        found_when="no function takes messages of a queue",
        cure=DEPLOY,
        look=_unheard,
    ),
    _check(
        id="functions-broken",
        found_when="a function cannot run as it is",
        cure=DEPLOY,
        look=_functions_broken,
    ),
    _check(
        id="functions-stopped",
        found_when="a function is allowed no run at any time",
        cure="remove its reserved concurrency: `aws lambda delete-function-concurrency`",
        look=_functions_stopped,
    ),
    _check(
        id="queues-missing",
        found_when="a queue of the instance is not there",
        cure=DEPLOY,
        look=_queues_missing,
    ),
    _check(
        id="dead-letters-not-kept",
        found_when="messages of a queue that fail are lost: it has no dead letters",
        cure=DEPLOY,
        look=_letters_lost,
    ),
    _check(
        id="messages-kept-short",
        found_when="a queue keeps messages for less than a day",
        cure=DEPLOY,
        look=_kept_short,
    ),
)
