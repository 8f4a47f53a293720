"""Checks that those who work on a table will find the steps of users' packages that it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lakebed.config.packages import ITERATORS, STRATEGIES
from lakebed.config.settings import OUR_STRATEGIES
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.processing.iterators import load_iterator
from lakebed.sorted_files.format.arrow_schema import arrow_schema

NAMES_SHOWN_MAX = 20


def check_strategy(settings: Mapping[str, Any], steps: InstalledSteps) -> None:
    """Refuse settings that name a strategy which is not among the steps. Raises: InvalidError."""
    name = settings.get("compaction_strategy", OUR_STRATEGIES[0])
    if name in OUR_STRATEGIES:
        return
    known = {*OUR_STRATEGIES, *steps.names(STRATEGIES)}
    if name not in known:
        hint = did_you_mean(str(name), known, what="strategy")
        raise InvalidError(
            f"no such strategy is {steps.where}",
            compaction_strategy=name,
            known=_listed(known),
            hint=f"{hint}; or {steps.cure}",
        )


def check_iterator(processing: Processing | None, schema: Schema, steps: InstalledSteps) -> None:
    """Refuse processing by an iterator that is not among the steps, or refuses its configuration.

    Raises:
        InvalidError: it is not there, or not here, where its configuration is tried. IteratorError:
            it cannot be loaded or configured.
    """
    if processing is None or processing.iterator is None:
        return
    name, known = processing.iterator.name, steps.names(ITERATORS)
    if name not in known:
        hint = did_you_mean(name, known, what="iterator")
        raise InvalidError(
            f"no such iterator is {steps.where}",
            iterator=name,
            known=_listed(known),
            hint=f"{hint}; or {steps.cure}",
        )
    load_iterator(processing.iterator, arrow_schema(schema))


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:NAMES_SHOWN_MAX]) or "none"
