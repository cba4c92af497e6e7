# SPDX-License-Identifier: Apache-2.0
"""Run campaigns on a Dask cluster of separate processes on this machine.

The results must equal those of one machine byte for byte, and results must be kept if parts of the
cluster fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from marks import in_virtual_time
from nagi_contracts.paths import executable
from prefixes import make_prefix
from same_runs import list_differing_files
from specs import two_links
from test_virtual_lab import guests, no_guest_left, runs_of  # noqa: F401 - a fixture
from test_virtual_schemes import new_scheme

pytestmark = in_virtual_time

DASK, NAGI = str(executable("dask")), str(executable("nagi"))
SPEC = two_links(
    "spread",
    "rate: 20 Mb/s, delay: 8 ms",
    "rate: RATE, delay: 17 ms, queue: 20 packets, forward: {loss: {model: bernoulli, rate: 0.5 %}}",
    "scheme: $scheme",
    """\
host_profile: linux
duration: DURATION s
warmup: 1 s
matrix: {scheme: [SCHEMES]}
report: {x: scheme}
""",
)


def written(
    directory: Path, schemes: str, *, seconds: int = 4, rate: str = "8 Mb/s", extra: str = ""
) -> Path:
    spec = directory / "spec.yaml"
    text = SPEC.replace("SCHEMES", schemes).replace("DURATION", str(seconds))
    spec.write_text(text.replace("RATE", rate) + extra)
    return spec


class DaskCluster:
    """A scheduler, and workers with files and a cache of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._file = directory / "scheduler.json"
        self._start("scheduler", "--scheduler-file", self._file, "--port", "0")
        self._wait_for_scheduler()

    def restart_scheduler(self) -> None:
        """Start another scheduler at the address of the killed one."""
        self._file.unlink()
        port = self.address.rpartition(":")[2]
        self._start("scheduler", "--scheduler-file", self._file, "--port", port)
        self._wait_for_scheduler()

    def _wait_for_scheduler(self) -> None:
        # Dask writes it in place: it is there before its text is.
        wait_for(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address = str(json.loads(self._file.read_text())["address"])

    def add(self, name: str, **environment: str) -> None:
        """Start a worker without a nanny, which would restart the worker."""
        own = self.directory / name
        options = ["--nthreads", "1", "--no-nanny", "--name", name, "--local-directory", own]
        cache = {"XDG_CACHE_HOME": str(self.cache(name)), **environment}
        self._start("worker", self.address, *options, name=name, **cache)

    def cache(self, name: str) -> Path:
        return self.directory / f"cache-{name}"

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text()

    def stop(self, name: str) -> None:
        """Stop the process of a worker without ending it."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def kill(self, name: str = "scheduler") -> None:
        self._processes[name].kill()
        self._processes.pop(name).wait()

    def wait(self, name: str) -> None:
        """Wait until the process of a worker has ended by itself."""
        self._processes.pop(name).wait(60)

    def stop_all(self) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, *arguments: object, name: str = "scheduler", **environment: str) -> None:
        here = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [DASK, *map(str, arguments), *here],
                env=os.environ | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def wait_for(condition: Callable[[], object], seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    directory = tmp_path / "cluster"
    directory.mkdir()
    cluster = DaskCluster(directory)
    yield cluster
    cluster.stop_all()


def start(spec: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [NAGI, "run", str(spec), "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_first_run(spec: Path, out: Path, cluster: DaskCluster) -> subprocess.Popen[str]:
    """Start a campaign on a cluster, and wait until the first of its runs is over."""
    process = start(spec, out, "--dask", cluster.address)
    wait_for(lambda: list(out.glob("runs/*/verdict.json")))
    return process


def run(spec: Path, out: Path, *options: str, status: int = 0) -> str:
    process = start(spec, out, *options)
    said, _ = process.communicate(timeout=280)
    assert process.returncode == status, said
    assert "Traceback" not in said
    return said


def same(first: Path, second: Path) -> None:
    """Run directories of two campaigns are the same, but for the instant of collection."""
    ones, others = runs_of(first), runs_of(second)
    assert list(ones) == list(others)
    for scheme, directory in ones.items():
        assert list_differing_files(directory, others[scheme]) == [], scheme
        manifests = [each / "manifest.json" for each in (directory, others[scheme])]
        read = [json.loads(each.read_bytes()) for each in manifests]
        assert [each.pop("collected_s") for each in read] != [None, None]
        cells = [each.pop("cell") for each in read]
        assert cells[0] == "cell0"
        assert read[0] == read[1], scheme


def stamps(directory: Path) -> dict[str, int]:
    return {str(each): each.stat().st_mtime_ns for each in directory.rglob("*") if each.is_file()}


def test_a_cluster_gives_the_same_bytes_as_one_machine(cluster, tmp_path):
    """Use workers without the kernel and the module of the user's own scheme."""
    new_scheme(tmp_path)
    prefix = make_prefix(tmp_path / "prefix", without={"guest"})
    for name in ("one", "two"):
        cluster.add(name, NAGI_PREFIX=str(prefix))
    spec = written(tmp_path, "westwoodvt, mine.c")
    said = run(spec, tmp_path / "there", "--dask", cluster.address)
    assert "2 runs in the virtual lab, on " in said and f" of {cluster.address}" in said
    assert "dashboard: http://127.0.0.1:" in said
    assert "certificates and metrics included" in said
    run(spec, tmp_path / "here")
    same(tmp_path / "there", tmp_path / "here")
    fetched = {Path(file).name for file in stamps(cluster.cache("one"))}
    assert fetched >= {"linux", "nagi_reno.ko", "nagi_mine.ko"}


def test_a_worker_that_is_lost_leaves_its_run_to_others(cluster, tmp_path):
    cluster.add("one")
    spec = written(tmp_path, "cubic, newreno, reno, vegas", seconds=8, rate="40 Mb/s")
    process = start(spec, tmp_path / "out", "--dask", cluster.address)
    wait_for(lambda: list(tmp_path.glob("out/runs/*/verdict.json")))
    cluster.stop("one")  # until another is there, however long that takes
    cluster.add("two")
    wait_for(lambda: "Registered to" in cluster.log("two"), seconds=200)
    cluster.kill("one")
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert re.search(r"worker one \(tcp:.*\) is gone; other workers repeat its [1-3] runs?", said)
    assert "4 valid" in said


@pytest.mark.slow
def test_what_is_there_by_content_is_not_fetched_again(cluster, tmp_path):
    cluster.add("one")
    spec = written(tmp_path, "cubic")
    run(spec, tmp_path / "first", "--dask", cluster.address)
    before = stamps(cluster.cache("one"))
    assert before
    run(spec, tmp_path / "second", "--dask", cluster.address)
    assert stamps(cluster.cache("one")) == before


@pytest.mark.slow
def test_what_is_done_stays_if_the_scheduler_goes(cluster, tmp_path):
    cluster.add("one")
    spec, out = written(tmp_path, "cubic, newreno, bbr, vegas", seconds=12), tmp_path / "out"
    process = start_first_run(spec, out, cluster)
    cluster.kill()
    said, _ = process.communicate(timeout=100)
    assert process.returncode == 1, said
    assert f"nagi: the scheduler at {cluster.address} is gone" in said
    assert "and kept in" in said and "the same command continues" in said
    assert "Traceback" not in said
    done = stamps(out / "runs")
    assert run(spec, out, "--dask", cluster.address, status=2)
    assert "4 valid" in run(spec, out)
    assert done.items() <= stamps(out / "runs").items()


@pytest.mark.slow
def test_a_scheduler_that_comes_back_is_joined_again(cluster, tmp_path):
    """Workers of Dask end with their scheduler, so another one must be started as well."""
    cluster.add("one")
    spec, out = written(tmp_path, "cubic, newreno, bbr, vegas", seconds=12), tmp_path / "out"
    process = start_first_run(spec, out, cluster)
    done = stamps(out / "runs")
    cluster.kill()
    cluster.wait("one")
    cluster.restart_scheduler()
    cluster.add("two")
    said, _ = process.communicate(timeout=280)
    assert process.returncode == 0, said
    gone = f"the scheduler at {cluster.address} is gone; waiting up to 30 s for it to come back"
    text = " ".join(said.split())
    assert text.count(gone) == 1 and f"the scheduler at {cluster.address} is back" in text
    assert "4 runs: 4 valid, 0 invalid, 0 failed" in text and "Traceback" not in said
    assert done.items() <= stamps(out / "runs").items()


@pytest.mark.slow
def test_interrupted_it_ends_what_goes_on_there(cluster, tmp_path):
    cluster.add("one")
    spec, out = (
        written(tmp_path, "cubic, newreno, bbr", seconds=20, rate="60 Mb/s"),
        tmp_path / "out",
    )
    process = start_first_run(spec, out, cluster)
    wait_for(guests)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command continues" in said
    wait_for(lambda: not guests(), 10)


@pytest.mark.slow
def test_workers_of_another_build_are_left_out(cluster, tmp_path):
    other = make_prefix(tmp_path / "other", without={"nagi-link", "guest"})
    shutil.copy(executable("nagi-link"), other / "bin" / "nagi-link")
    with (other / "bin" / "nagi-link").open("ab") as file:
        file.write(b"another")
    cluster.add("other", NAGI_PREFIX=str(other))
    spec, out = written(tmp_path, "cubic"), tmp_path / "out"
    said = run(spec, out, "--dask", cluster.address, status=2)
    assert re.search(
        r"worker other \(tcp://.*\) is left out: it has another build: nagi-link;", said
    )
    assert "install the same build of nagi 0.1.0 there as here" in said
    assert f"{cluster.address} has no worker that can be used" in said
    assert not out.exists()
    cluster.add("good")
    wait_for(lambda: "Registered to" in cluster.log("good"))
    said = run(spec, out, "--dask", cluster.address)
    assert "worker other" in said and "1 valid" in said


@pytest.mark.slow
def test_repeats_are_added_there_too(cluster, tmp_path):
    cluster.add("one")
    extra = "until: {metric: agi, halfwidth: 0.001, at_most: 5}\nrepeats: 3\n"
    spec = written(tmp_path, "cubic", extra=extra)
    said = run(spec, tmp_path / "there", "--dask", cluster.address)
    assert "more runs, because confidence intervals are wider than requested" in said
    run(spec, tmp_path / "here")
    ones, others = (tmp_path / name / "runs" for name in ("there", "here"))
    assert {path.name for path in ones.iterdir()} == {path.name for path in others.iterdir()}


@pytest.mark.slow
def test_metrics_are_computed_there_too(cluster, tmp_path):
    cluster.add("one")
    spec, out = written(tmp_path, "cubic, newreno"), tmp_path / "out"
    run(spec, out)
    metrics = {file: file.read_bytes() for file in out.glob("runs/*/metrics.json")}
    for file in metrics:
        file.unlink()
    done = subprocess.run(
        [NAGI, "analyze", str(out), "--dask", cluster.address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {file: file.read_bytes() for file in metrics} == metrics
