"""Machine code names the processor that it is for: what one machine compiled for the baseline, each
that has its features uses, and no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from llvmlite import binding

from lakebed.errors import InvalidError
from lakebed.kernels.toolchain import compiling, filling, processors
from lakebed.kernels.toolchain.processors import Processor
from tests.unit.kernels.toolchain.test_compiling import GATHER, ROOT, kept

ELSEWHERE = """
from llvmlite import binding
here = binding.get_host_cpu_features()
for feature in {missing!r}:
    here[feature] = False
here["a-feature-of-tomorrow"] = True
binding.get_host_cpu_name = lambda: "a-processor-of-tomorrow"
binding.get_host_cpu_features = lambda: here
"""
"""Makes a process believe that it runs on another machine."""
COMPILED = "import sys\nprint('numba' in sys.modules)\n"


def compiles(cache: Path, *, missing: tuple[str, ...], **environment: str) -> bool:
    """Whether a process on another machine compiles a kernel. missing: features it has not."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(missing=missing) + GATHER + COMPILED],
        env={**os.environ, "LAKEBED_KERNEL_CACHE": str(cache), **environment},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() == "True"


def baseline() -> Processor:
    found = processors.baseline()
    if found is None or not found.supported():
        pytest.skip("images are not made for such a machine")
    return found


def test_code_for_the_baseline_is_valid_on_every_machine_that_has_its_features(
    tmp_path: Path,
) -> None:
    target = baseline()
    told = {"NUMBA_CPU_NAME": target.name, "NUMBA_CPU_FEATURES": target.features}
    assert compiles(tmp_path, missing=(), **told)
    (path,) = kept(tmp_path)
    assert not compiles(tmp_path, missing=())
    assert set(kept(tmp_path)) == {path}
    feature = target.features.split(",")[0].removeprefix("+")
    assert compiles(tmp_path, missing=(feature,))
    assert len({file.parent for file in kept(tmp_path)}) == 2


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_baseline_is_supported_where_each_feature_is(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    target = processors.baseline()
    assert target is not None
    all_ = dict.fromkeys(target.features.replace("+", "").split(","), True)
    here = dict(all_)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: here)
    assert target.supported()
    for feature in all_:
        here[feature] = False
        assert not target.supported(), feature
        here[feature] = True


def test_numba_adds_the_features_of_this_machine_to_a_name_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    for name in ("x86-64-v3", None, "generic", "Generic"):
        if name is None:
            monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
        else:
            monkeypatch.setenv("NUMBA_CPU_NAME", name)
        found = processors.compiled_for()
        assert found.name == (name or binding.get_host_cpu_name())
        is_generic = name is not None and name.lower() == "generic"
        features = "" if is_generic else binding.get_host_cpu_features().flatten()
        assert found.features == features
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx")
    assert processors.compiled_for().features == "+avx"


def test_a_directory_that_is_named_needs_no_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_home(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LAKEBED_KERNEL_CACHE", str(tmp_path))
    found = compiling.cache_directories()
    assert {directory.parent for directory in found} == {tmp_path}


def test_no_image_is_filled_for_a_machine_without_a_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(InvalidError, match="images are not made for this processor"):
        filling.fill()


def test_a_cache_that_cannot_be_written_is_not_left_empty_in_silence(tmp_path: Path) -> None:
    target = baseline()
    (tmp_path / "file").write_bytes(b"")
    code = (
        "import lakebed.kernels.gathering\n"
        "from lakebed.kernels.toolchain.compiling import compile_all\n"
        "compile_all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "LAKEBED_KERNEL_CACHE": str(tmp_path / "file" / "cache"),
            "NUMBA_CPU_NAME": target.name,
            "NUMBA_CPU_FEATURES": target.features,
        },
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "kernels cannot be kept" in done.stderr
    assert done.returncode
