"""Reads what is to be deployed: the file of an instance, and what the command says beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakebed.config.accounts.quotas import check_quotas
from lakebed.config.deployments.instance_file import TAGS, WITHOUT, InstanceFile, read_instance_file
from lakebed.config.deployments.optional_stacks import stacks_of
from lakebed.config.deployments.tags import checked_tags
from lakebed.config.instance import Deployment, instance_id, instance_settings
from lakebed.errors import InvalidError

FILE = "file"
"""The key in a synthesis's context that holds the path of the instance's file."""


def deployment_of(context: Mapping[str, object]) -> Deployment:
    """Return what the context of a synthesis asks for. It overrides the file that it names. Names
    with one of `@:/` are not ours.

    Raises:
        InvalidError: no instance, or a wrong one; an unknown setting, or a wrong value; stacks that
            do not go without each other; more than the account has, where settings say what that
            is; wrong tags; a file that says any of these.
    """
    given = {name: value for name, value in context.items() if not set("@:/") & set(name)}
    path = given.pop(FILE, "")
    file = read_instance_file(Path(str(path))) if path else InstanceFile()
    name = given.pop("instance", file.name)
    if name is None:
        hint = "add `-c instance=NAME`, or `name` under [instance] in the file"
        raise InvalidError("no instance is named", hint=hint if path else "add `-c instance=NAME`")
    without = _listed(given.pop(WITHOUT)) if WITHOUT in given else list(file.without)
    tags = _tags(given.pop(TAGS)) if TAGS in given else dict(file.tags)
    settings = instance_settings({**file.settings, **given})
    deployment = Deployment(
        instance=instance_id(name),
        settings=settings,
        stacks=stacks_of(settings, without),
        tags=tags,
    )
    check_quotas(deployment)
    return deployment


def _listed(said: object) -> list[str]:
    """Return names with commas between, or in a list."""
    if isinstance(said, list):
        return [str(one) for one in said]
    return [one.strip() for one in str(said).split(",") if one.strip()]


def _tags(said: object) -> dict[str, str]:
    """Return tags as a command gives them: `team=data,stage=prod`, or a section of cdk.json."""
    if isinstance(said, Mapping):
        return checked_tags(said)
    parts = [one.partition("=") for one in _listed(said)]
    wrong = [key for key, equals, _ in parts if not equals]
    if wrong:
        hint = "write `-c tags=NAME=VALUE,NAME=VALUE`"
        raise InvalidError("not a tag", tag=ascii(wrong[0])[:80], hint=hint)
    return checked_tags({key: value for key, _, value in parts})
