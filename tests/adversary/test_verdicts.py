"""A wrong answer is a fault, whatever is said after it."""

import pytest

from tests.adversary.verdicts import GOOD, Answer, Kind, verdict


def outcome(*kinds: Kind, is_mended: bool = False) -> str:
    return verdict([Answer(kind, "x") for kind in kinds], is_mended=is_mended).outcome


def test_right_answers_are_harmless_damage_or_a_state_that_was_made_anew() -> None:
    assert outcome() == "harmless"
    assert outcome(is_mended=True) == "mended"


def test_damage_that_is_reported_before_any_answer_is_wrong_is_found() -> None:
    assert outcome("report") == outcome("report", "report", is_mended=True) == "found"


@pytest.mark.parametrize("is_mended", [False, True])
def test_a_wrong_answer_is_silent_whatever_fsck_says_afterwards(is_mended: bool) -> None:
    assert outcome("wrong", is_mended=is_mended) == "silent"
    assert outcome("wrong", "report", is_mended=is_mended) == "silent"


def test_a_wrong_answer_behind_a_report_is_no_good_either() -> None:
    assert outcome("report", "wrong") == outcome("report", "wrong", "report") == "wrong"


def test_what_a_table_reports_that_no_damage_reached_is_wrong() -> None:
    answers = [Answer("report", "x", about="t")]
    assert verdict(answers, is_mended=False, unharmed=["u"]).outcome == "found"
    assert verdict(answers, is_mended=False, unharmed=["t"]).outcome == "silent"
    assert verdict([Answer("report", "x")], is_mended=False, unharmed=["t"]).outcome == "found"


def test_an_error_that_is_none_of_ours_is_no_report() -> None:
    assert outcome("report", "raw") == outcome("wrong", "raw") == "raw"


def test_faults_are_none_of_the_good() -> None:
    assert not {"silent", "wrong", "raw"} & set(GOOD)


def test_a_verdict_says_what_came_in_which_order() -> None:
    found = verdict([Answer("wrong", "3 rows"), Answer("report", "log-gap")], is_mended=False)
    assert found.why == "wrong: 3 rows; report: log-gap"
