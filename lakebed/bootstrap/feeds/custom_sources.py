"""Adaptors of other authors: entry points of the group `lakebed.sources`, by name and version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pyarrow as pa

from lakebed.config.definitions.custom_sources import CustomFeed
from lakebed.config.feed_fields import secrets_in
from lakebed.config.feed_sources import SOURCES
from lakebed.config.packages import ADAPTORS
from lakebed.errors import InvalidError, LakebedError, did_you_mean
from lakebed.ports.record_source import RecordSource
from lakebed.ports.secrets import SECRET_SCHEME, Secrets


def custom_source(said: CustomFeed, secrets: Secrets) -> RecordSource[pa.RecordBatch]:
    """Return the source that an adaptor makes of its settings, in which secrets stand as texts.

    Raises:
        InvalidError: none has that name and version, it cannot be loaded, it refuses the settings,
            or it names items and the definition does not say that it has no order.
        DeniedError, SecretMissingError: a secret that the settings name.
    """
    factory = _loaded(installed(said), said.kind)
    settings = {name: _revealed(value, secrets) for name, value in said.settings.items()}
    hint = "mend the settings, as the adaptor's own pages say"
    is_secret = any(True for _ in secrets_in(said.settings))
    with _Guard("the adaptor refuses its settings", said.kind, hint, is_secret=is_secret):
        source: RecordSource[pa.RecordBatch] = factory(settings)
    if getattr(source, "has_items", False) and said.is_ordered:
        hint = "add `ordered = false` to the source"
        raise InvalidError("the adaptor's records have no order", kind=said.kind, hint=hint)
    return source


def installed(said: CustomFeed, at: str = "") -> EntryPoint:
    """Return the entry point of an adaptor. at: path of its source, for messages.

    Raises:
        InvalidError: none of that name is installed, or not in that version, or several are.
    """
    points = list(entry_points(group=ADAPTORS))
    facts = {"at": f"{at}.kind"} if at else {}
    named = {_version_of(point): point for point in points if point.name == said.kind}
    if not named:
        kinds = sorted({point.name for point in points} | {form.kind for form in SOURCES})
        hint = did_you_mean(said.kind, kinds, what="source")
        hint = f"{hint}; install the package that provides it, here and where workers run"
        raise InvalidError("no such source is installed", **facts, kind=said.kind, hint=hint)
    if said.version and said.version not in named:
        facts = {"at": f"{at}.version"} if at else {}
        hint = f"installed: {', '.join(sorted(named))}"
        raise InvalidError(
            "the source is installed in another version",
            **facts,
            kind=said.kind,
            version=said.version,
            hint=hint,
        )
    if not said.version and len(named) > 1:
        hint = f"say which: `version = ...`, one of {', '.join(sorted(named))}"
        raise InvalidError(
            "several packages provide the source", **facts, kind=said.kind, hint=hint
        )
    return named[said.version or next(iter(named))]


def _version_of(point: EntryPoint) -> str:
    return point.dist.version if point.dist is not None else ""


def _loaded(point: EntryPoint, kind: str) -> Callable[[Mapping[str, object]], Any]:
    with _Guard(
        "the source cannot be loaded", kind, "install its package again, with all it needs"
    ):
        factory: Callable[[Mapping[str, object]], Any] = point.load()
    return factory


class _Guard:
    """Around what an adaptor's author wrote; lets out only our own errors.

    is_secret: whether what its errors say may hold a secret that it was given.
    """

    def __init__(self, problem: str, kind: str, hint: str, *, is_secret: bool = False) -> None:
        self._problem = problem
        self._kind = kind
        self._hint = hint
        self._is_secret = is_secret

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, LakebedError):
            name = type(error).__name__
            why = name if self._is_secret else f"{name}: {error}"[:500]
            raise InvalidError(self._problem, kind=self._kind, problem=why, hint=self._hint) from (
                None if self._is_secret else error
            )


def _revealed(said: object, secrets: Secrets) -> object:
    """Return a setting with secrets instead of their names."""
    if isinstance(said, Mapping):
        return {str(name): _revealed(value, secrets) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_revealed(value, secrets) for value in said]
    if isinstance(said, str) and said.startswith(SECRET_SCHEME):
        return secrets.read(said.removeprefix(SECRET_SCHEME)).reveal()
    return said
