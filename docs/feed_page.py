"""The page of what a file of feeds may say: sources, feeds, connections, policies, presets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lakebed.config.decoders import DecoderSettings, TimeOf
from lakebed.config.definitions.connections import ConnectionSettings
from lakebed.config.definitions.custom_sources import CustomFeed, CustomSettings
from lakebed.config.definitions.decoder_registries import RegistryOf
from lakebed.config.definitions.routes import Route
from lakebed.config.feed_sources import SOURCES, KafkaLogin
from lakebed.config.feeds import FeedSettings
from lakebed.config.policies import DEFAULT_POLICY, PRESETS, Policy
from lakebed.config.settings import allowed_of

FIELD_SAID = re.compile(r"^(\w+(?:, \w+)*): ")
EXAMPLE = """\
[feed.orders]
source = { kafka = "b1:9096,b2:9096", topics = "orders\\\\..*", security = { mechanism =
    "SCRAM-SHA-512", user = "lake", password = "secret:kafka" } }
decoder = { format = "json", time = { path = "meta.ts", as = "ms" } }

[connection.orders-eu]
feed = "orders"
table = "orders"
where = "region = 'EU'"
columns = { id = "id", at = "meta.ts", amount = "payload.amount" }
policy = "Careful"

[connection.events]
feed = "orders"
route = { field = "type", tables = { new = "new_orders", paid = "payments" }, otherwise = "rest" }

[policy.Careful]
extends = "Strict"
errors_in_row_max = 3
schema = { column = "quarantine", type = "quarantine" }"""


def feed_page(made: str) -> str:
    """Return it. made: the sentence that says from what."""
    lines = [
        "# Settings of feeds",
        "",
        made,
        "A file of feeds is TOML. `lakebed feed apply FILE` makes the lake hold what it says;",
        "`--dry-run` says what would change. Names of feeds and connections are those that tables",
        "may have; a feed's landing table is called NAME_landing. A secret is named, never written",
        "down: `secret:NAME` is the variable LAKEBED_SECRET_NAME, the file `secrets/NAME` in the",
        "lake's directory (mode 0600), or lakebed/INSTANCE/NAME in Secrets Manager.",
        "",
        "```toml",
        EXAMPLE.replace(" mechanism =\n    ", " mechanism = "),
        "```",
        "",
        "## A feed: `[feed.NAME]`",
        "",
        '`files = "PATTERN"` is short for `source = { files = "PATTERN" }`.',
        "",
        *_table(FeedSettings),
        "",
        "## Its source: `source = { ... }`",
        "",
        "The field that a kind of source is called by says which one it is.",
        "",
    ]
    lines += _sources()
    lines += ["## Its decoder: `decoder = { ... }`", "", *_fields_said(DecoderSettings), ""]
    lines += ["`time` has these; one text is short for `{ path = ... }`.", ""]
    lines += [*_fields_said(TimeOf), ""]
    lines += ["`registry` has these; one text is short for `{ url = ... }`.", ""]
    lines += [*_fields_said(RegistryOf), ""]
    lines += ["## A connection: `[connection.NAME]`", "", *_table(ConnectionSettings), ""]
    lines += ["### Its route: `route = { ... }`", "", *_fields_said(Route), ""]
    lines += ["## A policy: `[policy.NAME]`", ""]
    lines += [
        f"`extends` names the policy whose parameters it has, `{DEFAULT_POLICY}` if left out.",
        "`schema = { column = ..., type = ... }` is short for `schema_column` and `schema_type`,",
        "and one word for both.",
        "",
        *_table(Policy),
        "",
        "## Policies that every lake has",
        "",
        f"| Policy | Differs from {DEFAULT_POLICY} in |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {_differences(name)} |" for name in PRESETS]
    return "\n".join(lines) + "\n"


def _sources() -> Iterator[str]:
    for form in SOURCES:
        yield from (f"### {form.kind}", "", str(form.__doc__), "", *_table(form), "")
    yield from ("### kind", "", f"{inspect.getdoc(CustomFeed)}".partition("\n")[0], "")
    yield '`source = { kind = "NAME", ... }`: fields beside these are settings of the adaptor.'
    yield "[A recipe](../change/source.md) has how to write one."
    yield from ("", *_table(CustomSettings), "")
    security = ", ".join(f"`{name}`" for name in KafkaLogin.__struct_fields__)
    yield from (f"`security` of kafka has {security}.", "")


def _table(form: type[msgspec.Struct]) -> Iterator[str]:
    yield "| Setting | Allowed | Default | Meaning |"
    yield "|---|---|---|---|"
    hints = get_type_hints(form, include_extras=True)
    for field in msgspec.structs.fields(form):
        hint = hints[field.name]
        meta = next((one for one in get_args(hint)[1:] if isinstance(one, Meta)), Meta())
        assert get_origin(hint) is Annotated, f"{field.name} is not described"
        yield (
            f"| `{field.encode_name}` | {allowed_of(hint)} | {_default(field)} |"
            f" {meta.description} |"
        )


def _fields_said(form: type[msgspec.Struct]) -> Iterator[str]:
    """Yield what a docstring says of each field, as items of a list."""
    item = ""
    for line in inspect.getdoc(form).splitlines()[1:]:
        if FIELD_SAID.match(line):
            yield from [item] if item else []
            item = FIELD_SAID.sub(lambda found: f"- `{found[1].rstrip('_')}`: ", line)
        elif item and line.strip():
            item += " " + line.strip()
    yield item


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return _shown(value) if value or isinstance(value, int | float) else "none"


def _differences(name: str) -> str:
    default = Policy()
    changes = [
        f"`{parameter}` = {_shown(value)}"
        for parameter, value in PRESETS[name].items()
        if value != getattr(default, parameter)
    ]
    return ", ".join(changes) or "nothing"


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever a setting is
    if isinstance(value, msgspec.Struct):
        return "none"
    return f"`{msgspec.json.encode(value).decode()}`" if value != () else "none"
