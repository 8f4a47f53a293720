"""Pages that go into the package, so that `lakebed explain PAGE` has them where no docs are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakebed.model.type_names import SYNONYMS
from lakebed.model.types import KEY_TYPES, MAP_KEY_TYPES, VALUE_TYPES

DOCS = Path(__file__).resolve().parent
PACKAGED = DOCS.parent / "lakebed" / "pages"
REFERENCE = ("settings", "feed-settings", "instance", "python", "types", "findings")
DESIGN = ("processing",)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def packaged_pages(reference: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each by its file's name. reference: the pages made from the source."""
    messages = [name for name in reference if name.startswith("message-")]
    found = {name: reference[name] for name in (*(f"{n}.md" for n in REFERENCE), *messages)}
    for path in (*(DOCS / "design" / f"{name}.md" for name in DESIGN), *operating()):
        found[path.name] = path.read_text("utf-8")
    return {name: LINK.sub(r"\1", text) for name, text in found.items()}


def operating() -> list[Path]:
    """Return the pages of operators."""
    return sorted((DOCS / "operate").glob("*.md"))


def types_page(made: str) -> str:
    """Return the types of fields, and what other systems call them."""
    lines = [
        "# Types of fields",
        "",
        made,
        "| For | Types |",
        "|---|---|",
        f"| keys | {_names(KEY_TYPES)} |",
        f"| values | {_names(VALUE_TYPES)} `decimal128(p,s)` |",
        '| nested | `{"list": T}` `{"map": [K, T]}` `{"struct": [{"name": N, "type": T}, ...]}` |',
        f"| keys of a map | {_names(MAP_KEY_TYPES)} |",
        "",
        "`?` behind the type of a value makes it nullable: `fare:float64?`. In the shell a nested",
        'type is written as JSON: `--value \'tags:{"list": "string"}\'`. Why the list is closed:',
        "what is not on it cannot be given back exactly by every reader of Parquet.",
        "",
        "These names of SQL, pandas and Arrow are understood, in small and capital letters; others",
        "are refused with what to say instead.",
        "",
        "| Type | Also called |",
        "|---|---|",
    ]
    lines += [
        f"| `{type_}` | {_names(n for n, t in SYNONYMS.items() if t == type_)} |"
        for type_ in dict.fromkeys(SYNONYMS.values())
    ]
    lines.append("| `decimal128(12,2)` | `decimal(12,2)` `numeric(12,2)` |")
    return "\n".join(lines) + "\n"


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)
