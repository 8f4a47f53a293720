"""An answer that several checks share: asked for once, and raised again where it was an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from lakebed.errors import LakebedError

T = TypeVar("T")


class AskedOnce(Generic[T]):
    """Asks when it is first called. Safe to share among threads: the others wait."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._answers: list[T] = []
        self._error: LakebedError | None = None

    def __call__(self) -> T:
        """Return the answer. Raises: what was raised the first time."""
        with self._lock:
            if self._error is not None:
                raise self._error
            if not self._answers:
                try:
                    self._answers.append(self._ask())
                except LakebedError as error:
                    self._error = error
                    raise
            return self._answers[0]

    @property
    def answer(self) -> T | None:
        """Return the answer; None: there is none yet."""
        return self._answers[0] if self._answers else None
