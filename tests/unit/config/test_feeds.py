"""A file of feeds: what it may say, and what is answered to what it may not."""

import pytest

from lakebed.config.feeds import Feed, feeds_of
from lakebed.errors import InvalidError


def test_feeds_come_in_their_order_with_defaults() -> None:
    text = '[feed.b]\nfiles = "b*"\n[feed.a]\nfiles = "a*"\nversion = 3\nrotate_bytes = 10\n'
    assert feeds_of(text) == [
        Feed(name="b", files="b*", version=1, rotate_bytes=64 << 20),
        Feed(name="a", files="a*", version=3, rotate_bytes=10),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("feed", "no TOML"),
        ("", r"\[feed.NAME\]"),
        ("[feed]", r"\[feed.NAME\]"),
        ("feed = 3", r"\[feed.NAME\]"),
        ("[feeds.a]", "did you mean 'feed'"),
        ("[feed]\na = 3", r"write \[feed.a\]"),
        ("[feed.a]", "say where"),
        ('[feed.a]\nfile = "x"', "at=feed.a.file.*did you mean 'files'"),
        ("[feed.a]\nfiles = 3", "files"),
        ('[feed.a]\nfiles = ""', "files"),
        ('[feed.a]\nfiles = "x"\nversion = 0', "version"),
        ('[feed.a]\nfiles = "x"\nrotate_bytes = 0', "rotate_bytes"),
        (f'[feed.{"a" * 56}]\nfiles = "x"', "not a table name"),
        ('[feed.No]\nfiles = "x"', "not a table name"),
    ],
)
def test_what_it_may_not_say_is_answered_with_what_it_may(text: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        feeds_of(text)
