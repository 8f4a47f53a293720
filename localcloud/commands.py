"""`python -m localcloud`: the deployed templates on this machine, without an account."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from lakebed.cli.program import Program, Session, pass_session
from lakebed.cli.work import stop_signals
from lakebed.errors import InvalidError

FOLDER = "local-cloud"


@click.group(
    cls=Program,
    examples="""
    python -m localcloud up dev
    eval "$(python -m localcloud env)" && lakebed --at dev status
    python -m localcloud advance 3600
    """,
)
def program() -> None:
    """Run the templates of an instance on this machine, as AWS would."""


_folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(FOLDER),
    show_default=True,
    metavar="PATH",
    help="Of the local cloud: what it holds, its logs.",
)


@program.command(
    examples="""
    python -m localcloud up dev
    python -m localcloud up dev -c data_kept=false
    python -m localcloud up dev --assembly cdk.out
    """,
)
@click.argument("instance")
@_folder_option
@click.option(
    "--assembly",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="What `cdk synth` wrote. Else app.py of this folder is synthesized for this machine.",
)
@click.option(
    "-c", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the instance."
)
@pass_session
def up(
    session: Session,
    *,
    instance: str,
    folder: Path,
    assembly: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Deploy INSTANCE to an emulator of AWS on this machine and run it, until Ctrl-C.

    Functions run as their templates say: in processes of their own, with their role's permissions.
    What the instance holds is there again when it is started again.
    """
    from lakebed.backends.system.clock import SystemClock
    from lakebed.config.instance import instance_id
    from localcloud.cloud import LocalCloud
    from localcloud.session import serve
    from localcloud.templates.synthesis import synthesize

    instance_id(instance)
    folder.mkdir(parents=True, exist_ok=True)
    if assembly is None:
        assembly = folder / "assembly"
        if not session.as_json:
            click.echo("synthesizing the templates: half a minute", err=True)
        context = dict(map(_setting, settings))
        synthesize(Path(), assembly, {"architecture": "machine", **context, "instance": instance})
    if not session.as_json:
        click.echo(f"deploying {instance}", err=True)
    with (
        stop_signals() as stopped,
        LocalCloud(assembly, folder, clock=SystemClock(), kept=True) as cloud,
    ):
        functions = len(cloud.deployment.running.functions)
        at = "" if folder == Path(FOLDER) else f" --folder {shlex.quote(str(folder.absolute()))}"
        session.give(
            {"instance": instance, "functions": functions, "environment": cloud.environment()},
            f"{instance} is up: {functions} functions, logs in {folder}/logs\n"
            "in another shell, in this folder: "
            f'eval "$(python -m localcloud env{at})" && lakebed --at {instance} status',
        )
        for line in serve(cloud, folder, stopped=stopped):
            click.echo(f"not taken down: {line}", err=True)


@program.command(examples="python -m localcloud status")
@_folder_option
@pass_session
def status(session: Session, *, folder: Path) -> None:
    """Show queues, schedules, alarms and the latest failures."""
    from localcloud.control import ask

    found = ask(folder, "status")
    session.give(found, "\n".join(_status_lines(found)))


@program.command(examples='eval "$(python -m localcloud env)"')
@_folder_option
@pass_session
def env(session: Session, *, folder: Path) -> None:
    """Print the variables that lead `lakebed --at INSTANCE` and other programs to it."""
    from localcloud.control import ask

    variables = ask(folder, "status")["environment"]
    session.give(variables, "\n".join(f"export {k}='{v}'" for k, v in variables.items()))


@program.command(examples="python -m localcloud advance 3600")
@click.argument("seconds", type=click.FloatRange(min=0))
@_folder_option
@pass_session
def advance(session: Session, *, seconds: float, folder: Path) -> None:
    """Let SECONDS pass at once: schedules fire, messages come back, garbage grows old."""
    from localcloud.control import ask

    ask(folder, "advance", seconds=seconds)
    session.give({"seconds": seconds}, f"{seconds:,.0f} seconds have passed")


@program.command(
    examples="""
    python -m localcloud fire
    python -m localcloud fire lakebed-dev-splitting
    """,
)
@click.argument("schedules", nargs=-1)
@_folder_option
@pass_session
def fire(session: Session, *, schedules: tuple[str, ...], folder: Path) -> None:
    """Let SCHEDULES fire now, all if none is named, and wait for what follows."""
    from localcloud.control import ask

    ask(folder, "fire", schedules=list(schedules))
    session.give({"schedules": list(schedules)}, "done")


@program.command(
    examples="""
    python -m localcloud invoke lakebed-dev-query-answer '{"table": "trips", "keys": ["b7"]}'
    """,
)
@click.argument("function")
@click.argument("event", default="{}")
@_folder_option
@pass_session
def invoke(session: Session, *, function: str, event: str, folder: Path) -> None:
    """Call FUNCTION with EVENT, a JSON text, and print what it answers."""
    from localcloud.control import ask

    try:
        given = json.loads(event)
    except ValueError as error:
        raise InvalidError("the event is not JSON", why=error, hint="see --help") from None
    answer = ask(folder, "invoke", function=function, event=given)
    if answer["error"]:
        facts = answer["error"]
        hint = f"its log is in {folder}/logs"
        raise InvalidError("the function failed", function=function, hint=hint, **facts)
    session.give(answer["value"], json.dumps(answer["value"]))


@program.command(examples="python -m localcloud down")
@_folder_option
@pass_session
def down(session: Session, *, folder: Path) -> None:
    """Take the stacks down, as `cdk destroy` does, and stop: what they retain stays in the folder.

    Ctrl-C stops it without taking anything down.
    """
    from localcloud.control import ask

    ask(folder, "down")
    session.give({"folder": str(folder)}, "taken down")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidError("not a setting", given=text, hint="write NAME=VALUE")
    return name, value


def _status_lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['ahead_seconds']:,.0f} seconds ahead of this machine", ""]
    for name, queue in found["queues"].items():
        lines.append(f"{name:48} {queue['visible']:6} waiting {queue['hidden']:6} in hand")
    for name, rule in found["schedules"].items():
        lines.append(f"{name:48} {rule['expression'] if rule['enabled'] else 'off'}")
    lines += [f"{name:48} {state}" for name, state in found["alarms"].items()]
    lines += [f"failed: {failure}" for failure in found["failures"]]
    return lines
