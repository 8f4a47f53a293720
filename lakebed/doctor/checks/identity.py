"""Checks who asks: which account, and what do these credentials, or this user, permit?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lakebed.config.instance import physical_name
from lakebed.doctor.check import Check, Sign
from lakebed.doctor.patient import Patient
from lakebed.errors import DeniedError

_check = partial(Check, section="who am I")


def _credentials(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.parts().identity)


def _account(patient: Patient) -> Iterator[Sign]:
    resources, who = patient.resources(), patient.parts().identity()
    wanted = physical_name(resources.instance, "data", who.account, who.region)
    own = physical_name(resources.instance, "data", "")
    if resources.bucket.startswith(own) and resources.bucket != wanted:
        where = resources.bucket.removeprefix(own)
        yield Sign(about=f"account {who.account} in {who.region}; the lake's is {where}")


def _root(patient: Patient) -> Iterator[Sign]:
    who = patient.parts().identity()
    if who.arn.endswith(":root"):
        yield Sign(about=who.arn)


def _foreign_files(patient: Patient) -> Iterator[Sign]:
    for path in patient.machine.foreign_files():
        yield Sign(about=path)


def _parameter(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.resources)


def _registry(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.lake.entries)


def _objects(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.lake.read_an_object)


def _reports(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.lake.read_a_report)


def _queues(patient: Patient) -> Iterator[Sign]:
    return _refusals(patient.lake.loads)


def _logs(patient: Patient) -> Iterator[Sign]:
    for name, why in patient.lake.survey().failed.items():
        if why.startswith(f"{DeniedError.code()}:"):
            yield Sign(about=f"table {name}: {why}")


def _refusals(ask: Callable[[], object]) -> Iterator[Sign]:
    """Yield what is refused. Other errors are raised: whether it is permitted is not known then."""
    try:
        ask()
    except DeniedError as error:
        yield Sign(about=str(error))


READING = "give them the policy of a reader (`lakebed explain doctor`)"

IDENTITY_CHECKS = (
    _check(
        id="credentials-refused",
        found_when="AWS does not take the credentials: they have ended, or are wrong",
        cure="log in again, or name another profile in `AWS_PROFILE`",
        of="an instance",
        look=_credentials,
    ),
    _check(
        id="account-other",
        found_when="the credentials are of another account or region than the lake's objects",
        cure="name the right profile in `AWS_PROFILE`, and the region in `AWS_REGION`",
        of="an instance",
        look=_account,
    ),
    _check(
        id="root-user",
        found_when="the credentials are those of the account's root user, whom nothing is denied",
        cure="use a role; keep the root user's keys for nothing, or delete them",
        of="an instance",
        look=_root,
    ),
    _check(
        id="files-of-others",
        found_when="the user who runs this may not read and write files of the lake",
        cure="`chown -R` the directory, or run as the user who owns it",
        of="a directory",
        look=_foreign_files,
    ),
    _check(
        id="may-not-read-parameter",
        found_when="the parameter that says what the instance is made of is refused",
        cure="permit `ssm:GetParameter` of `/lakebed/INSTANCE`",
        of="an instance",
        look=_parameter,
    ),
    _check(
        id="may-not-list-tables",
        found_when="the names of tables are refused",
        cure=READING,
        look=_registry,
    ),
    _check(
        id="may-not-read-logs",
        found_when="the log of a table is refused",
        cure=READING,
        look=_logs,
    ),
    _check(
        id="may-not-read-objects",
        found_when="objects of the lake are refused",
        cure=f"{READING}; is the key of the bucket permitted, too?",
        look=_objects,
    ),
    _check(
        id="may-not-read-reports",
        found_when="reports of jobs are refused",
        cure=READING,
        look=_reports,
    ),
    _check(
        id="may-not-look-at-queues",
        found_when="the lengths of queues are refused",
        cure=READING,
        look=_queues,
    ),
)
