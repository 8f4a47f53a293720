"""`lakebed policy`: what connections do when things go wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from lakebed.cli.feed_commands.definitions import show_dropped
from lakebed.cli.program import CommandGroup, Session, aligned, pass_session
from lakebed.errors import InvalidError


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed policy list
    lakebed policy create Careful --extends Strict --set errors_in_row_max=3
    lakebed policy drop Careful
    """,
)
def policy() -> None:
    """List, create and drop policies of feeds."""


@policy.command(
    name="list",
    examples="""
    lakebed policy list
    lakebed policy list Strict
    """,
)
@click.argument("name", required=False)
@pass_session
def list_(session: Session, name: str | None) -> None:
    """List all policies by what they differ in from FaultTolerant, or all parameters of NAME."""
    from lakebed.config.policies import DEFAULT_POLICY
    from lakebed.errors import did_you_mean
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).policies()
    values: dict[str, dict[str, Any]] = {n: msgspec.to_builtins(one) for n, one in found.items()}
    if name is not None:
        if name not in values:
            hint = did_you_mean(name, values, what="policy")
            raise InvalidError("no policy has this name", policy=ascii(name)[:80], hint=hint)
        rows = [(parameter, _shown(value)) for parameter, value in values[name].items()]
        session.give(values[name], aligned(("PARAMETER", "VALUE"), rows))
        return
    default = values[DEFAULT_POLICY]
    rows = [
        (of, ", ".join(f"{p}={_shown(v)}" for p, v in one.items() if v != default[p]) or "-")
        for of, one in values.items()
    ]
    session.give(values, aligned(("POLICY", "DIFFERS FROM FaultTolerant IN"), rows))


@policy.command(
    examples="""
    lakebed policy create Careful --extends Strict --set errors_in_row_max=3
    lakebed policy create Patient --set on_congestion='["spill", "backpressure"]'
    """
)
@click.argument("name")
@click.option("--extends", default="FaultTolerant", show_default=True, metavar="POLICY")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter, as in TOML."
)
@pass_session
def create(session: Session, name: str, *, extends: str, settings: tuple[str, ...]) -> None:
    """Create the policy NAME, or change it: it has what POLICY has, but for what is set.

    `lakebed explain feed-settings` lists all parameters.
    """
    from lakebed.feed import FeedDefinitions

    said = {"extends": extends, **_parameters(settings)}
    with session.open() as lake:
        plan = FeedDefinitions(lake).define("policy", name, said)
    done = {"create": "created", "change": "changed", "keep": "kept"}[plan.action]
    session.give(msgspec.to_builtins(plan), f"policy {name} {done}, version {plan.version}")


@policy.command(examples="lakebed policy drop Careful")
@click.argument("name")
@pass_session
def drop(session: Session, name: str) -> None:
    """Forget the policy NAME, which nothing names."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        show_dropped(session, FeedDefinitions(lake).drop_policy(name))


def _parameters(settings: Sequence[str]) -> dict[str, object]:
    """Return parameters by name, each value as TOML has it, or a word without its quotes."""
    found: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InvalidError("not a parameter", got=setting[:80], hint="write NAME=VALUE")
        if name in found:
            raise InvalidError("a parameter is set twice", parameter=name, hint="set it once")
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            found[name] = text
    return found


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return str(value) if isinstance(value, str) and value else text
