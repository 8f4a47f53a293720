"""Checks what was deployed: are bucket, tables and keys as they were made?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.dynamo_tables import LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE
from lakebed.doctor.check import Check, Cure, Sign
from lakebed.doctor.checks.wiring import DEPLOY
from lakebed.doctor.patient import Patient

_check = partial(Check, section="what was deployed", of="an instance")


def _bucket_missing(patient: Patient) -> Iterator[Sign]:
    if patient.parts().bucket() is None:
        yield Sign(about=patient.resources().bucket)


def _versions_off(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    bucket = parts.bucket()
    if bucket is not None and not bucket.versioned:
        does = f"let the bucket {bucket.name} keep what is deleted"
        yield Sign(about=bucket.name, cure=Cure(does=does, act=parts.keep_versions))


def _objects_expire(patient: Patient) -> Iterator[Sign]:
    bucket = patient.parts().bucket()
    for prefix in bucket.expiring if bucket is not None else ():
        yield Sign(about=f"below {prefix or 'the whole bucket'}")


def _bucket_open(patient: Patient) -> Iterator[Sign]:
    bucket = patient.parts().bucket()
    if bucket is not None and not bucket.closed:
        yield Sign(about=bucket.name)


def _overwritten(patient: Patient) -> Iterator[Sign]:
    bucket = patient.parts().bucket()
    if bucket is not None and not bucket.write_once:
        yield Sign(about=bucket.name)


def _kept_for_ever(patient: Patient) -> Iterator[Sign]:
    bucket = patient.parts().bucket()
    if bucket is not None and bucket.versioned and bucket.old_versions_days is None:
        yield Sign(about=bucket.name)


def _tables_missing(patient: Patient) -> Iterator[Sign]:
    there = {table.name for table in patient.parts().tables()}
    for name in _wanted(patient.resources()):
        if name not in there:
            yield Sign(about=name)


def _tables_busy(patient: Patient) -> Iterator[Sign]:
    for table in patient.parts().tables():
        if table.status != "ACTIVE":
            yield Sign(about=f"{table.name}: {table.status}")


def _no_recovery(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for table in parts.tables():
        if not table.recovers:
            does = f"let the table {table.name} recover to any time of the last 35 days"
            act = partial(parts.keep_history, table.name)
            yield Sign(about=table.name, cure=Cure(does=does, act=act))


def _unprotected(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for table in parts.tables():
        if not table.protected:
            act = partial(parts.protect, table.name)
            does = f"let the table {table.name} refuse to be deleted"
            yield Sign(about=table.name, cure=Cure(does=does, act=act))


def _items_expire(patient: Patient) -> Iterator[Sign]:
    wanted = _wanted(patient.resources())
    for table in patient.parts().tables():
        expiry = wanted.get(table.name)
        if expiry is not None and table.expiry != expiry:
            found = f"by {table.expiry}" if table.expiry else "never"
            meant = f"by {expiry}" if expiry else "never"
            yield Sign(about=f"items of {table.name} expire {found}; they are to expire {meant}")


def _wanted(resources: InstanceResources) -> dict[str, str]:
    """Return the fields by which items of each table are to go."""
    return {
        resources.log_table: LOG_TABLE.expiry or "",
        resources.registry_table: REGISTRY_TABLE.expiry or "",
        resources.tracker_table: TRACKER_TABLE.expiry or "",
    }


def _key_off(patient: Patient) -> Iterator[Sign]:
    parts = patient.parts()
    for key in sorted({table.key for table in parts.tables() if table.key}):
        state = parts.key_state(key)
        if state != "Enabled":
            yield Sign(about=f"{key}: {state}")


STORE_CHECKS = (
    _check(
        id="bucket-missing",
        found_when="the bucket of the lake's objects is not there",
        cure="is it the right account? Else restore a backup (`lakebed explain backup`)",
        look=_bucket_missing,
    ),
    _check(
        id="bucket-versions-off",
        found_when="what is deleted in the bucket is gone at once",
        cure="turn versions on; `--fix` does",
        look=_versions_off,
    ),
    _check(
        id="bucket-expires",
        found_when="a rule of the bucket deletes objects of the lake by their age",
        cure="remove that rule now, bring objects back, then `lakebed fsck`",
        look=_objects_expire,
    ),
    _check(
        id="bucket-open",
        found_when="the bucket no longer refuses to be made public",
        cure=DEPLOY,
        look=_bucket_open,
    ),
    _check(
        id="bucket-overwrites",
        found_when="the bucket's policy no longer denies that objects are overwritten",
        cure=DEPLOY,
        look=_overwritten,
    ),
    _check(
        id="bucket-keeps-deleted",
        found_when="what was deleted in the bucket stays, and is paid for, for ever",
        cure=DEPLOY,
        look=_kept_for_ever,
    ),
    _check(
        id="tables-missing",
        found_when="a table of log, registry or tracker is not there",
        cure="is it the right account? Else recover it under its name (`lakebed explain backup`)",
        look=_tables_missing,
    ),
    _check(
        id="tables-not-active",
        found_when="a table of log, registry or tracker is not in use: made, changed or deleted",
        cure="wait; of one that is archived for its key, see the key",
        look=_tables_busy,
    ),
    _check(
        id="tables-without-recovery",
        found_when="a table cannot be recovered to an earlier time",
        cure="turn recovery on; `--fix` does",
        look=_no_recovery,
    ),
    _check(
        id="tables-unprotected",
        found_when="a table may be deleted by one request",
        cure="turn protection on; `--fix` does; leave it where `data_kept=false` was deployed",
        look=_unprotected,
    ),
    _check(
        id="tables-expire",
        found_when="items of a table go by another field than they are to go by",
        cure="mend time to live at once; a log that lost entries: `lakebed explain corruption`",
        look=_items_expire,
    ),
    _check(
        id="key-off",
        found_when="the key that encrypts the lake is not enabled",
        cure="enable it, or cancel its deletion, in KMS: without it nothing can be read",
        look=_key_off,
    ),
)
