"""No record ends a decoder's process, and each is what a small parser of our own says it is."""

import dataclasses
import random

import pytest

from tests.adversary.hostile_records.forms import forms
from tests.adversary.hostile_records.parsers import BAD, UNSURE
from tests.adversary.hostile_records.rounds import WrongError, hostile_payloads, run_round

pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf.message_factory")

FORMS = forms()
PARSED = sorted(name for name in FORMS if "container" not in name and "wide" not in name)


@pytest.mark.parametrize("name", FORMS)
def test_hostile_records_are_rows_or_verdicts_as_a_small_parser_says(name: str) -> None:
    form = FORMS[name]
    decoder = form.made()
    verdicts = set[str]()
    for seed in range(4):
        verdicts |= set(run_round(form, decoder, seed).verdicts)
    assert {"row", "unparsable"} <= verdicts


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_many_hostile_records(name: str) -> None:
    form = FORMS[name]
    decoder = form.made()
    for seed in range(1_000, 1_020):
        run_round(form, decoder, seed)


@pytest.mark.parametrize("name", PARSED)
def test_the_parsers_know_of_most_records_what_they_are(name: str) -> None:
    form = FORMS[name]
    payloads = hostile_payloads(form, random.Random(7), 1_000)
    found = [form.parse(payload) for payload in payloads]
    assert sum(one is UNSURE for one in found) < 300
    assert sum(one is BAD for one in found) > 300
    assert sum(isinstance(one, dict) for one in found) > 50
    assert all(isinstance(form.parse(good), dict) for good in form.good), "good ones are rows"


@pytest.mark.parametrize("name", PARSED)
def test_a_decoder_that_makes_another_row_is_found(name: str) -> None:
    form = FORMS[name]
    made = form.made()
    lying = dataclasses.replace(form, parse=lambda data: form.parse(data) and BAD)
    with pytest.raises(WrongError, match="its parser says"):
        run_round(lying, made, 1)
