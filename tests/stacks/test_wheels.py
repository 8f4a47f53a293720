"""Users' wheels in bundles, images and Spark's archive: where they go, and which are refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from lakebed.config.deployments.instance_resources import (
    InstanceResources,
    decode_resources,
    encode_resources,
)
from lakebed.config.instance import Deployment, InstanceId, instance_settings
from lakebed.config.packages import ITERATORS, STRATEGIES, DeployedPackage, DeployedSteps
from lakebed.errors import InvalidError
from stacks.constructs import image_context as images
from stacks.constructs import packages, python_bundle
from stacks.constructs.packages import packages_for, recorded_packages
from stacks.constructs.python_bundle import (
    PLANNING,
    SPARK_PYTHON,
    STATE,
    PythonBundle,
    target_of,
)
from stacks.constructs.wheels import read_wheel
from tests.wheels import build_wheel

HERE = target_of("machine")
ARM = target_of("arm64")
ARM_SPARK = target_of("arm64", python=SPARK_PYTHON)
MODULE = "def pairs(files, settings):\n    return [[f.name for f in files[:2]]]\n"
STEPS = {STRATEGIES: {"pairs": "pairs"}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are made in a folder of the test's own, which goes with it."""
    monkeypatch.setattr(images, "CACHE", tmp_path / "images")
    images.image_context.cache_clear()


def deployed(folder: object, architecture: str = "arm64") -> Deployment:
    settings = {"packages": str(folder), "architecture": architecture}
    return Deployment(instance=InstanceId("dev"), settings=instance_settings(settings))


def test_without_packages_bundles_and_images_are_what_they_were() -> None:
    none = deployed("")
    assert packages_for(none, ARM) == recorded_packages(none) == ()
    assert PythonBundle(PLANNING, HERE).folder == PythonBundle(STATE, HERE).folder
    assert images.image_context("ingest").name == images.image_context("ingest", ()).name


def test_bundles_of_those_who_call_steps_have_them(tmp_path: Path) -> None:
    build_wheel(tmp_path, "my_steps", MODULE, STEPS)
    wheels = packages_for(deployed(tmp_path, "machine"), HERE)
    for bundle, has in ((STATE, False), (PLANNING, True)):
        folder = PythonBundle(bundle, HERE, wheels).folder
        assert (folder / "my_steps.py").exists() is has
        said = subprocess.run(
            [sys.executable, "-I", "-S", "-c", FOUND, str(folder)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == ("['pairs']" if has else "[]")
    assert PythonBundle(PLANNING, HERE, wheels).digest != PythonBundle(STATE, HERE, wheels).digest
    assert PythonBundle(STATE, HERE, wheels).digest == PythonBundle(STATE, HERE).digest


FOUND = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.metadata import entry_points
points = entry_points(group="lakebed.compaction_strategies")
print([point.name for point in points if point.load()])
"""


def test_another_content_is_another_digest_and_the_same_the_same(tmp_path: Path) -> None:
    digests = []
    for number, text in enumerate((MODULE, MODULE, MODULE + "\n# another\n")):
        folder = tmp_path / str(number)
        build_wheel(folder, "my_steps", text, STEPS)
        wheels = packages_for(deployed(folder, "machine"), HERE)
        digests.append(PythonBundle(PLANNING, HERE, wheels).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("kind", ["compaction", "ingest", "feeds"])
def test_images_copy_them_beside_our_code_before_it_is_compiled(tmp_path: Path, kind: str) -> None:
    build_wheel(tmp_path, "my_steps", MODULE, STEPS)
    context = images.image_context(kind, packages_for(deployed(tmp_path), ARM))
    assert (context / "packages" / "my_steps.py").read_text("utf-8") == MODULE
    lines = (context / "Dockerfile").read_text("utf-8").splitlines()
    at = lines.index("COPY packages/ ./")
    assert lines.index("COPY lakebed/ lakebed/") < at
    assert at < next(n for n, line in enumerate(lines) if line.startswith("RUN python -m compile"))
    assert [line for line in lines if line != "COPY packages/ ./"] == (
        images.image_context(kind) / "Dockerfile"
    ).read_text("utf-8").splitlines()


def test_what_is_deployed_is_recorded_with_its_sum_and_its_steps(tmp_path: Path) -> None:
    path = build_wheel(tmp_path, "My.Steps", MODULE, {**STEPS, "console_scripts": {"x": "x"}})
    (record,) = recorded_packages(deployed(tmp_path))
    assert (record.name, record.version, record.steps) == (
        "my-steps",
        "1.0",
        {STRATEGIES: ("pairs",)},
    )
    assert record.sha256 == (hashlib.sha256(path.read_bytes()).hexdigest(),)
    steps = DeployedSteps("dev", [record])
    assert steps.names(STRATEGIES) == {"pairs"}
    assert steps.names(ITERATORS) == set()


def test_each_python_and_processor_gets_its_own_wheel(tmp_path: Path) -> None:
    tags = {
        "arm": "cp314-cp314-manylinux_2_28_aarch64",
        "arm spark": "cp311-cp311-manylinux2014_aarch64",
        "intel": "cp314-cp314-manylinux_2_28_x86_64",
    }
    paths = {
        which: build_wheel(tmp_path, "fast", MODULE, STEPS, tag=tag) for which, tag in tags.items()
    }
    arm = deployed(tmp_path)
    assert [wheel.path for wheel in packages_for(arm, ARM)] == [paths["arm"]]
    assert [wheel.path for wheel in packages_for(arm, ARM_SPARK)] == [paths["arm spark"]]
    assert len(recorded_packages(arm)[0].sha256) == 2
    with pytest.raises(InvalidError, match=r"no wheel.*python=3\.11.*x86_64"):
        packages_for(deployed(tmp_path, "x86_64"), target_of("x86_64"))


@pytest.mark.parametrize(
    ("tag", "taken"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py311-none-any", True),
        ("py312-none-any", False),
        ("py2-none-any", False),
        ("cp310-abi3-manylinux_2_17_aarch64", True),
        ("cp310-abi3-manylinux_2_17_aarch64.manylinux2014_aarch64", True),
        ("cp310-abi3-manylinux_2_39_aarch64", False),
        ("cp310-abi3-manylinux_2_17_x86_64", False),
        ("cp310-abi3-musllinux_1_2_aarch64", False),
        ("cp310-abi3-macosx_11_0_arm64", False),
        ("cp310-abi3-win_arm64", False),
        ("cp314-cp314-manylinux_2_17_aarch64", False),
        ("cp314-cp314t-manylinux_2_17_aarch64", False),
        ("pp311-pypy311_pp73-any", False),
    ],
)
def test_wheels_of_other_pythons_and_systems_are_refused(
    tmp_path: Path, tag: str, taken: bool
) -> None:
    build_wheel(tmp_path, "fast", MODULE, STEPS, tag=tag)
    if taken:
        assert packages_for(deployed(tmp_path), ARM)
        return
    with pytest.raises(InvalidError, match="no wheel of a package fits") as raised:
        packages_for(deployed(tmp_path), ARM)
    assert "py3-none-any" in str(raised.value.hint)
    assert "manylinux_2_34_aarch64" in str(raised.value.hint)


def test_what_cannot_work_is_refused_by_the_file(tmp_path: Path) -> None:
    def refused(folder: Path, match: str) -> None:
        with pytest.raises(InvalidError, match=match) as raised:
            recorded_packages(deployed(folder))
        assert raised.value.hint

    for name, how, match in (
        ("taken", {"name": "numpy"}, "that Lakebed brings.*numpy"),
        ("ours", {"more": {"lakebed/x.py": b""}}, "of the name of another.*lakebed"),
        ("stdlib", {"name": "json"}, "of the name of another.*json"),
        ("outside", {"more": {"../x.py": b""}}, "outside of itself"),
        ("root", {"more": {"/x.py": b""}}, "outside of itself"),
        ("needy", {"needs": ("pandas>=2",)}, "needs one that is not there.*pandas"),
        ("same", {"steps": {STRATEGIES: {"basic": "pairs"}}}, "one name.*basic.*Lakebed"),
        ("none", {"steps": {"console_scripts": {"x": "pairs"}}}, "no package has a step"),
    ):
        given = {"name": "my_steps", "steps": STEPS, **how}
        build_wheel(tmp_path / name, given.pop("name"), MODULE, given.pop("steps"), **given)
        refused(tmp_path / name, match)
    two = tmp_path / "two"
    build_wheel(two, "one", MODULE, STEPS)
    build_wheel(two, "other", MODULE, STEPS)
    refused(two, "two packages have a step of one name.*one, other")
    build_wheel(tmp_path / "versions", "one", MODULE, STEPS)
    build_wheel(tmp_path / "versions", "one", MODULE, STEPS, version="2.0")
    refused(tmp_path / "versions", "several versions")
    build_wheel(tmp_path / "both", "one", MODULE, STEPS)
    build_wheel(tmp_path / "both", "one", MODULE, STEPS, tag="py2.py3-none-any")
    refused(tmp_path / "both", "several wheels of a package fit")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "without wheels")
    for number, (name, content, match) in enumerate(
        (
            ("a-1.0-py3-none-any.whl", b"nothing", "not a wheel"),
            ("a.whl", b"nothing", "not a name of a wheel"),
        )
    ):
        folder = tmp_path / f"broken-{number}"
        folder.mkdir()
        (folder / name).write_bytes(content)
        refused(folder, match)
    with pytest.raises(InvalidError, match="cannot be read"):
        recorded_packages(deployed(tmp_path / "a-1.0-py3-none-any.whl"))


OF_ONE_BUNDLE_OR_IMAGE = ("confluent_kafka", "fastavro", "numba", "click", "llvmlite", "setuptools")


@pytest.mark.parametrize("name", [*OF_ONE_BUNDLE_OR_IMAGE, "protobuf", "Python.DateUtil"])
def test_no_package_takes_the_place_of_one_that_any_bundle_or_image_brings(
    tmp_path: Path, name: str
) -> None:
    build_wheel(tmp_path, name, MODULE, STEPS)
    with pytest.raises(InvalidError, match="a package that Lakebed brings"):
        recorded_packages(deployed(tmp_path))


@pytest.mark.parametrize("name", OF_ONE_BUNDLE_OR_IMAGE)
def test_no_module_takes_the_place_of_one_that_any_bundle_or_image_brings(
    tmp_path: Path, name: str
) -> None:
    build_wheel(tmp_path, "my_steps", MODULE, STEPS, more={f"{name}/__init__.py": b""})
    with pytest.raises(InvalidError, match=f"of the name of another.*{name}"):
        recorded_packages(deployed(tmp_path))


def test_a_package_may_need_what_only_some_bundle_or_image_brings(tmp_path: Path) -> None:
    needs = ("confluent-kafka>=2", "fastavro", "protobuf", "numba", "pydantic")
    build_wheel(tmp_path, "my_steps", MODULE, STEPS, needs=needs)
    assert [one.name for one in recorded_packages(deployed(tmp_path))] == ["my-steps"]


@pytest.mark.parametrize(
    "name",
    [
        "/ours.py",
        "../ours.py",
        "a/../../ours.py",
        "a//ours.py",
        "./ours.py",
        "a/./ours.py",
        "a\\..\\ours.py",
        "my_steps-1.0.data/purelib//{outside}",
        "my_steps-1.0.data/platlib//{outside}",
        "my_steps-1.0.data/purelib/../ours.py",
        "my_steps-1.0.data/purelib//",
        "my_steps-1.0.data//purelib/ours.py",
        "my_steps-1.0.data/scripts//ours.py",
    ],
)
def test_a_wheel_writes_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "ours.py"
    outside.write_bytes(b"as it was")
    wheels = tmp_path / "wheels"
    whole = build_wheel(wheels, "whole", MODULE, STEPS)
    named = name.format(outside=outside.as_posix().lstrip("/"))
    path = build_wheel(wheels, "my_steps", MODULE, STEPS, more={named: b"overwritten"})
    with pytest.raises(InvalidError, match="names a file outside of itself") as raised:
        read_wheel(path)
    assert raised.value.facts["path"] == named
    unchecked = msgspec.structs.replace(read_wheel(whole), path=path)  # it was another file before
    with suppress(InvalidError):
        unchecked.unpack(tmp_path / "unpacked")
    assert outside.read_bytes() == b"as it was"
    assert {one.name for one in tmp_path.iterdir()} == {"ours.py", "wheels", "unpacked"}


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    path = build_wheel(tmp_path, "my_steps", MODULE * 50, STEPS)
    body = bytearray(path.read_bytes())
    body[60] ^= 1
    path.write_bytes(body)
    with pytest.raises(InvalidError, match="not a wheel"):
        recorded_packages(deployed(tmp_path))


def test_sums_beside_wheels_pin_them(tmp_path: Path) -> None:
    path = build_wheel(tmp_path, "my_steps", MODULE, STEPS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{digest} *{path.name}\n")
    assert recorded_packages(deployed(tmp_path))
    assert recorded_packages(deployed(path))
    for text in (f"{digest}  other.whl\n", f"{'0' * 64}  {path.name}\n", "\n", "x"):
        packages._checked.cache_clear()
        sums.write_text(text)
        with pytest.raises(InvalidError, match="pinned"):
            recorded_packages(deployed(tmp_path))


def test_a_package_may_need_ours_those_beside_it_and_extras(tmp_path: Path) -> None:
    build_wheel(tmp_path, "base", "x = 1\n")
    needs = ("lakebed", "pyarrow>=20", "Base (>=1)", "pandas; extra == 'frames'")
    build_wheel(tmp_path, "my_steps", MODULE, STEPS, needs=needs)
    assert [one.name for one in recorded_packages(deployed(tmp_path))] == ["base", "my-steps"]


def test_more_than_lambda_or_a_parameter_takes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_wheel(tmp_path, "my_steps", MODULE + "#" * 5_000, STEPS)
    wheels = packages_for(deployed(tmp_path, "machine"), HERE)
    monkeypatch.setattr(python_bundle, "BUNDLE_BYTES_MAX", 1 << 20)
    with pytest.raises(InvalidError, match=r"larger than Lambda takes.*mib_max=1"):
        PythonBundle(PLANNING, HERE, wheels)
    many = {STRATEGIES: {f"a_strategy_with_a_long_name_{n}": "pairs" for n in range(60)}}
    build_wheel(tmp_path / "many", "many", MODULE, many)
    with pytest.raises(InvalidError, match="more packages than a parameter holds"):
        recorded_packages(deployed(tmp_path / "many"))


def test_two_packages_with_one_file_are_refused(tmp_path: Path) -> None:
    for name, step in (("one", "a"), ("other", "b")):
        more = {"shared/x.py": b""}
        build_wheel(tmp_path, name, MODULE, {STRATEGIES: {step: "pairs"}}, more=more)
    wheels = packages_for(deployed(tmp_path, "machine"), HERE)
    with pytest.raises(InvalidError, match=r"has a file that another has.*shared/x\.py"):
        PythonBundle(PLANNING, HERE, wheels)


def test_data_of_wheels_goes_where_installers_put_it(tmp_path: Path) -> None:
    more = {
        "my_steps-1.0.data/purelib/beside.py": b"x = 1\n",
        "my_steps-1.0.data/scripts/run": b"#!python\n",
    }
    build_wheel(tmp_path, "my_steps", MODULE, STEPS, more=more)
    (wheel,) = packages_for(deployed(tmp_path), ARM)
    names = [name for name, _ in wheel.files()]
    assert "beside.py" in names
    assert not [name for name in names if "run" in name or "RECORD" in name]


def test_a_parameter_names_packages_only_where_there_are_some() -> None:
    names = dict.fromkeys(("bucket", "log_table", "registry_table", "tracker_table"), "x")
    resources = InstanceResources(instance=InstanceId("dev"), **names)
    assert "packages" not in json.loads(encode_resources(resources))
    assert not decode_resources(encode_resources(resources), InstanceId("dev")).packages
    package = DeployedPackage("steps", "1.0", ("0",), {STRATEGIES: ("pairs",)})
    more = msgspec.structs.replace(resources, packages=(package,))
    assert decode_resources(encode_resources(more), InstanceId("dev")) == more
