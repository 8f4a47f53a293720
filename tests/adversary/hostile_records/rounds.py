"""Rounds of hostile records: each is made of a seed, decoded at once, and looked at one by one."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakebed.decoding.decoder import DETAIL_CHARACTERS_MAX, Decoder
from tests.adversary.hostile_records.forms import Form
from tests.adversary.hostile_records.parsers import BAD, UNSURE
from tests.dsl.decoding import outcome_of, records_of

ROUND_RECORDS = 500
ALONE = 5
"""Of a round, that are decoded alone as well, and must become the same."""
ROUND_SECONDS_MAX = 60.0
PAYLOAD_BYTES_MAX = 20_000


@dataclass
class Seen:
    """What became of the records of some rounds. verdicts: how often, by code; `row` is one.

    unsure: records of which the parser knows nothing."""

    records: int = 0
    unsure: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)


class WrongError(Exception):
    """A record became something else than its parser says."""


def hostile_payloads(form: Form, rng: random.Random, count: int) -> list[bytes]:
    """Return records of a form: good ones, good ones that were damaged, and none at all."""
    return [_payload(form, rng)[:PAYLOAD_BYTES_MAX] for _ in range(count)]


def _payload(form: Form, rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.05:
        return rng.choice(form.good)
    if kind < 0.12:
        return rng.randbytes(rng.choice([0, 1, 2, 5, 20, 200]))
    if kind < 0.2:
        return b"".join(rng.choices([*form.pieces, *form.good], k=rng.randint(1, 6)))
    if kind < 0.25:
        return rng.choice(form.good) + rng.choice(form.good)
    if form.fresh is not None and kind < 0.6:
        return form.fresh(rng)
    data = bytearray(rng.choice(form.good))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        _damage(data, form, rng)
    return bytes(data)


def _damage(data: bytearray, form: Form, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(8):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1 if at < len(data):
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        case 2:
            del data[at : at + rng.randint(1, 4)]
        case 3:
            data[at:at] = rng.choice(form.pieces)
        case 4:
            del data[at:]
        case 5:
            data[at:at] = data[at : at + rng.randint(1, 12)] * rng.randint(1, 3)
        case 6:
            data[at : at + rng.randint(1, 4)] = rng.choice(form.pieces)
        case _:
            data[at:at] = rng.randbytes(rng.randint(1, 3))


def run_round(form: Form, decoder: Decoder, seed: int, count: int = ROUND_RECORDS) -> Seen:
    """Decode the records of a seed.

    Raises:
        WrongError: one is not what its parser says, or not the same alone; or it took too long.
    """
    rng = random.Random(f"{form.name} {seed}")
    payloads = hostile_payloads(form, rng, count)
    begun = time.monotonic()
    outcome = outcome_of(decoder.decode(records_of(payloads)))
    took = time.monotonic() - begun
    if took > ROUND_SECONDS_MAX:
        raise WrongError(f"{form.name}, seed {seed}: {took:.1f} s for {count} records")
    if any(len(detail) > DETAIL_CHARACTERS_MAX for detail in outcome.decoded.details.values()):
        raise WrongError(f"{form.name}, seed {seed}: a detail is too long")
    seen = Seen(records=count)
    for payload, fate in zip(payloads, outcome.fates, strict=True):
        _compare(form, seed, payload, fate, seen)
    for index in rng.sample(range(count), min(count, ALONE)):
        alone = outcome_of(decoder.decode(records_of([payloads[index]]))).fates[0]
        if isinstance(alone, dict) and "_position" in alone:
            alone["_position"] = index
        if repr(alone) != repr(outcome.fates[index]):
            raise WrongError(
                f"{form.name}, seed {seed}: {payloads[index][:300]!r} is {alone} alone, and"
                f" {outcome.fates[index]} among others"
            )
    return seen


def _compare(form: Form, seed: int, payload: bytes, fate: object, seen: Seen) -> None:
    wanted = form.parse(payload)
    seen.verdicts[fate if isinstance(fate, str) else "row"] += 1
    if wanted is UNSURE:
        seen.unsure += 1
        return
    is_same = isinstance(fate, str) if wanted is BAD else repr(fate) == repr(wanted)
    if not is_same:
        said = "no row" if wanted is BAD else wanted
        raise WrongError(
            f"{form.name}, seed {seed}: {payload[:300]!r} is {fate}; its parser says {said}"
        )


def run_rounds(forms: Sequence[Form], *, seed: int, count: int) -> dict[str, Seen]:
    """Decode `count` records, of all forms in turn. Raises: WrongError."""
    made = {form.name: (form, form.made(), Seen()) for form in forms}
    left = count
    while left > 0:
        for form, decoder, total in made.values():
            size = min(ROUND_RECORDS, left)
            if size <= 0:
                break
            seen = run_round(form, decoder, seed, size)
            total.records += seen.records
            total.unsure += seen.unsure
            total.verdicts.update(seen.verdicts)
            left -= size
        seed += 1
    return {name: total for name, (_, _, total) in made.items()}
