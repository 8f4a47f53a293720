"""`lakebed.toml` of an instance: written from what is deployed, and compared with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.cli.program import Session
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.config.deployments.deployed_settings import DeployedSettings, SettingDifference
    from lakebed.config.instance import InstanceId

FILE_NAME = "lakebed.toml"
"""The file of settings in the folder of an instance, beside the folder of its tables."""


class SettingsFile:
    """The file of an instance in a folder, and how the instance is deployed.

    unsaid: why the instance does not say how; None: it does, or the lake is a directory, which has
    no such settings.
    """

    def __init__(self, session: Session, folder: Path) -> None:
        """Read what is deployed. Raises: DeniedError, NewerFormatError, UnavailableError."""
        self.path = folder / FILE_NAME
        self.unsaid: InvalidError | None = None
        self._deployed: tuple[InstanceId, DeployedSettings] | None = None
        try:
            self._deployed = _deployed(session)
        except InvalidError as error:
            self.unsaid = error

    @property
    def is_there(self) -> bool:
        """Return whether there is a file of an instance. A directory has none, whatever lies
        there."""
        said = self._deployed is not None or self.unsaid is not None
        return said and self.path.exists()

    def differences(self) -> list[SettingDifference] | None:
        """Return what differs. None: one side is not there.

        Raises:
            InvalidError: the file is wrong.
        """
        from lakebed.config.deployments.deployed_settings import (
            deployed_settings,
            setting_differences,
        )
        from lakebed.config.deployments.deployment import FILE, deployment_of

        if self._deployed is None or not self.path.exists():
            return None
        instance, recorded = self._deployed
        declared = deployment_of({FILE: str(self.path), "instance": instance})
        return setting_differences(recorded, deployed_settings(declared))

    def new_text(self, *, replace: bool) -> str | None:
        """Return what is to be written. None: nothing; the file says it already, in words of its
        own. replace: a file that says something else; else it is refused.

        Raises:
            InvalidError: a file that is there says something else.
        """
        from lakebed.config.deployments.instance_text import instance_text

        if self._deployed is None:
            return None
        if self.path.exists():
            if self._says_the_same():
                return None
            if not replace:
                hint = "`lakebed config diff` compares; --replace writes over it"
                raise InvalidError(
                    "a file that is there says something else", files=FILE_NAME, hint=hint
                )
        return instance_text(*self._deployed)

    def _says_the_same(self) -> bool:
        try:
            return not self.differences()
        except InvalidError:  # it is not the file of any instance
            return False


def difference_line(one: SettingDifference) -> str:
    """Return a line for a setting that differs."""
    return f"  {one.name}: {_shown(one.deployed)} -> {_shown(one.declared)}"


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value) or '""'


def _deployed(session: Session) -> tuple[InstanceId, DeployedSettings] | None:
    from lakebed.bootstrap.app import INSTANCE_SCHEME
    from lakebed.config.instance import instance_id

    if not session.lake_path.startswith(INSTANCE_SCHEME):
        return None
    from lakebed.bootstrap.recorded_settings import recorded_settings

    instance = instance_id(session.lake_path.removeprefix(INSTANCE_SCHEME))
    return instance, recorded_settings(instance)
