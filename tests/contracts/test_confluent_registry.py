"""A registry on the web that is slow, wrong, hostile or away: what of it is an answer, and what is
not."""

import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.system import SystemClock
from lakebed.backends.web import schema_registry as module
from lakebed.backends.web.asking import WebServer
from lakebed.backends.web.schema_registry import TRIES_MAX, ConfluentSchemaRegistry
from lakebed.errors import DeniedError, InvalidError, UnavailableError
from lakebed.ports.clock import Clock
from lakebed.ports.schema_registry import REFERENCES_MAX
from lakebed.ports.secrets import Secret
from tests.servers.confluent import ConfluentServer, Misbehave, confluent_server, drip, reply

Handler = BaseHTTPRequestHandler


@pytest.fixture
def server() -> Iterator[ConfluentServer]:
    with confluent_server() as running:
        running.register('"long"')
        yield running


def registry_of(
    server: ConfluentServer, clock: Clock | None = None, path: str = "", **said: object
) -> ConfluentSchemaRegistry:
    clock = clock or VirtualClock()
    url = server.url + path
    made = WebServer(url, clock=clock, **said)  # type: ignore[arg-type]  # as they come
    return ConfluentSchemaRegistry(made, clock)


def answering(status: int, body: bytes = b"", **headers: str) -> Misbehave:
    def misbehave(handler: Handler) -> bool:
        reply(handler, status, body, **headers)
        return True

    return misbehave


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 408])
def test_a_server_that_fails_is_asked_again_and_then_is_away(
    server: ConfluentServer, status: int
) -> None:
    server.misbehave = answering(status)
    clock = VirtualClock()
    with pytest.raises(UnavailableError, match=str(status)):
        registry_of(server, clock).schema(1)
    assert len(server.asked) == TRIES_MAX
    assert clock.monotonic() == pytest.approx(0.6), "it waits, and longer each time"


def test_a_server_that_fails_once_is_an_answer(server: ConfluentServer) -> None:
    def once(handler: Handler) -> bool:
        server.misbehave = None
        return answering(503)(handler)

    server.misbehave = once
    found = registry_of(server).schema(1)
    assert found is not None
    assert found.text == '"long"'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>sign in</html>",
        b"{",
        b"[]",
        b"5",
        b"\xff\xfe",
        b"{}",
        b'{"schema": 5}',
        b'{"schema": null}',
        b'{"schema": "a", "references": [{"subject": "b"}]}',
        b'{"schema": "a", "references": [{"subject": "b", "version": -1}]}',
        b'{"schema": "a", "references": [' + b'{"subject":"b","version":1},' * 200 + b"5]}",
        b'{"schema": "a", "schemaType": 5}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_of_a_registry_is_none(server: ConfluentServer, body: bytes) -> None:
    server.misbehave = answering(200, body)
    with pytest.raises(UnavailableError, match="no clear answer"):
        registry_of(server).schema(1)


@pytest.mark.parametrize(
    "body", [b"", b"nginx", b'{"error_code": 404}', b'{"error_code": "40403"}', b"[" * 100_000]
)
def test_only_the_registry_itself_can_say_that_it_does_not_know(
    server: ConfluentServer, body: bytes
) -> None:
    server.misbehave = answering(404, body)
    with pytest.raises(UnavailableError):
        registry_of(server).schema(1)
    server.misbehave = answering(404, b'{"error_code": 40403, "message": "Schema not found"}')
    assert registry_of(server).schema(1) is None


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_denied_at_once(server: ConfluentServer, status: int) -> None:
    server.misbehave = answering(status)
    with pytest.raises(DeniedError, match="refuses our credentials"):
        registry_of(server).schema(1)
    assert len(server.asked) == 1


def test_a_login_is_sent_and_shown_nowhere(server: ConfluentServer) -> None:
    server.login = ("feed", "p:\u00e4ss")
    right = registry_of(server, user="feed", password=Secret("p:\u00e4ss"))
    assert right.schema(1) is not None
    wrong = registry_of(server, user="feed", password=Secret("hunter2"))
    with pytest.raises(DeniedError) as caught:
        wrong.schema(1)
    assert "hunter2" not in repr(caught.value.__dict__) + str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: ConfluentServer, status: int) -> None:
    with confluent_server() as other:
        other.register('"string"')
        server.misbehave = answering(status, Location=f"{other.url}/schemas/ids/1")
        with pytest.raises(InvalidError, match="another address"):
            registry_of(server, user="feed", password=Secret("s")).schema(1)
        assert other.asked == []


def test_another_refusal_is_final(server: ConfluentServer) -> None:
    server.misbehave = answering(422)
    with pytest.raises(InvalidError, match="refuses the question"):
        registry_of(server).schema(1)


@pytest.mark.parametrize("how", ["silent", "head", "body", "headers"])
def test_a_server_that_never_ends_is_away(
    server: ConfluentServer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(module, "FIRST_WAIT_SECONDS", 0.01)
    ended = threading.Event()

    def misbehave(handler: Handler) -> bool:
        match how:
            case "silent":
                ended.wait(5)
            case "head":
                drip(handler, b"HTTP/1.1 200 O", b"K", every=0.02)
            case "headers":
                drip(handler, b"HTTP/1.1 200 OK\r\nX: ", b"a", every=0.02)
            case "body":
                drip(handler, b"HTTP/1.1 200 OK\r\n\r\n", b" ", every=0.02)
        return True

    server.misbehave = misbehave
    begun = time.monotonic()
    try:
        with pytest.raises(UnavailableError, match="no answer"):
            registry_of(server, SystemClock()).schema(1)
        assert time.monotonic() - begun < 3
    finally:
        ended.set()


def test_a_question_has_a_bound_in_time_however_much_a_schema_refers_to(
    server: ConfluentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUESTION_SECONDS", 0.3)

    def slow(handler: Handler) -> bool:
        time.sleep(0.05)
        return False

    for number in range(50):
        refers = (("s", number),) if number else ()
        server.register(f'"{number}"', subject="s", references=refers)
    server.misbehave = slow
    with pytest.raises(UnavailableError):
        registry_of(server, SystemClock()).newest("s")
    assert len(server.asked) < 10


def test_an_answer_that_is_too_large_is_none(
    server: ConfluentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCHEMA_BYTES_MAX", 10_000)

    def endless(handler: Handler) -> bool:
        drip(handler, b"HTTP/1.1 200 OK\r\n\r\n", b" " * 5_000, every=0)
        return True

    server.misbehave = endless
    with pytest.raises(UnavailableError, match="more than 10,000 bytes"):
        registry_of(server).schema(1)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"schema": "whole"}',
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n{}",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    ],
)
def test_broken_http_is_no_answer(server: ConfluentServer, sent: bytes) -> None:
    def misbehave(handler: Handler) -> bool:
        handler.wfile.write(sent)
        return True

    server.misbehave = misbehave
    with pytest.raises(UnavailableError):
        registry_of(server).schema(1)


def test_a_server_that_is_not_there_is_away() -> None:
    with confluent_server() as server:
        pass
    with pytest.raises(UnavailableError, match="no answer"):
        registry_of(server).schema(1)
    clock = VirtualClock()
    nowhere = WebServer("https://registry.invalid", clock=clock)
    with pytest.raises(UnavailableError):
        ConfluentSchemaRegistry(nowhere, clock).schema(1)


def test_a_schema_comes_with_all_that_it_refers_to_each_behind_what_it_needs(
    server: ConfluentServer,
) -> None:
    server.register('"money"', subject="money")
    server.register('"money 2"', subject="money")
    server.register('"item"', subject="a b/item", references=(("money", 1),))
    id_ = server.register('"order"', subject="o", references=(("a b/item", 1), ("money", 1)))
    found = registry_of(server).schema(id_)
    assert found is not None
    assert found.references == ('"money"', '"item"')
    assert server.asked.count("/subjects/money/versions/1") == 1


def test_a_schema_that_refers_to_what_is_not_there_or_to_too_much_is_unknown(
    server: ConfluentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = server.register('"order"', subject="o", references=(("money", 1),))
    for number in range(REFERENCES_MAX + 1):
        refers = (("s", number),) if number else ()
        server.register(f'"{number}"', subject="s", references=refers)
    deep = server.register('"deep"', references=(("s", REFERENCES_MAX + 1),))
    registry = registry_of(server)
    assert [registry.schema(id_) for id_ in (broken, deep)] == [None, None]
    assert registry.newest("s") is not None
    monkeypatch.setattr(module, "SCHEMA_BYTES_MAX", 300)
    assert registry.newest("s") is None


def test_schemas_that_refer_to_each_other_end(server: ConfluentServer) -> None:
    server.register('"a"', subject="a", references=(("b", 1),))
    server.register('"b"', subject="b", references=(("a", 1),))
    assert registry_of(server).newest("a") is not None


def test_a_registry_may_lie_below_a_path(server: ConfluentServer) -> None:
    server.misbehave = answering(404, b'{"error_code": 40403}')
    registry_of(server, path="/apis/ccompat/v7/").schema(1)
    assert server.asked == ["/apis/ccompat/v7/schemas/ids/1"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h",
        "file:///etc/passwd",
        "h:8081",
        "https://",
        "https://u:p@h",
        "https://h?a=b",
        "https://h#a",
        "https://h:99999",
        "https://h:x",
        "https://h\r\nX: y",
        "https://[::1",
        "",
    ],
)
def test_only_plain_addresses_are_asked(url: str) -> None:
    with pytest.raises(InvalidError, match="not an address"):
        WebServer(url, clock=VirtualClock())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key, that no machine trusts."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "registry.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return path


def test_certificates_are_checked(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with confluent_server(context) as server:
        server.register('"long"')
        trusting = registry_of(server, ca_file=str(certificate))
        assert trusting.schema(1) is not None
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            registry_of(server, user="feed", password=Secret("s")).schema(1)
        server.url = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            registry_of(server, ca_file=str(certificate)).schema(1)
    assert len(server.asked) == 1


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    for name in ("missing.pem", "none.pem"):
        with pytest.raises(InvalidError, match="no certificates to trust"):
            WebServer("https://h", clock=VirtualClock(), ca_file=str(tmp_path / name))
