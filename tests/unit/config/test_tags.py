import pytest

from lakebed.config.deployments.tags import CHARACTERS_MAX, TAGS_MAX, checked_tags
from lakebed.errors import InvalidError


def test_tags_that_every_service_takes_are_taken() -> None:
    tags = {"team": "data", "cost-center": "a/b:c=1+2@x.y", "Stage of life": "", "größe": "9"}
    assert checked_tags(tags) == tags


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ({"aws:team": "x"}, "begin with something else than aws: or lakebed:"),
        ({"AWS:team": "x"}, "reserved"),
        ({"lakebed:instance": "other"}, "reserved"),
        ({"": "x"}, "not the name of a tag"),
        ({"a" * 129: "x"}, "1 to 128"),
        ({"a;b": "x"}, "not the name of a tag"),
        ({" team": "x"}, "not the name of a tag"),
        ({"team\n": "x"}, "not the name of a tag"),
        ({"team": "x" * 257}, "not the value of a tag"),
        ({"team": "a,b"}, "not the value of a tag"),
        ({"team": "x "}, "not the value of a tag"),
        (
            {"cost": 1234},
            r'a tag is no text \(tag=\'cost\' value=1234\): give a text: cost = "1234"',
        ),
        ({"cost": True}, "a tag is no text"),
        ({"team": ["a"]}, "a tag is no text"),
        ({"Team": "a", "team": "b"}, r"tags=Team, team.*differ in case"),
        ({f"t{n}": "x" for n in range(TAGS_MAX + 1)}, f"at most {TAGS_MAX}"),
        ({f"t{n}": "x" * 250 for n in range(7)}, f"{CHARACTERS_MAX} characters in all"),
    ],
)
def test_others_are_refused_with_what_is_allowed(tags: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        checked_tags(tags)
