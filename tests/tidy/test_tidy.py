"""The project keeps its own rules, and the rules notice when it does not."""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.source import ROOT, Source, project_files


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return list(project_files())


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_project_is_tidy(rule: rules.Rule, sources: list[Source]) -> None:
    findings = list(chain.from_iterable(rule(source) for source in sources))
    assert not findings, "\n" + "\n".join(map(str, findings))


def test_every_module_is_used(sources: list[Source]) -> None:
    findings = list(rules.modules_are_used(sources))
    assert not findings, "\n" + "\n".join(map(str, findings))


CORE = "lakebed/compaction/plan.py"
PAGE = "docs/design/ingest.md"
LONG_FUNCTION = "def run():\n" + "    step()\n" * 60
TITLE = "# Ingest\n"

PLANTED = [
    (rules.outside_comes_in_as_an_argument, CORE, "import time\ntime.time()", "Clock"),
    (rules.outside_comes_in_as_an_argument, CORE, "from time import sleep as s\ns(1)", "Clock"),
    (rules.outside_comes_in_as_an_argument, CORE, "import time\nread = time.monotonic", "Clock"),
    (
        rules.outside_comes_in_as_an_argument,
        CORE,
        "from datetime import UTC, datetime\ndatetime.now(tz=UTC)",
        "Clock",
    ),
    (rules.outside_comes_in_as_an_argument, CORE, "import uuid\nuuid.uuid4()", "maker of ids"),
    (rules.outside_comes_in_as_an_argument, CORE, "import random\nrandom.choice(x)", "seeded"),
    (rules.outside_comes_in_as_an_argument, CORE, "import random\nrandom.Random()", "seed"),
    (rules.outside_comes_in_as_an_argument, CORE, "from random import Random\nRandom()", "seed"),
    (rules.outside_comes_in_as_an_argument, CORE, "import os\nos.urandom(8)", "seeded"),
    (rules.outside_comes_in_as_an_argument, CORE, "import secrets\nsecrets.token_hex()", "seeded"),
    (rules.rows_stay_in_arrow, CORE, "rows = table.to_pylist()", "# bounded: reason"),
    (rules.rows_stay_in_arrow, CORE, "rows = table.to_pydict()  # small", "# bounded: reason"),
    (rules.rows_stay_in_arrow, CORE, "key = column[0].as_py()", "# bounded: reason"),
    (rules.nothing_is_left_unfinished, CORE, "# TO" + "DO: later", "limit in docs/"),
    (rules.nothing_is_left_unfinished, PAGE, "FIX" + "ME", "limit in docs/"),
    (rules.nothing_is_left_unfinished, CORE, "# X" + "XX", "limit in docs/"),
    (rules.modules_say_what_they_hold, "lakebed/ingest/utils.py", "", "what it does"),
    (rules.modules_say_what_they_hold, "tests/common/story.py", "", "what it does"),
    (rules.modules_are_short, CORE, "x = 1\n" * 401, "split it"),
    (rules.functions_fit_on_a_screen, CORE, LONG_FUNCTION, "take out a step"),
    (rules.errors_are_caught_by_kind, CORE, "try: x()\nexcept Exception: y()", "lakebed.errors"),
    (rules.errors_are_caught_by_kind, CORE, "try: x()\nexcept: y()", "lakebed.errors"),
    (
        rules.errors_are_caught_by_kind,
        CORE,
        "try: x()\nexcept (KeyError, BaseException): y()",
        "lakebed.errors",
    ),
    (rules.guards_are_raised, CORE, "assert rows == 1", "raise AssertionError"),
    (rules.guards_are_raised, CORE, "assert rows", "raise AssertionError"),
    (rules.guards_are_raised, CORE, "assert x is not None and rows == 1", "raise AssertionError"),
    (rules.exceptions_to_rules_have_reasons, CORE, "x()  # noqa: S608", "needs a reason"),
    (rules.exceptions_to_rules_have_reasons, CORE, "x()  # noqa: S608, E501", "needs a reason"),
    (rules.exceptions_to_rules_have_reasons, CORE, "x()  # noqa", "needs a reason"),
    (rules.exceptions_to_rules_have_reasons, CORE, "x()  # type: ignore[arg-type]", "reason"),
    (rules.exceptions_to_rules_have_reasons, CORE, "x()  # pragma: no cover", "reason"),
    (rules.lines_are_short, CORE, "x" * 101, "100 allowed"),
    (rules.pages_have_one_title, PAGE, "text", "0 titles"),
    (rules.pages_have_one_title, PAGE, TITLE * 2, "2 titles"),
    (rules.pages_are_narrow, PAGE, TITLE + "word " * 21, "docs.wrapping"),
    (rules.links_lead_somewhere, PAGE, TITLE + "[gone](gone.md#there)", "mend the link"),
    (rules.paths_are_built_in_one_place, CORE, "f'tables/{name}'", "model/paths.py"),
    (rules.nothing_names_a_machine, PAGE, "see /wo" + "rk/out", "relative path"),
    (rules.nothing_names_a_machine, "Makefile", "cat /ro" + "ot/.netrc", "relative path"),
    (rules.nothing_names_a_machine, PAGE, "/ho" + "me/you/lake", "relative path"),
    (rules.nothing_names_a_machine, PAGE, "from pypi" + ".org", "package's name"),
]


@pytest.mark.parametrize(("rule", "path", "text", "says"), PLANTED)
def test_a_planted_violation_is_found(rule: rules.Rule, path: str, text: str, says: str) -> None:
    found = [str(finding) for finding in rule(Source(path, text))]
    assert found
    assert all(says in finding for finding in found)


FINE = [
    ("lakebed/backends/system/clock.py", "import time\ntime.time()"),
    ("lakebed/bootstrap/local.py", "import uuid\nuuid.uuid4()"),
    (CORE, "import random\ndef jitter(rng: random.Random): return random.Random(7)"),
    (CORE, "self.time.sleep(1)\nrandom.choice(x)"),
    (CORE, "key = column[0].as_py()  # bounded: one row per file"),
    (CORE, "keys = pick(\n    sample\n).to_pylist()  # bounded: 128 keys"),
    ("tests/unit/test_plan.py", "rows = table.to_pylist()"),
    ("lakebed/tasks/loop.py", "try: x()\nexcept Exception: y()"),
    (CORE, "try: x()\nexcept KeyError: y()"),
    (CORE, "try: x()\nexcept BaseException:\n    undo()\n    raise"),
    (CORE, "assert x.y is not None, 'why'\nassert isinstance(x, int | str)"),
    ("lakebed/kernels/merging.py", "assert 0 <= row < end"),
    ("lakebed/kernels/toolchain/native.py", "assert address"),
    ("lakebed/backends/memory/clock.py", "assert seconds >= 0"),
    ("tests/unit/test_plan.py", "assert rows == 1"),
    (CORE, "x()  # noqa: S608 - names come from this file"),
    (CORE, "x()  # type: ignore[arg-type]  # its stub says str, it takes bytes"),
    (CORE, 'mark = "# noqa"'),
    (CORE, LONG_FUNCTION.replace("    step()\n", "", 1)),
    (CORE, '"""Rows under tables/ are sorted."""'),
    ("lakebed/model/paths.py", "f'tables/{name}'"),
    (PAGE, TITLE + "```sh\n# a comment\n```\n[up](../glossary.md), [out](https://example.com)"),
    (PAGE, TITLE + f"| {'cell ' * 30}|\n```sh\n{'word ' * 30}\n```\n"),
    (PAGE, TITLE + "[up](../glossary.md#" + "long" * 25 + ")"),
    ("lakebed/pages/errors.md", TITLE + "word " * 30),
    (PAGE, TITLE + "files lie in ./wo" + "rk/ and frame" + "work/root"),
]


@pytest.mark.parametrize(("path", "text"), FINE)
def test_what_is_allowed_is_not_reported(path: str, text: str) -> None:
    source = Source(path, text)
    assert not [str(finding) for rule in rules.RULES for finding in rule(source)]


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule for rule, *_ in PLANTED} == set(rules.RULES)


def test_a_module_only_its_own_test_imports_is_found() -> None:
    sources = [
        Source("lakebed/model/key.py", ""),
        Source("lakebed/model/forgotten.py", ""),
        Source("lakebed/model/beside.py", ""),
        Source("lakebed/model/__init__.py", "from .beside import x"),
        Source("lakebed/cli/main.py", "from lakebed.model import key"),
        Source("tests/unit/model/test_forgotten.py", "import lakebed.model.forgotten"),
    ]
    (finding,) = rules.modules_are_used(sources)
    assert finding.path == "lakebed/model/forgotten.py"


COLD_ROOMS = ("errors", "model", "ports", "config", "observe", "statestore", "garbage", "splitting")


def test_rooms_that_move_no_rows_start_without_pyarrow() -> None:
    """The import contract reads the source; this loads it, `lakebed/__init__.py` included."""
    modules = [
        Source(str(path.relative_to(ROOT).as_posix()), "").module
        for room in COLD_ROOMS
        for path in [ROOT / "lakebed" / f"{room}.py", *(ROOT / "lakebed" / room).rglob("*.py")]
        if path.exists()
    ]
    code = (
        f"import sys, importlib\nfor name in {modules}: importlib.import_module(name)\n"
        "print(*({'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert not run.stdout.split(), "a cold room loads them: import them late, or in another room"


def test_the_package_asks_for_what_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = {
        "run": {*project["project"]["dependencies"], *project["build-system"]["requires"]},
        **{name: set(packages) for name, packages in extras.items()},
    }
    for name, packages in asked.items():
        lines = (ROOT / f"requirements/{name}.in").read_text(encoding="utf-8").splitlines()
        wanted = {line.partition("#")[0].strip() for line in lines if not line.startswith("-")}
        assert packages == wanted - {""}


@pytest.mark.skipif(os.name != "posix", reason="reads a file mode")
def test_ci_runs_what_a_user_runs() -> None:
    ci = Path(ROOT / ".ci/run")
    assert os.access(ci, os.X_OK)
    assert ci.read_text(encoding="utf-8").splitlines()[-1] == "make test"


def _committed_by_mistake(root: Path) -> list[str]:
    """What git keeps and ignores at once, and links, which lead out of a fresh clone."""

    def git(*words: str) -> list[str]:
        command = ["git", "ls-files", "--cached", *words]
        return subprocess.check_output(command, cwd=root, text=True).splitlines()

    links = [line.partition("\t")[2] for line in git("--stage") if line.startswith("120000")]
    return [*git("--ignored", "--exclude-standard"), *links]


def test_nothing_that_make_makes_is_committed_and_no_link() -> None:
    assert _committed_by_mistake(ROOT) == [], "git rm --cached it; .gitignore names what make makes"


def test_a_committed_environment_is_found(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text((ROOT / ".gitignore").read_text("utf-8"), "utf-8")
    (tmp_path / ".venv").symlink_to(tmp_path / "another-environment")
    subprocess.run(["git", "add", "--force", ".gitignore", ".venv"], cwd=tmp_path, check=True)
    assert _committed_by_mistake(tmp_path) == [".venv", ".venv"]
