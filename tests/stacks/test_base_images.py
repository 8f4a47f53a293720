"""Base images are pinned by what a registry answers; here that is one of our own."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lakebed.errors import InvalidError, UnavailableError
from stacks import base_images
from stacks.base_images import BaseImage, digest_of, pin
from tests.tidy.source import ROOT

REPOSITORY, TAG, TOKEN = "docker/library/python", "3.14-slim", "let-me"


class Registry(ThreadingHTTPServer):
    """Answers for one tag. architectures: of its images. status: None: as it should."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.architectures = ["amd64", "arm64", "riscv64"]
        self.status: int | None = None
        self.told_digest: str | None = None
        self.realm = f"http://{self.name}/token"
        self.accepted: list[str] = []

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def body(self) -> bytes:
        platforms = [{"architecture": name, "os": "linux"} for name in self.architectures]
        listed = [{"digest": "sha256:0", "platform": platform} for platform in platforms]
        return json.dumps({"schemaVersion": 2, "manifests": listed}).encode()

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.body).hexdigest()}"


class _Answers(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/token":
            scope = parse_qs(asked.query)["scope"]
            assert scope == [f"repository:{REPOSITORY}:pull"]
            self._answer(200, json.dumps({"token": TOKEN}).encode())
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            asks = f'Bearer realm="{self.server.realm}",service="registry"'
            self._answer(401, b"{}", **{"WWW-Authenticate": asks})
        elif self.server.status is not None or asked.path != f"/v2/{REPOSITORY}/manifests/{TAG}":
            self._answer(self.server.status or 404, b"{}")
        else:
            self.server.accepted = (self.headers.get("Accept") or "").split(", ")
            told = self.server.told_digest or self.server.digest
            self._answer(200, self.server.body, **{"Docker-Content-Digest": told})

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def dockerfiles(registry: Registry, folder: Path, tag: str = TAG) -> list[Path]:
    paths = [folder / name for name in ("one", "two")]
    for path in paths:
        path.write_text(f"# base\nFROM {registry.name}/{REPOSITORY}:{tag}\n\nUSER 65534\n")
    return paths


def test_a_tag_is_pinned_to_the_index_that_it_names_and_again_when_it_names_another(
    registry: Registry, tmp_path: Path
) -> None:
    paths = dockerfiles(registry, tmp_path)
    assert len(pin(paths)) == 2
    line = f"FROM {registry.name}/{REPOSITORY}:{TAG}@{registry.digest}"
    for path in paths:
        assert path.read_text() == f"# base\n{line}\n\nUSER 65534\n"
    assert registry.accepted == list(base_images.INDEX_TYPES)  # else one architecture's image
    assert pin(paths) == []
    first = registry.digest
    registry.architectures.append("s390x")
    assert len(pin(paths)) == 2
    for path in paths:
        assert registry.digest in path.read_text()
        assert first not in path.read_text()


def test_what_a_registry_refuses_or_has_not_changes_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    paths = dockerfiles(registry, tmp_path)
    before = [path.read_text() for path in paths]

    def refused(error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            pin(paths)
        assert [path.read_text() for path in paths] == before

    registry.status = 503
    refused(UnavailableError, "a registry is busy")
    registry.status = 404
    refused(InvalidError, "a registry has no such image")
    registry.status = None
    registry.told_digest = f"sha256:{'0' * 64}"
    refused(InvalidError, "an image's digest is wrong")
    registry.told_digest = None
    registry.architectures = ["amd64"]
    refused(InvalidError, "not made for each architecture.*arm64")
    registry.realm = "http://192.0.2.1/token"
    refused(InvalidError, "an unsafe address")


def test_a_registry_that_is_not_there_is_told(tmp_path: Path) -> None:
    with Registry() as gone:
        image = BaseImage(gone.name, REPOSITORY, TAG)
    with pytest.raises(UnavailableError, match="a registry does not answer"):
        digest_of(image)


@pytest.mark.parametrize(
    "base", ["python:3.14", "scratch", "public.ecr.aws/python", "a.b/c@sha256:1"]
)
def test_an_image_without_a_registry_and_a_tag_is_refused(base: str, tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM {base}\n")
    with pytest.raises(InvalidError, match="without a registry and a tag"):
        pin([path])


def test_images_of_tasks_have_one_base_which_is_pinned() -> None:
    lines = set()
    for path in ROOT.glob("containers/*/Dockerfile"):
        found = base_images._FROM.search(path.read_text())
        assert found is not None, path
        assert found["digest"], path
        lines.add(found[0])
    assert len(lines) == 1
