"""Checks what was deployed: does an operator hear of trouble?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.config.instance import physical_name
from lakebed.doctor.check import Check, Cure, Sign
from lakebed.doctor.checks.wiring import DEPLOY
from lakebed.doctor.patient import Patient

_check = partial(Check, section="what was deployed", of="an instance")


def _missing(patient: Patient) -> Iterator[Sign]:
    names = {alarm.name for alarm in patient.parts().alarms()}
    resources = patient.resources()
    for kind in sorted(resources.queues):
        for what in ("dead-letters", "age"):
            name = physical_name(resources.instance, kind, what)
            if name not in names:
                yield Sign(about=name)


def _silent(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    topic = parts.topic()
    for alarm in parts.alarms():
        if alarm.actions:
            continue
        cure = None
        if topic:
            does = f"let the alarm {alarm.name} tell the topic {topic.rpartition(':')[2]}"
            cure = Cure(does=does, act=partial(parts.add_alarm_action, alarm.name, topic))
        yield Sign(about=alarm.name, cure=cure)


def _muted(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for alarm in parts.alarms():
        if not alarm.is_on:
            act = partial(parts.turn_on_alarm, alarm.name)
            does = f"let the alarm {alarm.name} tell whom it names again"
            yield Sign(about=alarm.name, cure=Cure(does=does, act=act))


def _on(patient: Patient) -> Iterator[Sign]:
    for alarm in patient.parts().alarms():
        if alarm.state == "ALARM":
            yield Sign(about=f"{alarm.name}: {alarm.reason}" if alarm.reason else alarm.name)


def _unheard(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    topic = parts.topic()
    if topic and not any(one.confirmed for one in parts.recipients()):
        yield Sign(about=f"the topic {topic.rpartition(':')[2]}")


def _unconfirmed(patient: Patient) -> Iterator[Sign]:
    for one in patient.parts().recipients():
        if not one.confirmed:
            yield Sign(about=f"{one.protocol} to {one.endpoint}")


ALARM_CHECKS = (
    _check(
        id="alarms-missing",
        found_when="a queue has no alarm for its dead letters or for the age of its messages",
        cure=DEPLOY,
        look=_missing,
    ),
    _check(
        id="alarms-without-action",
        found_when="an alarm goes off and tells no topic",
        cure="let it tell the instance's topic; `--fix` does",
        look=_silent,
    ),
    _check(
        id="alarms-muted",
        found_when="the actions of an alarm were turned off by hand",
        cure="turn them on; `--fix` does",
        look=_muted,
    ),
    _check(
        id="alarms-on",
        found_when="an alarm is on",
        cure="the description of the alarm names the page that helps",
        look=_on,
    ),
    _check(
        id="alarms-unheard",
        found_when="no subscriber that has confirmed it hears of alarms",
        cure="deploy with `-c alarm_mail=ADDRESS`, or subscribe to the topic",
        look=_unheard,
    ),
    _check(
        id="subscriptions-unconfirmed",
        found_when="a subscriber has not confirmed that it wants to hear of alarms",
        cure="open the mail of AWS and confirm; after three days subscribe again",
        look=_unconfirmed,
    ),
)
