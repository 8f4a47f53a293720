"""Plants damage in each kind of file of a lake: found, harmless or mended, never a silent answer.

    .venv/bin/python -m tests.adversary.corruptions --count 10000 --seed 1

One seed is one planting: one damage to one file of a copy of a small lake. Then whatever a user may
ask is asked, and held against what the lake was made of. A planting that is not as it should be is
printed with the command that plants it again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.adversary.corrupted_lake import Whole, kind_of
from tests.adversary.verdicts import GOOD

KINDS = ("bit", "byte", "page", "cut", "zeroed", "gone")
"""Of damage: a flipped bit, another byte, a page of zeros, the end cut off, all zeros, no file."""
PAGE_BYTES = 4_096
REPORTED_EVERY = 500
"""Plantings: progress is shown after each so many."""


class Planting(msgspec.Struct, frozen=True):
    """What came of one. kind: of the file. outcome: one of GOOD, or what went wrong."""

    seed: int
    kind: str
    damage: str
    file: str
    outcome: str
    why: str = ""


def damage(path: Path, kind: str, rng: random.Random) -> None:
    """Damage a file in place: who has it open sees that, too."""
    size = path.stat().st_size
    if kind == "gone" or not size:
        path.unlink()
        return
    at = rng.randrange(size)
    with path.open("r+b") as file:
        if kind == "cut":
            file.truncate(at)
            return
        length = 1
        if kind == "page":
            at -= at % PAGE_BYTES
            length = min(PAGE_BYTES, size - at)
        elif kind == "zeroed":
            at, length = 0, size
        file.seek(at)
        (byte,) = file.read(1)
        changed = {
            "bit": bytes((byte ^ 1 << rng.randrange(8),)),
            "byte": bytes((byte ^ rng.randrange(1, 256),)),
        }
        file.seek(at)
        file.write(changed.get(kind, bytes(length)))


def plant(whole: Whole, folder: Path, seed: int) -> Planting:
    """Damage one file of a copy of the lake, ask it everything, and judge the answers."""
    rng = random.Random(seed)
    lake = folder / f"{seed}"
    is_image = rng.random() < 0.4  # as a crash leaves it, with the files that SQLite writes ahead
    shutil.copytree(whole.crashed if is_image else whole.closed, lake)
    try:
        files = sorted(p.relative_to(lake).as_posix() for p in lake.rglob("*") if p.is_file())
        kinds = sorted({kind_of(file) for file in files} - {""})
        kind = rng.choice(kinds)
        file = rng.choice([file for file in files if kind_of(file) == kind])
        how = rng.choice(KINDS)
        is_in_use = rng.random() < 0.25 and not file.endswith(
            "-shm"
        )  # the kernel ends who reads on
        judged = whole.asked(
            lake, file, rng, in_use=is_in_use, hurt=lambda: damage(lake / file, how, rng)
        )
        return Planting(seed, kind, how, file, judged.outcome, judged.why)
    finally:
        shutil.rmtree(lake)


def plantings(count: int, seed: int) -> list[Planting]:
    """Plant so many, from a seed on. Reports progress on the standard error."""
    planted: list[Planting] = []
    with TemporaryDirectory(prefix="lakebed-corruptions-") as name:
        folder = Path(name)
        whole = Whole.made(folder)
        for one in range(seed, seed + count):
            planted.append(plant(whole, folder, one))
            if len(planted) % REPORTED_EVERY == 0:
                faults = len(bad(planted))
                sys.stderr.write(f"{len(planted):,} of {count:,} planted, {faults} faults\n")
    return planted


def table_of(planted: Sequence[Planting]) -> str:
    """Return counts by kind of file and of damage, then what went wrong, as lines."""
    counts = Counter((one.kind, one.damage) for one in planted)
    lines = [
        f"{'':<20}" + "".join(f"{how:>8}" for how in KINDS) + "".join(f"{g:>10}" for g in GOOD)
    ]
    for kind in sorted({one.kind for one in planted}):
        came = Counter(one.outcome for one in planted if one.kind == kind)
        cells = "".join(f"{counts[kind, how]:>8}" for how in KINDS)
        lines.append(f"{kind:<20}{cells}" + "".join(f"{came[good]:>10}" for good in GOOD))
    for one in bad(planted):
        again = f"-m tests.adversary.corruptions --count 1 --seed {one.seed}"
        lines.append(f"{one.outcome}: {one.damage} in {one.file}: {one.why[-600:]} ({again})")
    return "\n".join(lines)


def bad(planted: Sequence[Planting]) -> list[Planting]:
    """Return those that were neither found nor harmless nor mended."""
    return [one for one in planted if one.outcome not in GOOD]


def main() -> int:
    """Plant as the command line says; 1 if an answer of any was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--json", action="store_true", help="figures, for the benchmark")
    given = parser.parse_args()
    planted = plantings(given.count, given.seed)
    sys.stderr.write(f"seed {given.seed}\n{table_of(planted)}\n")
    if given.json:
        json.dump({"planted": len(planted), "silent": len(bad(planted))}, sys.stdout)
    return 1 if bad(planted) else 0


if __name__ == "__main__":
    sys.exit(main())
