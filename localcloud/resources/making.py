"""Holds what a template asks for, and what was made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from lakebed.errors import InvalidError
from localcloud.services.amazon import Amazon, Client
from localcloud.templates.assembly import Template
from localcloud.templates.images import Image, make_image
from localcloud.templates.running import Running

MISSING = object()
DEFINITION = "localcloud/resources/resource_types.py"


class Properties:
    """The properties of one resource, expressions worked out. What no maker takes is
    refused at the end."""

    def __init__(self, type_: str, logical_id: str, values: Mapping[str, Any]) -> None:
        self.type = type_
        self.logical_id = logical_id
        self._values = dict(values)

    def take(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any JSON
        """Return a property that may be missing."""
        return self._values.pop(name, default)

    def need(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        """Return a property without which nothing is made here, though AWS might."""
        found = self._values.pop(name, MISSING)
        if found is MISSING:
            hint = "name it in its stack: resources of an instance have names made by hand"
            raise InvalidError(
                "a resource without a property", resource=self.logical_id, property=name, hint=hint
            )
        return found

    def only(self, name: str, *allowed: object) -> None:
        """Take a property that may be missing, or say one of these things."""
        found = self._values.pop(name, MISSING)
        if found is not MISSING and found not in allowed:
            raise self._unknown({name: found})

    def rest(self) -> dict[str, Any]:
        """Return all that was not taken."""
        left, self._values = self._values, {}
        return left

    def end(self) -> None:
        """Refuse what was not taken: the template wants something that nothing here stands for."""
        self._values.pop("Tags", None)
        if self._values:
            raise self._unknown(self._values)

    def _unknown(self, values: Mapping[str, Any]) -> InvalidError:
        return InvalidError(
            "a local cloud does not know a property",
            resource=self.logical_id,
            type=self.type,
            properties=", ".join(f"{key}={value}"[:80] for key, value in values.items()),
            hint=f"say in {DEFINITION} what stands for it",
        )


class Made(msgspec.Struct, frozen=True):
    """A resource.

    id: what Ref gives.
    attributes: what Fn::GetAtt gives.
    remove: undoes it; None: there is nothing to undo.
    """

    id: str
    attributes: Mapping[str, Any] = {}
    remove: Callable[[], object] | None = None


class Making:
    """The tools of makers. running: collects what the cloud runs. images: a folder for them."""

    def __init__(
        self, amazon: Amazon, template: Template, *, running: Running, images: Path
    ) -> None:
        self._amazon = amazon
        self._template = template
        self._images = images
        self.stack = template.stack
        self.running = running

    def client(self, service: str) -> Client:
        """Return a client with all permissions."""
        return self._amazon.client(service)

    def asset(self, properties: Properties, name: str) -> Path:
        """Return the folder or file of an asset. name: what a template calls it by: an object
        `HASH.zip`, or an image `REPOSITORY:HASH`."""
        hash_ = _hash(name)
        if hash_ not in self._template.assets:
            raise InvalidError(
                "an asset that is not in the assembly",
                resource=properties.logical_id,
                asset=name,
                hint="synthesize again",
            )
        return self._template.assets[hash_]

    @property
    def assets(self) -> dict[str, Path]:
        """Return the folders and files of all assets of this stack, by hash."""
        return dict(self._template.assets)

    def image(self, properties: Properties, name: str) -> Image:
        """Return what an image would hold."""
        context, hash_ = self.asset(properties, name), _hash(name)
        return make_image(context, self._template.dockerfiles[hash_], self._images / hash_)


def _hash(name: str) -> str:
    return name.rpartition(":")[2].removesuffix(".zip")


Maker = Callable[[Making, Properties], Made]
