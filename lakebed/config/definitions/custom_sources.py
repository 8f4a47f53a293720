"""Sources of adaptors that are installed, as `source = { kind = "NAME", ... }` says them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lakebed.config.definitions.toml_fields import checked
from lakebed.errors import InvalidError

KIND = r"\A[A-Za-z][A-Za-z0-9_.-]{0,62}\Z"


class CustomSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a source of any adaptor may have. All others are handed to it."""

    kind: Annotated[
        str,
        Meta(
            pattern=KIND,
            description="The adaptor: the name of an entry point of the group `lakebed.sources`.",
        ),
    ]
    version: Annotated[
        str,
        Meta(
            max_length=100,
            description="Of the package that provides it, exactly. Left out: what is installed.",
        ),
    ] = ""
    ordered: Annotated[
        bool,
        Meta(description="`false`: of one that names items, since its records have no order."),
    ] = True


class CustomFeed(CustomSettings, frozen=True, kw_only=True):
    """Records of an adaptor that is installed where workers run.

    settings: what it is given, secrets by their names (`secret:NAME`).
    """

    settings: Mapping[str, Any] = {}

    @property
    def is_ordered(self) -> bool:
        """Return whether the same position gives the same records."""
        return self.ordered


def custom_source_of(fields: Mapping[str, Any], ours: Collection[str], at: str) -> CustomFeed:
    """Return the source of an adaptor that is said. Whether it is installed is not looked at.

    ours: kinds that need no adaptor.

    Raises:
        InvalidError: it has no name, or that of one of ours.
    """
    names = CustomSettings.__struct_fields__
    said = checked({name: fields[name] for name in names if name in fields}, CustomSettings, at)
    if said.kind in ours:
        hint = f"write `source = {{ {said.kind} = ... }}`"
        raise InvalidError("this kind needs no adaptor", at=f"{at}.kind", kind=said.kind, hint=hint)
    given = {name: value for name, value in fields.items() if name not in names}
    return CustomFeed(settings=given, **msgspec.structs.asdict(said))
