"""Writes docs/reference from the source: what is written once is never written again by hand.

make docs
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from benchmarks.figure_pages.page import figure_pages, latest
from docs.async_twin import twins
from docs.cost_page import cost_page, measured_file
from docs.feed_page import feed_page
from docs.packaged_pages import PACKAGED, packaged_pages, types_page
from docs.protocol_drawings import protocol_drawings
from docs.python_page import python_page
from docs.whole_drawing import whole
from lakebed.cli.error_explanations import explanations
from lakebed.cli.main import program
from lakebed.config.instance import InstanceSettings
from lakebed.config.messages import KINDS as MESSAGES
from lakebed.config.messages import MESSAGE_BYTES_MAX, MessageKind, RangeOfMessage
from lakebed.config.sent.message_fields import fields_of_message
from lakebed.config.settings import TableSettings, describe
from lakebed.inspection.findings import KINDS
from lakebed.inspection.log_repair import LOG_DOES
from lakebed.inspection.repair import DOES
from lakebed.observe import events
from lakebed.observe.metrics import METRICS, NAMESPACE

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
HELP_COLUMNS = 96
MADE = "Made by `make docs` from `{source}`; change it there.\n"


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name."""
    return {
        "settings.md": settings_page(),
        "feed-settings.md": feed_page(MADE.format(source="lakebed/config")),
        "instance.md": instance_page(),
        "errors.md": errors_page(),
        "cli.md": cli_page(),
        "events.md": events_page(),
        "metrics.md": metrics_page(),
        "findings.md": findings_page(),
        "types.md": types_page(MADE.format(source="lakebed/model/types.py")),
        "python.md": python_page(MADE.format(source="lakebed/lake.py")),
        **{kind.page: message_page(kind) for kind in MESSAGES},
        **figure_pages(latest()),
        **protocol_drawings(),
        "whole.svg": whole(),
    }


MADE_AMONG_OTHERS: dict[str, Callable[[], str]] = {
    "lakebed/costs/measured.toml": lambda: measured_file({f.name: f.value for f in latest()}),
    "docs/operate/cost.md": lambda: cost_page(MADE.format(source="docs/cost_page.py")),
    **twins(),
}
"""Files in folders whose other files are written by hand: their paths, and what makes their text.
They are written in this order: the page of costs reads the measures."""


def settings_page() -> str:
    """Return the settings of a table."""
    lines = [
        "# Settings of a table",
        "",
        MADE.format(source="lakebed/config/settings.py"),
        "Set them when the table is created: `lakebed table create NAME ... --set NAME=VALUE`, or",
        "`lake.create_table(name, schema, settings={...})`; change them: `lakebed table set NAME",
        "NAME=VALUE`, or `table.change_settings(...)`; `lakebed table describe NAME` shows them.",
        "",
        "| Setting | Allowed | Default | Meaning |",
        "|---|---|---|---|",
    ]
    for name, allowed, default, meaning in describe(TableSettings):
        lines.append(f"| `{name}` | {allowed} | `{default}` | {meaning} |")
    return "\n".join(lines) + "\n"


def instance_page() -> str:
    """Return the settings of an instance."""
    lines = [
        "# Settings of an instance",
        "",
        MADE.format(source="lakebed/config/instance.py"),
        "Write them under `[instance]` in [lakebed.toml](../operate/lakebed-toml.md), or give them",
        "each time you [deploy](../operate/deploy.md), as `-c SETTING=VALUE`.",
        "",
        "| Setting | Allowed | Default | Meaning |",
        "|---|---|---|---|",
    ]
    for name, allowed, default, meaning in describe(InstanceSettings):
        lines.append(f"| `{name}` | {allowed} | `{default}` | {meaning} |")
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return every error: cause, what is done, what you can do."""
    lines = [
        "# Errors",
        "",
        MADE.format(source="lakebed/errors.py` and `lakebed/feed_errors.py"),
        "An error is named by what to do next: its kind is for programs, its code for you.",
        "The exit code of `lakebed` is the kind's; 0: success, 1: a bug, 130: stopped by you.",
        "`lakebed explain CODE` prints the same.",
        "",
    ]
    for one in explanations():
        level = "##" if one.code == one.kind else "###"
        kind = "" if one.code == one.kind else f"kind `{one.kind}`, "
        lines += [
            f"{level} {one.code}",
            "",
            f"({kind}exit code {one.exit_code})",
            "",
            f"- Cause: {one.cause}",
            f"- What is done: {one.done}",
            f"- What you can do: {one.can_do}",
            "",
        ]
    return "\n".join(lines)


def cli_page() -> str:
    """Return the help of every command."""
    lines = ["# The command", "", MADE.format(source="lakebed/cli")]
    for path, command in commands("lakebed", program):
        context = click.Context(
            command,
            info_name=path,
            terminal_width=HELP_COLUMNS,
            max_content_width=HELP_COLUMNS,
        )
        lines += [f"## {path}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, each with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from commands(f"{path} {name}", command.commands[name])


def events_page() -> str:
    """Return every event of the log, with the facts that the source gives it."""
    lines = [
        "# Events",
        "",
        MADE.format(source="lakebed/observe/events.py"),
        "One line per unit of work, at its end, in the logger `lakebed`; `--verbose` shows them.",
        "Counts, ids and sizes only: never rows, keys or payloads.",
        "",
        "| Event | Says | Facts |",
        "|---|---|---|",
    ]
    facts = facts_emitted()
    for name, meaning in events.MEANINGS.items():
        listed = ", ".join(f"`{fact}`" for fact in facts.get(name, []))
        lines.append(f"| `{name}` | {meaning} | {listed} |")
    return "\n".join(lines) + "\n"


def facts_emitted() -> dict[str, list[str]]:
    """Return the facts of each event, as the calls of `events.emit` in the source name them."""
    found: dict[str, list[str]] = {}
    rooms = ("lakebed", "lambdas")
    for path in sorted(file for room in rooms for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "events.emit"):
                continue
            name = getattr(events, ast.unparse(node.args[0]).removeprefix("events."))
            known = found.setdefault(name, [])
            known += [k.arg for k in node.keywords if k.arg and k.arg not in known]
    return found


def metrics_page() -> str:
    """Return every metric: what it counts, and who is called when."""
    lines = [
        "# Metrics",
        "",
        MADE.format(source="lakebed/observe/metrics.py"),
        f"In CloudWatch under `{NAMESPACE}`, by `instance`; where it says so, by `table` too. Each",
        "is read off lines of the [log](events.md). The dashboard `lakebed-INSTANCE-dashboard`",
        "shows all of them, and what SQS reports of queues.",
        "",
        "| Metric | Unit | Says | By table | Alarm |",
        "|---|---|---|---|---|",
    ]
    for metric in METRICS:
        alarm = metric.without_alarm and f"none: {metric.without_alarm}"
        if metric.alarm is not None:
            page = metric.alarm.page.removeprefix("docs/")
            least = f"{metric.alarm.threshold:g} or more in {metric.alarm.minutes} minutes"
            alarm = f"[{least}](../{page})"
        by_table = "yes" if metric.by_table else ""
        unit = f"{metric.unit}, {metric.statistic.lower()}"
        lines.append(f"| `{metric.name}` | {unit} | {metric.meaning} | {by_table} | {alarm} |")
    return "\n".join(lines) + "\n"


def findings_page() -> str:
    """Return everything that fsck can find."""
    lines = [
        "# Findings of fsck",
        "",
        MADE.format(source="lakebed/inspection/findings.py"),
        "`lakebed fsck` changes nothing. Damage: something that was committed is wrong, gone,",
        "or cannot be read, and the exit code is 7. Leftover: remains of a killed worker, which no",
        "reader sees. Notice: worth knowing, perhaps work in progress.",
        "",
        "| Finding | Severity | Means | What is safe to do | `--repair` |",
        "|---|---|---|---|---|",
    ]
    for code, kind in KINDS.items():
        mended = kind.repair or "no"
        lines.append(f"| `{code}` | {kind.severity} | {kind.means} | {kind.safe} | {mended} |")
    lines += [
        "",
        "What `lakebed fsck --repair` does, when it has shown the plan and got your consent. A",
        "table whose log or state is damaged is left alone: its cache may be the only whole state.",
        "",
    ]
    lines += [f"- {action}: {does}." for action, does in DOES.items()]
    lines += [
        "",
        "What it does about a log that has lost entries, only when asked for by name:",
        "`lakebed fsck TABLE --repair --rebuild-log`, or `--accept-loss`.",
        "",
    ]
    lines += [f"- {action}: {does}." for action, does in LOG_DOES.items()]
    return "\n".join(lines) + "\n"


SENDING = {
    "query": """\
## Asking and waiting

Who waits for the answer invokes a function. It gives `id`, `table`, `rows` and either `format` and
`data`, or `manifest`: the address of a file of JSON in S3 that names the result's files. What can
never work is answered by `error` and `reason`. It takes `lambda:InvokeFunction` on the function,
and `s3:GetObject` on the bucket of results.

```sh
aws lambda invoke --function-name lakebed-INSTANCE-query-answer \\
  --cli-binary-format raw-in-base64-out --payload file://query.json answer.json
```

## Asking and coming back

Who does not wait sends it to a queue; then the result is always written down. `lakebed jobs` says
when it is there, and the function, asked the same, where. It takes `sqs:SendMessage` on the queue.

```sh
aws sqs send-message --message-group-id report-7 --message-body file://query.json \\
  --queue-url https://sqs.REGION.amazonaws.com/ACCOUNT/lakebed-INSTANCE-query.fifo
lakebed --at aws:INSTANCE jobs trips --job report-7
```

S3 deletes results after [`results_days`](instance.md).
"""
}
"""How messages of a kind are sent, where its page describes it."""


def message_page(kind: MessageKind) -> str:
    """Return what may stand in a kind of message."""
    lines = [
        f"# Message: {kind.name}",
        "",
        MADE.format(source="lakebed/config/messages.py"),
        f"{kind.model.__doc__} A JSON object of at most {MESSAGE_BYTES_MAX:,} bytes, without",
        "fields of other names. All that is wrong with one is said at once; where, shows",
        "[the page of messages](../design/messages.md). This one is allowed:",
        "",
        "```json",
        kind.example,
        "```",
        "",
        "| Field | Allowed | Required | Meaning |",
        "|---|---|---|---|",
    ]
    for name, allowed, required, meaning in fields_of_message(kind.model):
        lines.append(f"| `{name}` | {allowed} | {'yes' if required else 'no'} | {meaning} |")
    if "ranges" in kind.model.model_fields:
        ends = ", ".join(f"`{name}`" for name in RangeOfMessage.model_fields)
        lines += [
            "",
            f"A range has {ends}. {RangeOfMessage.__doc__} Half open unless it says otherwise.",
        ]
    lines += ["", SENDING[kind.name].rstrip()] if kind.name in SENDING else []
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all pages."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    for name, text_of in MADE_AMONG_OTHERS.items():
        (ROOT / name).write_text(text_of(), encoding="utf-8")
        print(f"wrote {name}")
    PACKAGED.mkdir(exist_ok=True)
    for name, text in packaged_pages(pages()).items():
        (PACKAGED / name).write_text(text, encoding="utf-8")
        print(f"wrote lakebed/pages/{name}")


if __name__ == "__main__":
    main()
