"""Fault scripts: stories of feeds under faults, as files. `docs/change/fault_script.md` has one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

FOLDER = Path(__file__).parent
Door = Literal["objects", "log", "source"]
Count = Annotated[int, Meta(ge=1, le=10_000)]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step: a word, and what belongs to it.

    start, kill, pause, resume: a worker, by its name. A kill waits for its effect number `before`
        or `after`, counted from now on; without them it happens at once.
    produce: records that come into the source split `into`.
    turns: of each worker that lives and does not pause, in the order of their names.
    cut, lose_answers: a door that is shut, or behind which half of what is done is not answered,
        until it is opened again with `restore`.
    forget: records that the source split `into` has no longer: those before this position.
    make_anew: a source split that is deleted and made again, without records.
    wait: seconds.
    finish: all doors open, all workers go on until nothing is left to do; then all is checked.
    """

    start: str = ""
    kill: str = ""
    before: int = 0
    after: int = 0
    pause: str = ""
    resume: str = ""
    produce: int = 0
    into: str = "topic-0"
    turns: int = 0
    cut: Door | None = None
    lose_answers: Literal["objects", "log"] | None = None
    restore: Door | None = None
    forget: int = 0
    make_anew: str = ""
    wait: float = 0
    finish: bool = False

    @property
    def word(self) -> str:
        """Which of the words it is."""
        (word,) = (word for word in WORDS if getattr(self, word))
        return word


WORDS = tuple(name for name in Step.__struct_fields__ if name not in {"before", "after", "into"})


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A story. story: what it shows, in a sentence."""

    story: Annotated[str, Meta(min_length=1)]
    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]


def scripts() -> list[Path]:
    """Return all scripts, by their names."""
    return sorted(FOLDER.glob("*.toml"))


def script_in(path: Path) -> Script:
    """Return a script.

    Raises:
        msgspec.ValidationError, ValueError: it is none, or a step has not one word.
    """
    script = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Script)
    for step in script.steps:
        _ = step.word
    if not script.steps[-1].finish:
        raise ValueError(f"{path.name} does not end with {{ finish = true }}: nothing is checked")
    return script
