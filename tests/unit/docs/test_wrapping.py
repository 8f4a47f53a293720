"""Pages are wrapped, and say the same afterwards."""

from pathlib import Path

import pytest

from docs.wrapping import COLUMNS_MAX, main, wrapped

LONG = (
    "Some words about a `command --with options` and [a link](to/a/page.md) that go on and on. " * 3
)


@pytest.mark.parametrize("first", ["", "- ", "12. ", "   "])
def test_a_long_paragraph_is_wrapped_and_keeps_its_words_and_its_indent(first: str) -> None:
    lines = wrapped(f"{first}{LONG}").split("\n")
    assert len(lines) > 2
    assert max(map(len, lines)) <= COLUMNS_MAX
    assert " ".join(" ".join(lines).split()) == f"{first}{LONG}".strip()
    assert all(line.startswith(" " * len(first)) for line in lines[1:])


@pytest.mark.parametrize(
    "block",
    ["| " + LONG + "|", "# " + LONG, f"```text\n{LONG}\n```", "    " + LONG, "two\nshort lines"],
)
def test_what_is_no_long_prose_stays_as_it_is(block: str) -> None:
    assert wrapped(block) == block


def test_code_between_backticks_stays_in_one_line() -> None:
    page = "word " * 17 + "`two words and three more`" + " word" * 9
    assert "`two words and three more`" in wrapped(page)


def test_no_line_begins_with_what_would_begin_something_else() -> None:
    page = ("a sum of 1 - 2 and 3. and # and > " * 12).strip()
    assert all(line[0] not in "-#>3" for line in wrapped(page).split("\n"))


def test_lists_stay_lists_and_paragraphs_paragraphs() -> None:
    page = f"{LONG}\n\n- {LONG}\n- short\n\n{LONG}\n"
    lines = wrapped(page).split("\n")
    assert [line[:7] for line in lines if line.startswith("-")] == ["- Some ", "- short"]
    assert lines.count("") == 3


def test_a_page_that_is_wrapped_stays_as_it_is() -> None:
    once = wrapped(f"{LONG}\n\n1. {LONG}\n")
    assert wrapped(once) == once


def test_the_program_says_what_it_wrapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, short = tmp_path / "long.md", tmp_path / "short.md"
    long.write_text(LONG)
    short.write_text("short\n")
    main([str(long), str(short)])
    assert capsys.readouterr().out == f"wrapped {long}\n"
    assert (long.read_text(), short.read_text()) == (wrapped(LONG), "short\n")
