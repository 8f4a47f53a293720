"""An export that is asked for, in its target: whether it is there, begun or finished, and how it is
removed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from lakebed.errors import CorruptError, InvalidError
from lakebed.exports.export_plan import ExportPlan, ExportRequest, plan_in
from lakebed.exports.manifest import ExportManifest, manifest_in
from lakebed.exports.target import MANIFEST, PLAN, PROBE, PROGRESS, ExportTarget, is_rows_path
from lakebed.model.schema import Schema
from lakebed.ports.clock import Clock
from lakebed.statestore.open_table import OpenTable
from lakebed.tables.definition import definition_from_json

DELETED_AT_ONCE = 1_000


class AskedExport(NamedTuple):
    """A request for an export: what is exported, and where to."""

    table: OpenTable
    target: ExportTarget
    request: ExportRequest

    def found(self) -> tuple[ExportPlan | None, ExportManifest | None]:
        """Return the plan and the manifest of this export that lie in the target.

        Raises:
            InvalidError: the target holds another export, or anything else.
        """
        target, there = self.target, None
        for _ in range(2):  # another process may have finished between plan and listing
            plan = plan_in(target)
            done = manifest_in(target)  # behind the plan: who finishes puts it, then deletes that
            if plan is not None:
                self._refuse_other(plan.table, plan.request, plan.table_text.schema())
            if done is not None:
                self._refuse_other(done.table, done.request, _schema_of(done))
            there = next((path for path in target.objects.list("") if path != PROBE), None)
            if plan is not None or done is not None or there is None:
                return plan, done
        hint = "name an empty folder, or one that is not there yet"
        raise InvalidError("the target is not empty", path=target.address(there or ""), hint=hint)

    def finished_by_another(self) -> ExportManifest | None:
        """Return the manifest of this export, if there is one now: who puts it removes folders and
        the pin, which fails the writes and reads of a slower process."""
        done = manifest_in(self.target)
        with suppress(InvalidError):  # other words than those of this request
            if done is not None and self._is_asked(done.table, done.request, _schema_of(done)):
                return done
        return None

    def finish(self, plan: ExportPlan | None, clock: Clock) -> None:
        """Let the version be collected, and remove what only an unfinished export needs, the plan
        last: a run that is killed here is finished by the next one."""
        target = self.target
        if plan is not None:
            plan.version_pin(self.table, clock).drop()
            _delete(target, [path for path in target.objects.list(f"{PROGRESS}/") if path != PLAN])
            _delete(target, [PLAN])
        target.tidy()

    def remove(self, clock: Clock) -> None:
        """Remove all that exports put into the target, the manifest first and the plan last: a run
        that is killed here finds an unfinished export."""
        target = self.target
        with suppress(CorruptError):
            plan = plan_in(target)
            if plan is not None and plan.table == self.table.id:
                plan.version_pin(self.table, clock).drop()
        _delete(target, [MANIFEST])
        ours = [path for path in target.objects.list("") if is_rows_path(path)]
        notes = [path for path in target.objects.list(f"{PROGRESS}/") if path != PLAN]
        _delete(target, [*ours, *notes])
        _delete(target, [PLAN])
        target.tidy()

    def _is_asked(self, table: str, digest: str, schema: Schema) -> bool:
        """Return whether an export is of this table and this request.

        digest: of its request, in hex digits.
        schema: of its version, in the words of which requests are compared.
        """
        return table == self.table.id and digest == self.request.digest(schema).hex()

    def _refuse_other(self, table: str, digest: str, schema: Schema) -> None:
        """Refuse a target that holds an export of another table, or another request. Raises:
        InvalidError."""
        if self._is_asked(table, digest, schema):
            return
        what = "of another table"
        if table == self.table.id:
            what = "of other rows or columns, or of another version"
        hint = "name another target, or remove that export: --restart (restart=True)"
        target = self.target.location
        raise InvalidError(f"the target holds an export {what}", target=target, hint=hint)


def _schema_of(done: ExportManifest) -> Schema:
    return definition_from_json(done.definition).schema


def _delete(target: ExportTarget, paths: Sequence[str]) -> None:
    for at in range(0, len(paths), DELETED_AT_ONCE):
        target.objects.delete(paths[at : at + DELETED_AT_ONCE])
