"""Pins the base images of `containers/*/Dockerfile` by digest: `make images`.

A tag names another image tomorrow; a digest never does. The command asks the registry which image
the tag names now, for all architectures that tasks may have, and writes its digest behind the tag.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from lakebed.errors import InvalidError, UnavailableError

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = {"amd64", "arm64"}
INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
ANSWER_SECONDS = 30
ANSWER_BYTES_MAX = 4 << 20
_HERE = re.compile(r"(127\.0\.0\.1|localhost):[0-9]+")
_FROM = re.compile(
    r"^(?P<what>FROM (?P<image>(?P<registry>[a-z0-9.-]+(:[0-9]+)?)/(?P<repository>[a-z0-9._/-]+)"
    r":(?P<tag>[A-Za-z0-9_.-]+)))(?P<digest>@sha256:[0-9a-f]{64})?$",
    re.MULTILINE,
)


class BaseImage(NamedTuple):
    """An image as a Dockerfile names it, without its digest."""

    registry: str
    repository: str
    tag: str

    @property
    def address(self) -> str:
        """Return the URL at which its registry tells of it. Only one on this machine is asked
        without TLS."""
        scheme = "http" if _HERE.fullmatch(self.registry) else "https"
        return f"{scheme}://{self.registry}/v2/{self.repository}/manifests/{self.tag}"


def pin(dockerfiles: Iterable[Path]) -> list[str]:
    """Write the digests of base images into Dockerfiles. Returns what changed, for people.

    Raises:
        InvalidError: a Dockerfile names no image of a registry by a tag, or the registry has none
            of that name for each architecture. UnavailableError: it does not answer. No file was
            changed.
    """
    texts = {path: path.read_text("utf-8") for path in dockerfiles}
    digests: dict[BaseImage, str] = {}
    changed, after = [], {}
    for path, text in texts.items():
        found = _FROM.search(text)
        if found is None:
            hint = "write it as FROM REGISTRY/NAME:TAG"
            raise InvalidError("a base image without a registry and a tag", file=path, hint=hint)
        image = BaseImage(found["registry"], found["repository"], found["tag"])
        if image not in digests:
            digests[image] = digest_of(image)
        if found["digest"] != f"@{digests[image]}":
            after[path] = _FROM.sub(rf"\g<what>@{digests[image]}", text)
            changed.append(f"{path}: {found['image']} is {digests[image]}")
    for path, text in after.items():
        path.write_text(text, "utf-8")
    return changed


def digest_of(image: BaseImage) -> str:
    """Return the digest of what an image's tag names now.

    Raises:
        InvalidError: nothing, or not for each architecture; what came has another digest than the
            registry says. UnavailableError: no answer.
    """
    headers = {"Accept": ", ".join(INDEX_TYPES)}
    try:
        body, stated = _get(image.address, headers)
    except urllib.error.HTTPError as error:
        asks = error.headers.get("WWW-Authenticate", "")
        if error.code != 401 or not asks.lower().startswith("bearer "):
            raise _refusal(image, error) from None
        token = _token(image, asks)
        try:
            body, stated = _get(image.address, {**headers, "Authorization": f"Bearer {token}"})
        except urllib.error.HTTPError as again:
            raise _refusal(image, again) from None
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    if stated not in {None, digest}:
        hint = "try again: does a proxy change what the registry answers?"
        raise InvalidError("an image's digest is wrong", stated=stated, found=digest, hint=hint)
    _check_index(image, body)
    return digest


def _check_index(image: BaseImage, body: bytes) -> None:
    try:
        listed = json.loads(body).get("manifests", [])
        there = {one.get("platform", {}).get("architecture") for one in listed}
    except (ValueError, AttributeError):
        there = set()
    missing = sorted(ARCHITECTURES - there)
    if missing:
        hint = "name an image that is made for all of them"
        raise InvalidError(
            "an image is not made for each architecture",
            image=image.address,
            missing=",".join(missing),
            hint=hint,
        )


def _token(image: BaseImage, asks: str) -> str:
    """Return a token for a public image, from the address that the registry names."""
    said = dict(re.findall(r'(\w+)="([^"]*)"', asks))
    realm = said.pop("realm", "")
    parts = urlsplit(realm)
    if parts.scheme != "https" and not _HERE.fullmatch(parts.netloc):
        hint = "name an image of another registry"
        raise InvalidError(
            "a registry wants a token from an unsafe address", realm=realm, hint=hint
        )
    query = urlencode({"scope": f"repository:{image.repository}:pull"} | said)
    try:
        body, _ = _get(f"{realm}?{query}", {})
        answer: dict[str, Any] = json.loads(body)
        return str(answer.get("token") or answer["access_token"])
    except urllib.error.HTTPError as error:
        raise _refusal(image, error) from None
    except (ValueError, KeyError):
        hint = "name a public image"
        raise InvalidError("a registry gives no token", realm=realm, hint=hint) from None


def _get(address: str, headers: dict[str, str]) -> tuple[bytes, str | None]:
    """Return a body, and the digest that its registry says it has."""
    request = urllib.request.Request(address, headers=headers)  # noqa: S310  checked by callers
    try:
        opened = urllib.request.urlopen(request, timeout=ANSWER_SECONDS)  # noqa: S310  as above
        with opened as answer:
            return answer.read(ANSWER_BYTES_MAX), answer.headers.get("Docker-Content-Digest")
    except urllib.error.HTTPError:
        raise
    except OSError as error:
        hint = "is there a way to the internet?"
        raise UnavailableError(
            "a registry does not answer", address=address, reason=error, hint=hint
        ) from None


def _refusal(image: BaseImage, error: urllib.error.HTTPError) -> InvalidError | UnavailableError:
    if error.code in {429, 500, 502, 503, 504}:
        hint = "try again later"
        return UnavailableError(
            "a registry is busy", image=image.address, status=error.code, hint=hint
        )
    hint = "is its name right, and is it public?"
    return InvalidError(
        "a registry has no such image", image=image.address, status=error.code, hint=hint
    )


def main() -> int:
    """Pin the images of all Dockerfiles of tasks."""
    try:
        changed = pin(sorted(ROOT.glob("containers/*/Dockerfile")))
    except (InvalidError, UnavailableError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command
        return error.exit_code
    print("\n".join(changed) or "nothing has changed")  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main())
