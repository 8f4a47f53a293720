"""Plans, applies, writes back and compares the tables of a lake that files declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lakebed.face.upgraded_lake import UpgradedLake
from lakebed.tasks.failed_work import FailedWork

if TYPE_CHECKING:
    from lakebed.tables.apply_tables import ApplyTables
    from lakebed.tables.compare_tables import TableDifference
    from lakebed.tables.declarations import Declaration
    from lakebed.tables.plan_steps import Loss, Removal, TablesPlan, TableStep
    from lakebed.tables.table_files import TableFiles


class DeclaredLake(UpgradedLake):
    """A lake whose tables files may declare."""

    def plan_tables(self, files: TableFiles, *, remove: Removal | None = None) -> TablesPlan:
        """Return what `apply_tables` would do. Changes nothing.

        files: a folder with a file of TOML for each table, or texts by file name.
        remove: what becomes of tables that files declared before, and none does now: they are taken
            `offline`, or dropped by `drop`. None: nothing.

        Raises:
            InvalidError: a file that is wrong, or a table that cannot be as declared; the error
                names each.
        """
        return self._tables().plan(_declared(files), remove=remove)

    def apply_tables(
        self,
        files: TableFiles,
        *,
        remove: Removal | None = None,
        losses: Sequence[Loss] = (),
        on_step: Callable[[TableStep], None] = lambda _: None,
    ) -> TablesPlan:
        """Make the tables of the lake those that files declare. Returns the steps that were done;
        again there are none. Tables that no file ever declared stay as they are.

        Each step is done or not; there is no transaction over several tables, and applying again
        goes on where a process died.

        files, remove: as `plan_tables` takes them.
        losses: what may be removed for good: `plan_tables(...).losses`, once you have seen them.
        on_step: called with each step that is done.

        Raises:
            InvalidError: a file that is wrong, a table that cannot be as declared, a loss that
                `losses` does not name. Nothing was changed but what steps before it did.
            ConflictError: other processes change the same tables all the time.
        """
        return self._tables().run(_declared(files), remove=remove, losses=losses, on_step=on_step)

    def table_files(self, *, failed: Callable[[FailedWork], None] | None = None) -> dict[str, str]:
        """Return files that declare all tables as they are, by name: `apply_tables` takes them,
        here without a change, in another lake for tables of the same kind.

        failed: called with each table that cannot be read or is in quarantine, and why.

        Raises:
            LakebedError: the gravest error that a table met; only where `failed` is not given.
        """
        from lakebed.tables.download_tables import download_tables

        return download_tables(self._app.catalog, failed)

    def compare_tables(self, files: TableFiles) -> list[TableDifference]:
        """Return how the tables of the lake differ from those that files declare, be they
        declared or made by hand. Changes nothing.

        files: as `plan_tables` takes them.

        Raises:
            InvalidError: a file that is wrong; the error names it.
        """
        from lakebed.tables.compare_tables import compare_tables

        declared = _declared(files)
        return compare_tables(declared, self._tables().found(declared))

    def _tables(self) -> ApplyTables:
        from lakebed.tables.apply_tables import ApplyTables

        return ApplyTables(catalog=self._app.catalog, steps=self._app.steps)


def _declared(files: TableFiles) -> list[Declaration]:
    from lakebed.tables.declarations import declarations_of
    from lakebed.tables.table_files import read_table_texts

    return declarations_of(files if isinstance(files, Mapping) else read_table_texts(files))
