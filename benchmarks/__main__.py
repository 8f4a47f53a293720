"""Run all benchmarks, or those named: `python -m benchmarks [NAME ...]`.

Each module here with a function `run`, which returns figures, is a benchmark, and so are some in
folders. Figures are kept in `benchmarks/latest.jsonl`, one a line, as soon as a benchmark is done;
those of others stay as they were.
"""

from __future__ import annotations

import pkgutil
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module

import benchmarks
from benchmarks.figure_pages.page import keep
from benchmarks.figures import Figure, table
from benchmarks.under_spark import presplit, spark_scan
from benchmarks.whole_tables import batching, declared, doctor, export, ledger, upgrade


def found() -> dict[str, Callable[[], list[Figure]]]:
    """Return the benchmarks by name."""
    names = (m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__")
    modules = {name: import_module(f"benchmarks.{name}") for name in names}
    modules |= {"batching": batching, "declared": declared, "doctor": doctor, "export": export}
    modules |= {"ledger": ledger, "presplit": presplit, "spark_scan": spark_scan}
    modules |= {"upgrade": upgrade}
    return {name: module.run for name, module in modules.items() if hasattr(module, "run")}


def main(names: Sequence[str]) -> int:
    known = found()
    unknown = set(names) - set(known)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; known: {', '.join(known)}")
        return 2
    for name in names or known:
        print(f"{name} ...", file=sys.stderr, flush=True)
        begun = time.perf_counter()
        measured = known[name]()
        keep(measured)
        print(table(measured))
        print(f"{name} took {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print("kept; `make docs` writes the page of figures", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
