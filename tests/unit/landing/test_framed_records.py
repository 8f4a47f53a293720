"""What comes through a socket is cut into whole records, however it comes."""

import random

import pytest

from lakebed.errors import CorruptError, InvalidError
from lakebed.landing.push.framed_records import FramedRecords, SocketFraming
from lakebed.landing.push.segments import ends_of_lengths, record_count

RECORDS = [b"a", b"", b"\xff\0", b"x" * 300, b"\r", b"last"]
FRAMED: dict[SocketFraming, bytes] = {
    "lines": b"".join(record + b"\n" for record in RECORDS),
    "lengths": b"".join(len(record).to_bytes(4, "big") + record for record in RECORDS),
}


@pytest.mark.parametrize("framing", FRAMED)
def test_records_are_whole_however_they_come(framing: SocketFraming) -> None:
    sent = FRAMED[framing]
    for seed in range(50):
        rng, records, got, at = random.Random(seed), FramedRecords(framing, 300), b"", 0
        while at < len(sent):
            size = rng.choice((1, 2, 7, 400))
            whole = records.take(sent[at : at + size])
            assert sent.startswith(got + whole)
            got += whole
            at += size
            assert records.is_between == (got == sent[:at])
        assert got == sent
        assert record_count(framing, got) == len(RECORDS)


@pytest.mark.parametrize("framing", FRAMED)
def test_a_record_that_is_too_large_is_refused_before_all_of_it_came(
    framing: SocketFraming,
) -> None:
    records = FramedRecords(framing, 10)
    assert records.take(FRAMED[framing][:6])
    with pytest.raises(InvalidError, match="too large"):
        records.take(FRAMED[framing][6:40])
    begun = b"x" * 11 if framing == "lines" else (11).to_bytes(4, "big")
    with pytest.raises(InvalidError, match="too large"):
        FramedRecords(framing, 10).take(begun)


def test_lengths_that_do_not_fit_are_no_records() -> None:
    assert ends_of_lengths(FRAMED["lengths"])[-1] == len(FRAMED["lengths"])
    for cut in (1, 3, 5):
        with pytest.raises(CorruptError, match="cut"):
            ends_of_lengths(FRAMED["lengths"][:-cut])
