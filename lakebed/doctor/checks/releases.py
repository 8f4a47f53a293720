"""Checks what was deployed: can the lake be opened, and of which release is it?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.doctor.check import Check, Sign
from lakebed.doctor.patient import Patient
from lakebed.errors import CorruptError, InvalidError, NewerFormatError
from lakebed.model.releases import THIS, order_of

_check = partial(Check, section="what was deployed")


def _opens(patient: Patient) -> Iterator[Sign]:
    try:
        if patient.is_instance:
            patient.resources()
        patient.lake.now()
    except (InvalidError, CorruptError, NewerFormatError) as error:
        yield Sign(about=str(error))


def _release(patient: Patient) -> Iterator[Sign]:
    deployed = patient.resources().release
    if order_of(deployed) != order_of(THIS.name):
        yield Sign(about=f"deployed of {deployed or 'an unknown release'}; this is {THIS.name}")


def _older(patient: Patient) -> Iterator[Sign]:
    for one in patient.lake.upgrade().older():
        yield Sign(about=f"{one.program}: {one.release or 'of an unknown release'}")


def _unfinished(patient: Patient) -> Iterator[Sign]:
    status = patient.lake.upgrade()
    if status.is_deployed() and not status.is_finished() and not status.older():
        yield Sign(about=f"{status.gate} may be written; this is {status.release}")


def _newer(patient: Patient) -> Iterator[Sign]:
    try:
        status = patient.lake.upgrade()
    except NewerFormatError as error:
        yield Sign(about=str(error))
        return
    if order_of(status.gate) > order_of(THIS.name):
        yield Sign(about=f"{status.gate} may be written; this is {THIS.name}")


RELEASE_CHECKS = (
    _check(
        id="lake-does-not-open",
        found_when="the lake cannot be opened: it is not there, damaged, or newer",
        cure="do what the message says; `lakebed explain CODE` tells more",
        look=_opens,
    ),
    _check(
        id="release-other",
        found_when="the instance was deployed of another release than this program",
        cure="`lakebed upgrade plan` says what is next; or install the release that is deployed",
        of="an instance",
        look=_release,
    ),
    _check(
        id="lake-newer",
        found_when="newer forms may be written to the lake than this program reads",
        cure="upgrade this installation of lakebed",
        look=_newer,
    ),
    _check(
        id="older-processes",
        found_when="processes of older releases work on the lake",
        cure="end them, or wait; `lakebed upgrade status` names them",
        look=_older,
    ),
    _check(
        id="upgrade-unfinished",
        found_when="the upgrade is done everywhere, and newer forms are not allowed yet",
        cure="`lakebed upgrade finish`, when you do not want to go back",
        look=_unfinished,
    ),
)
