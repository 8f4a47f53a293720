"""Filters of frames, and who applies them."""

from typing import Any

FILTERS = {
    "from": ("all", "s >= 'm'"),
    "exact": ("latest", "k = '42'"),
    "folded": ("latest", "k >= '6' and n < 270"),
    "some": ("latest", "k in ('42', '15', 'no')"),
    "between": ("all", "s > '3' and s <= '70'"),
    "two keys": ("all", "s >= 'm' and i = 14"),
    "with a value": ("all", "s < 'm' and int32 >= 0 and text is not null"),
    "not": ("all", "s >= 'm' and not i = 14 and s <> 'n'"),
    "like": ("all", "s like '7%'"),
    "value": ("all", "uint8 < 100"),
    "either": ("all", "s < '1' or uint8 = 3"),
    "nothing": ("all", "s > 'a' and s < 'a'"),
}
"""What frames are filtered by, in words that Spark and we have: by us, by Spark when it has read
all, and by us again where it hands its filters over."""
NOT_NARROWED = {"like", "value", "either", "nothing"}
"""Those of which Spark hands nothing over that spares slices, or finds by itself that there is
nothing to read."""


def filter_steps(lake: str, line: str, filters: list[str]) -> list[dict[str, Any]]:
    ways: dict[str, dict[str, object]] = {"read": {"kind": "table", "pin_seconds": 0}}
    if line != "3.5":
        ways["load"] = {"kind": "format", "pin_seconds": "0"}
    if line == "4.1":
        ways["load"]["pushes"] = False
        ways["push"] = ways["load"] | {"pushes": True}
    slices = {"all": 15_000, "latest": 1_024}
    steps: list[dict[str, Any]] = []
    for name in filters:
        table, text = FILTERS[name]
        for way, how in ways.items():
            slice_bytes = slices[table] if way == "read" else str(slices[table])
            given = {"lake": lake, "table": table, "filter": text, "slice_bytes": slice_bytes}
            steps.append({"name": f"{way}, {name}", "do": "read", "from": how | given})
    return steps
