"""Secrets are read by name, and shown nowhere."""

import copy
import logging
import pickle
import traceback
from contextlib import suppress

import msgspec
import pytest
from botocore.exceptions import ClientError

from lakebed.errors import InvalidError, LakebedError
from lakebed.feed_errors import SecretMissingError
from lakebed.ports.secrets import SECRET_BYTES_MAX, Secret, Secrets
from tests.contracts.feeds.conftest import StoreSecret

HIDDEN = "hunter2-is-hidden"


@pytest.mark.parametrize(
    ("stored", "secret"),
    [
        (HIDDEN.encode(), HIDDEN),
        (b"two\nlines\n", "two\nlines"),
        (b"line\r\n", "line"),
        (b" spaces ", " spaces "),
        ("pässwörd".encode(), "pässwörd"),
    ],
)
def test_a_secret_is_read_as_it_was_stored(
    store_secret: StoreSecret, stored: bytes, secret: str
) -> None:
    assert store_secret("kafka-password", stored).read("kafka-password").reveal() == secret


def test_a_secret_that_is_not_there_is_named(store_secret: StoreSecret) -> None:
    secrets = store_secret("kafka", HIDDEN.encode())
    with pytest.raises(SecretMissingError, match="other"):
        secrets.read("other")


@pytest.mark.parametrize("stored", [b"\xff\xfe\xff", b"\n", b"x" * (SECRET_BYTES_MAX + 1)])
def test_what_cannot_be_a_secret_is_refused_and_not_shown(
    store_secret: StoreSecret, stored: bytes
) -> None:
    with suppress(ClientError):  # Secrets Manager takes no empty one
        secrets = store_secret("kafka", stored)
        refuses(secrets)


def refuses(secrets: Secrets) -> None:
    with pytest.raises(InvalidError, match="secret=kafka") as raised:
        secrets.read("kafka")
    text = "".join(traceback.format_exception(raised.value))
    assert "xxx" not in text
    assert "\\xff" not in text


@pytest.mark.parametrize("name", ["", "../kafka", "a/b", ".", "a b", "ä", "a\n", "1a", "x" * 64])
def test_what_is_no_name_is_refused_and_not_shown(store_secret: StoreSecret, name: str) -> None:
    with pytest.raises(InvalidError, match="not a name of a secret") as raised:
        store_secret("kafka", HIDDEN.encode()).read(name)
    assert not name.strip("./ \n") or f"={name}" not in str(raised.value)


def test_no_text_no_log_and_no_copy_shows_a_secret(
    store_secret: StoreSecret, caplog: pytest.LogCaptureFixture
) -> None:
    secret = store_secret("kafka", HIDDEN.encode()).read("kafka")
    logging.getLogger("lakebed").error("read %s, %r", secret, {"password": secret})
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret:>40}",
        f"{[secret]!r}",
        "%s" % secret,  # noqa: UP031 - that way, too
        repr(LakebedError("wrong", secret=secret)),
        str(LakebedError("wrong", secret=secret)),
        caplog.text,
    ]
    assert not [text for text in shown if HIDDEN in text]
    for write in (pickle.dumps, copy.deepcopy, msgspec.json.encode, msgspec.msgpack.encode):
        with pytest.raises((TypeError, NotImplementedError)):
            write(secret)
    assert not hasattr(secret, "__dict__")


def test_secrets_are_compared_by_what_they_are() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
