"""One wheel: what it is for, what it holds, and what it needs. Read, never run.

Source: "Binary distribution format" and "Platform compatibility tags", Python Packaging User Guide.
"""

from __future__ import annotations

import configparser
import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path

import msgspec

from lakebed.errors import InvalidError

_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(-[0-9][^-]*)?"
    r"-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
_NEED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
BYTES_MAX = 250 << 20
"""Most bytes that a wheel unpacks to: as much as a function may have."""
INSTALLED_FROM = ("purelib", "platlib")
"""Parts of a wheel's `.data` that lie among modules. Scripts and headers do not."""
OF_INSTALLERS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def normalised(name: str) -> str:
    """Return a package's name as all its spellings are written."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A package as one file.

    pythons, abis, platforms: tags; it runs where one of each fits.
    steps: names of entry points, by group.
    needs: names of packages that it needs whatever the platform.
    tops: first parts of what it holds: names of modules, and of its own record.
    """

    path: Path
    name: str
    version: str
    sha256: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]
    steps: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...]
    tops: tuple[str, ...]

    def __hash__(self) -> int:
        return hash(self.sha256)

    def fits(self, python: str, platforms: Sequence[str]) -> bool:
        """Return whether it runs in a version of Python (`3.14`), where wheels of such tags run."""
        minor = int(python.partition(".")[2])
        return bool({"any", *platforms} & {*self.platforms}) and any(
            _fits(tag, abi, minor) for tag in self.pythons for abi in self.abis
        )

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of what it installs among modules, by path."""
        with zipfile.ZipFile(self.path) as archive:
            for item in sorted(archive.infolist(), key=lambda item: item.filename):
                name = _installed(item.filename)
                if name and not item.is_dir():
                    yield name, archive.read(item)

    def unpack(self, folder: Path) -> None:
        """Write what it installs into a new folder.

        Raises:
            InvalidError: a file would lie outside of it.
        """
        folder.mkdir(parents=True)
        for name, content in self.files():
            to = folder / name
            if not to.resolve().is_relative_to(folder.resolve()):
                raise _outside(self.path, name)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)


def read_wheel(path: Path) -> Wheel:
    """Return what a wheel says of itself.

    Raises:
        InvalidError: it is not there, it is none, or names files outside of itself.
    """
    named = _FILE.fullmatch(path.name)
    hint = "build it anew: `pip wheel --no-deps .`"
    if named is None:
        raise InvalidError("not a name of a wheel", file=path, hint="NAME-VERSION-TAGS.whl")
    try:
        body = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            names = [item.filename for item in archive.infolist() if not item.is_dir()]
            _check_names(path, archive)
            (record,) = {
                n.partition("/")[0] for n in names if n.split("/")[0].endswith(".dist-info")
            }
            said = HeaderParser().parsestr(archive.read(f"{record}/METADATA").decode("utf-8"))
            points = f"{record}/entry_points.txt"
            steps = _steps(archive.read(points).decode("utf-8")) if points in names else {}
            broken = archive.testzip()
    except OSError as error:
        raise InvalidError(
            "a wheel cannot be read",
            file=path,
            why=error.strerror,
            hint="let this process read it, or name another one",
        ) from None
    except (ValueError, KeyError, zlib.error, zipfile.BadZipFile, configparser.Error) as error:
        raise InvalidError("not a wheel", file=path, why=error, hint=hint) from None
    if broken is not None or normalised(said.get("Name", "")) != normalised(named["name"]):
        why = f"{broken} is damaged" if broken else "its name contradicts its METADATA"
        raise InvalidError("not a wheel", file=path, why=why, hint=hint)
    installed = (name for name in map(_installed, names) if name)
    return Wheel(
        path=path,
        name=normalised(named["name"]),
        version=said.get("Version", named["version"]),
        sha256=hashlib.sha256(body).hexdigest(),
        pythons=tuple(named["python"].split(".")),
        abis=tuple(named["abi"].split(".")),
        platforms=tuple(named["platform"].split(".")),
        steps=steps,
        needs=tuple(_needs(said.get_all("Requires-Dist", []))),
        tops=tuple(sorted({name.partition("/")[0] for name in installed})),
    )


def _fits(python: str, abi: str, minor: int) -> bool:
    found = re.fullmatch(r"(py|cp)3([0-9]*)", python)
    if found is None:
        return False
    kind, least = found[1], int(found[2] or 0)
    if kind == "py":
        return abi == "none" and least <= minor
    if abi == "abi3":
        return least <= minor
    return least == minor and abi in ("none", f"cp3{minor}")


def _check_names(path: Path, archive: zipfile.ZipFile) -> None:
    size = 0
    for item in archive.infolist():
        if not all(map(_is_inside, (item.filename, _installed(item.filename)))):
            raise _outside(path, item.filename)
        size += item.file_size
    if size > BYTES_MAX:
        raise InvalidError(
            "a wheel is too large",
            file=path,
            mib=size >> 20,
            mib_max=BYTES_MAX >> 20,
            hint="leave out what the functions do not need",
        )


def _is_inside(name: str) -> bool:
    """Return whether a file or folder lies where its name says, below the folder that it is put
    into. The empty name is that of nothing that is installed."""
    parts = name.removesuffix("/").split("/")
    return not name or ("\\" not in name and not {"", ".", ".."} & {*parts})


def _outside(path: Path, name: str) -> InvalidError:
    hint = "do not use it: it would write outside of its folder"
    return InvalidError("a wheel names a file outside of itself", file=path, path=name, hint=hint)


def _installed(name: str) -> str:
    """Return where a file of a wheel lies among modules; empty: it does not."""
    top, _, rest = name.partition("/")
    if top.endswith(".data"):
        part, _, rest = rest.partition("/")
        return rest if part in INSTALLED_FROM else ""
    return "" if top.endswith(".dist-info") and rest in OF_INSTALLERS else name


def _steps(text: str) -> dict[str, tuple[str, ...]]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(text)
    return {entry_group: tuple(parser[entry_group]) for entry_group in parser.sections()}


def _needs(said: Sequence[str]) -> Iterator[str]:
    for one in said:
        found = _NEED.match(one)
        if found is not None and ";" not in one:
            yield normalised(found[1])
