"""Checks where a decoder finds schemas, and what stands in front of its records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lakebed.config.feed_sources import SECRET
from lakebed.config.web_addresses import check_address
from lakebed.errors import InvalidError

Framing = Literal["", "registry", "glue", "container", "datum"]

FRAMINGS_OF: Final[Mapping[str, Sequence[Framing]]] = {
    "json": ("registry", "glue"),
    "protobuf": ("registry", "glue"),
    "avro": ("registry", "glue", "container", "datum"),
}
"""Framings by format. Records of other formats have nothing in front of them."""
_GLUE: Final = re.compile(r"glue(:[a-z]{2,4}(-[a-z]+)+-[0-9])?")
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


class RegistryOf(msgspec.Struct, frozen=True, kw_only=True):
    """The registry in which schemas are registered.

    url: `https://HOST/PATH` of a registry with Confluent's HTTP API; `glue` or `glue:REGION`: that
        of AWS Glue.
    user, password: of the registry on the web; the password as `secret:NAME`.
    ca_file: certificates to trust beside those of the machine, as a file in PEM.
    subject: one whose newest schema must be there, and fit, when a definition is applied. Of Glue:
        `REGISTRY/SCHEMA`.
    """

    url: Annotated[str, Meta(min_length=1, max_length=2_048)]
    user: Annotated[str, Meta(max_length=1_000)] = ""
    password: Annotated[str, Meta(pattern=SECRET)] = ""
    ca_file: Annotated[str, Meta(max_length=4_096)] = ""
    subject: Annotated[str, Meta(max_length=1_000)] = ""

    @property
    def is_glue(self) -> bool:
        """Return whether the registry is that of AWS Glue."""
        return self.url.partition(":")[0] == "glue"

    @property
    def region(self) -> str:
        """That of Glue; empty: ours."""
        return self.url.partition(":")[2] if self.is_glue else ""


def framing_of(format_: str, framing: Framing, registry: RegistryOf | None, *, at: str) -> Framing:
    """Return what stands in front of a decoder's records. at: path of its section, for messages.

    Raises:
        InvalidError: there is no such framing of its format, or no use for its registry.
    """
    allowed = FRAMINGS_OF.get(format_, ())
    if framing and framing not in allowed:
        names = ", ".join(allowed)
        hint = f"use one of {names}, or leave it out" if allowed else "leave it out"
        raise InvalidError(f"{format_} has no such framing", at=f"{at}.framing", hint=hint)
    if registry is None:
        return framing
    if format_ not in {"avro", "protobuf"}:
        hint = "leave it out"
        if allowed:
            hint += "; `framing` says what stands in front of a record"
        raise InvalidError(
            f"{format_} is read without registered schemas", at=f"{at}.registry", hint=hint
        )
    _check_registry(registry, f"{at}.registry")
    if format_ == "protobuf" and registry.is_glue:
        hint = "name a descriptor set: `descriptors` and `message`; `framing` is `glue`"
        raise InvalidError(
            "Glue gives schemas of Protobuf as text alone", at=f"{at}.registry", hint=hint
        )
    fits: Framing = "glue" if registry.is_glue else "registry"
    if framing not in {"", fits}:
        hint = f'write framing = "{fits}", or leave one of them out'
        raise InvalidError("no registry has such records", at=f"{at}.framing", hint=hint)
    return fits


def _check_registry(registry: RegistryOf, at: str) -> None:
    if registry.is_glue:
        if not _GLUE.fullmatch(registry.url):
            hint = "write `glue`, or with a region: `glue:eu-west-1`"
            raise InvalidError("not a registry of Glue", at=f"{at}.url", hint=hint)
        for name in ("user", "password", "ca_file"):
            if getattr(registry, name):
                hint = "leave it out: our credentials of AWS are used"
                raise InvalidError("Glue has no such setting", at=f"{at}.{name}", hint=hint)
        return
    parts = check_address(registry.url, at=f"{at}.url")
    if registry.password and not registry.user:
        hint = "say whose: `user`"
        raise InvalidError("a password without a user", at=f"{at}.password", hint=hint)
    if parts.scheme == "https":
        return
    if registry.ca_file:
        hint = "write https://, or leave it out"
        raise InvalidError("HTTP has no certificates", at=f"{at}.ca_file", hint=hint)
    if registry.password and parts.hostname not in _THIS_MACHINE:
        hint = "write https://"
        raise InvalidError("a password would be sent in the open", at=f"{at}.url", hint=hint)
