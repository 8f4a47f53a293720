"""`lakebed.toml`: what an instance is deployed with, in a file.

A section that is added is a field of `InstanceFile`, read by `checked`, and a field of `Deployment`
that `deployment.py` fills (docs/change/setting.md).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from lakebed.config.definitions.toml_fields import check_names, checked, section
from lakebed.config.deployments.tags import checked_tags
from lakebed.config.instance import InstanceSettings
from lakebed.config.settings import changed
from lakebed.errors import InvalidError

THE_FILE = "the file of an instance"
NAME, INSTANCE, WITHOUT, TAGS, PACKAGES = "name", "instance", "without", "tags", "packages"
PREFIXED = ("notices", "people")
"""Sections whose keys are settings: `reader` of `[people]` is `people_reader`."""
PARTS = (INSTANCE, WITHOUT, TAGS, PACKAGES, *PREFIXED)
"""Names that a file may hold at its top."""
LISTED = (
    *("account_quotas", "feed_ports", "feed_queues", "feed_secrets"),
    *("sources", "subnet_ids", "zones"),
    *("notices_https", "notices_mail", "notices_queue"),
    *("machine_types", "spark_cluster_types"),
    *("people_admin", "people_operator", "people_reader", "people_sender", "people_writer"),
)
"""Settings with commas between, which a file gives as lists, too."""


class PackagesSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[packages]`.

    wheels: a folder that holds them, or files; from the folder of the file.
    """

    wheels: str | tuple[str, ...]


class InstanceFile(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a file that describes an instance.

    name: of the instance; None: it is given with the command.
    settings: those that it gives.
    without: names of stacks that are left out.
    tags: for all resources that take some.
    """

    name: object = None
    settings: Mapping[str, object] = {}
    without: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}


def read_instance_file(path: Path) -> InstanceFile:
    """Return what a file says.

    Raises:
        InvalidError: it cannot be read, or as `instance_file_of`.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "give the path of a file in TOML: `-c file=lakebed.toml`"
        why = getattr(error, "strerror", None) or error
        raise InvalidError("a file cannot be read", file=path, why=why, hint=hint) from None
    return instance_file_of(text, path)


def instance_file_of(text: str, path: Path) -> InstanceFile:
    """Return what the text of a file says. path: of the file, for errors and paths beside it.

    Raises:
        InvalidError: it is no TOML, or says what there is not, or of another type: the file, the
            key, and what is allowed are named.
    """
    with _of_file(path):
        try:
            parsed = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidError(
                "a file is no TOML",
                problem=error,
                hint="mend it at that line and column; texts stand in quotes",
            ) from None
        check_names(parsed, PARTS, "", of=THE_FILE)
        said = dict(section(parsed.get(INSTANCE, {}), INSTANCE))
        name = said.pop(NAME, None)
        return InstanceFile(
            name=name,
            settings=_settings({**said, **_prefixed(parsed)}) | _packages(parsed, path.parent),
            without=_names(parsed.get(WITHOUT, [])),
            tags=checked_tags(section(parsed.get(TAGS, {}), TAGS)),
        )


@contextmanager
def _of_file(path: Path) -> Iterator[None]:
    """Let errors of a block name the file."""
    try:
        yield
    except InvalidError as error:
        facts = {name: value for name, value in error.facts.items() if name != "file"}
        raise InvalidError(error.message, file=path, **facts, hint=error.hint) from None


def _prefixed(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that sections of their own give."""
    found: dict[str, Any] = {}
    for name in PREFIXED:
        given = section(parsed.get(name, {}), name)
        fields = (one for one in InstanceSettings.__struct_fields__ if one.startswith(f"{name}_"))
        check_names(given, [one.removeprefix(f"{name}_") for one in fields], name, of=THE_FILE)
        found |= {f"{name}_{key}": value for key, value in given.items()}
    return found


def _settings(said: dict[str, Any]) -> dict[str, object]:
    """Return settings by name, each of a kind that the setting has."""
    if PACKAGES in said:
        hint = 'write [packages] with wheels = "FOLDER"'
        raise InvalidError("packages have a section", at=f"{INSTANCE}.{PACKAGES}", hint=hint)
    hints = get_type_hints(InstanceSettings, include_extras=True)
    given = {name: _plain(name, value, hints.get(name)) for name, value in said.items()}
    after = changed(InstanceSettings(), given, page=INSTANCE)
    return {name: getattr(after, name) for name in given}


def _plain(name: str, value: object, hint: object) -> object:
    """Return a value as the setting has it: a list with commas between, a number that is one of
    several texts as a text."""
    texts = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
    if name in LISTED and isinstance(value, list) and texts:
        return ",".join(value)
    allowed = get_args(get_args(hint)[0]) if get_args(hint) else ()
    is_choice = bool(allowed) and get_origin(get_args(hint)[0]) is Literal
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_choice and is_number else value


def _packages(parsed: Mapping[str, Any], folder: Path) -> dict[str, object]:
    """Return the setting `packages` as the section of that name says it."""
    if PACKAGES not in parsed:
        return {}
    found = checked(section(parsed[PACKAGES], PACKAGES), PackagesSection, PACKAGES, of=THE_FILE)
    named = (found.wheels,) if isinstance(found.wheels, str) else found.wheels
    if not named or not all(named) or any("," in one for one in named):
        hint = 'give a folder, or files: wheels = ["one.whl"]; none has a comma in its name'
        raise InvalidError("no wheels are named", at=f"{PACKAGES}.wheels", hint=hint)
    given = {PACKAGES: ",".join(str(folder / one) for one in named)}
    changed(InstanceSettings(), given, page=INSTANCE)
    return dict(given)


def _names(said: object) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
        hint = 'give a list of names: without = ["bulk-import"]'
        raise InvalidError("not a list of stacks", at=WITHOUT, value=ascii(said)[:80], hint=hint)
    return tuple(said)
