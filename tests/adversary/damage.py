"""One random damage to one file of a lake, as a disk or an operator does it."""

import random
from pathlib import Path

PAGE_BYTES = 4_096


def damage_one(lake: Path, rng: random.Random) -> str:
    """Damage a file of a lake that no process has open. Returns what was done to which."""
    parts = [lake / "tables.sqlite", lake / "lakebed.json"]
    files = sorted(f for d in ("objects", "logs") for f in (lake / d).rglob("*") if f.is_file())
    file = rng.choice([*files, *files, *parts])
    data = bytearray(file.read_bytes())
    kind = rng.choice(["bit", "byte", "page", "cut", "zero", "gone"] if data else ["gone"])
    at = rng.randrange(len(data)) if data else 0
    match kind:
        case "bit":
            data[at] ^= 1 << rng.randrange(8)
        case "byte":
            data[at] = rng.randrange(256)
        case "page":
            start = at - at % PAGE_BYTES
            data[start : start + PAGE_BYTES] = bytes(len(data[start : start + PAGE_BYTES]))
        case "cut":
            del data[at:]
        case "zero":
            data[:] = bytes(len(data))
    if kind == "gone":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{kind} at {at} of {file.relative_to(lake)}"
