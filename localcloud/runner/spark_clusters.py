"""Clusters of EMR, whose steps are Spark processes of this machine, as the steps say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakebed.errors import InvalidError
from localcloud.runner.spark_runs import SparkLauncher, SparkProcess, SparkRequest, conf_in
from localcloud.services.emulator import Emulator
from localcloud.templates.running import MachineSpec

DRIVER_VARIABLE = "spark.yarn.appMasterEnv."
SUBMITS = ("spark-submit", "--deploy-mode", "cluster")
"""First words of each step that is run here."""


class EmulatedSparkClusters:
    """Starts the steps that were asked for, one at a time in each cluster, and reports to the
    emulator how they go.

    specs: what machines may do, by the name of their profile. no_capacity: kinds of machines that
    there are none of.
    """

    def __init__(
        self, specs: Mapping[str, MachineSpec], emulator: Emulator, launcher: SparkLauncher
    ) -> None:
        self._specs = specs
        self._emulator = emulator
        self._launcher = launcher
        self.no_capacity: set[str] = set()
        self.running: dict[tuple[str, str], SparkProcess] = {}
        """By the ids of cluster and step."""

    def look(self) -> None:
        """Start steps that wait, end those of clusters that were ended, report what ended."""
        if not self._specs:
            return
        waiting = self._emulator.ask("spark_steps")
        self._kill_all_but({_key(one) for one in waiting})
        for key, spark in list(self.running.items()):
            if spark.process.poll() is not None:
                self._ended(key, spark)
        busy = {cluster for cluster, _ in self.running}
        for one in waiting:
            cluster, _ = _key(one)
            if one["step"]["Status"]["State"] == "PENDING" and cluster not in busy:
                busy.add(cluster)
                self._begin(one["cluster"], one["step"])

    def close(self) -> None:
        """Kill what runs."""
        self._kill_all_but(set())

    def _kill_all_but(self, open_: set[tuple[str, str]]) -> None:
        for key in set(self.running) - open_:
            self.running.pop(key).kill()

    def _begin(self, cluster: Mapping[str, Any], step: Mapping[str, Any]) -> None:
        id_ = cluster["Id"]
        if lacking := self.no_capacity & set(cluster["kinds"]):
            self._emulator.ask(
                "end_spark_cluster",
                cluster=id_,
                state="TERMINATED_WITH_ERRORS",
                code="INSTANCE_FLEET_TIMEOUT",
                message=f"no capacity of {', '.join(sorted(lacking))}",
            )
            return
        try:
            machines = self._specs[cluster["profile"]]
            asked = request_of(step, f"{id_}-{step['Id']}", machines.role)
            self.running[id_, step["Id"]] = self._launcher.start(machines.spark, asked)
        except InvalidError as error:
            self._set_state((id_, step["Id"]), "FAILED", str(error))
        else:
            self._set_state((id_, step["Id"]), "RUNNING", "")

    def _ended(self, key: tuple[str, str], spark: SparkProcess) -> None:
        del self.running[key]
        spark.kill()  # what it started, if it could not end that
        self._launcher.said(spark.log.read_bytes())
        code = spark.process.returncode
        if code:
            self._set_state(key, "FAILED", f"the driver ended with exit code {code}")
        else:
            self._set_state(key, "COMPLETED", "")

    def _set_state(self, key: tuple[str, str], state: str, message: str) -> None:
        cluster, step = key
        self._emulator.ask(
            "set_spark_step", cluster=cluster, step=step, state=state, message=message
        )


def _key(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["cluster"]["Id"], one["step"]["Id"]


def request_of(step: Mapping[str, Any], id_: str, role: str) -> SparkRequest:
    """Return what a step submits. Raises: InvalidError, for what is not submitted as ours is."""
    words: Sequence[str] = step.get("HadoopJarStep", {}).get("Args", [])
    if tuple(words[: len(SUBMITS)]) != SUBMITS or "--conf" not in words:
        raise InvalidError(
            "a local cloud runs spark-submit only",
            step=step.get("Name"),
            hint=f"give `{' '.join(SUBMITS)} --conf NAME=VALUE ...`",
        )
    last = max(at for at, word in enumerate(words) if word == "--conf") + 2
    program, *arguments = words[last:]
    conf = conf_in(words[len(SUBMITS) : last])
    return SparkRequest(id_, role, program, arguments, conf, DRIVER_VARIABLE)
