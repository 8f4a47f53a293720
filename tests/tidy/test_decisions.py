"""Each decision has a number of its own, the same in its name and its title."""

from tests.tidy.source import ROOT

PAGES = sorted((ROOT / "docs/decisions").glob("*.md"))


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [page.name[:4] for page in PAGES]
    assert numbers == [f"{number:04}" for number in range(1, len(PAGES) + 1)]
    titles = [page.read_text("utf-8").partition(":")[0] for page in PAGES]
    assert titles == [f"# {number}" for number in numbers]
