# SPDX-License-Identifier: Apache-2.0
"""Noise of a host: the kernel's counters, and null for what the kernel does not count."""

from __future__ import annotations

from pathlib import Path

import pytest
from nagi_agent.noise import NoiseMeter
from nagi_contracts.records import Noise

CGROUP = "system.slice/agent.service"


class Machine:
    """A directory with the files of /proc and /sys from which noise is measured."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/self/cgroup", f"1:cpu:/\n0::/{CGROUP}\n")
        self.write("proc/self/mountinfo", f"31 24 0:27 / {root}/cgroup rw - cgroup2 cgroup2 rw\n")
        self.write("cgroup/cpu.stat", "usage_usec 5\n")  # the root has no limit

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def set_ticks(self, *fields: int) -> None:
        """Write /proc/stat. Fields: user, nice, system, idle, iowait, irq, softirq, steal."""
        words = " ".join(map(str, fields))
        self.write("proc/stat", f"cpu  {words} 0 0\ncpu0 {words} 0 0\nintr 9\n")

    def set_pressure(self, resource: str, some: int, full: int) -> None:
        averages = "avg10=0.00 avg60=0.00 avg300=0.00"
        text = f"some {averages} total={some}\nfull {averages} total={full}\n"
        self.write(f"proc/pressure/{resource}", text)

    def set_throttled(self, cgroup: str, times: int, us: int) -> None:
        text = f"usage_usec 1\nnr_periods 9\nnr_throttled {times}\nthrottled_usec {us}\n"
        self.write(f"cgroup/{cgroup}/cpu.stat", text)

    def set_heat(self, processor: int, times: int) -> None:
        directory = f"sys/devices/system/cpu/cpu{processor}/thermal_throttle"
        self.write(f"{directory}/core_throttle_count", f"{times}\n")
        self.write(f"{directory}/core_throttle_total_time_ms", "5\n")


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def measure(machine: Machine, change) -> Noise:
    meter = NoiseMeter(str(machine.root))
    meter.start_interval()
    change()
    record = meter.end_interval()
    meter.close()
    return Noise.model_validate(record.to_json())


def test_processor_time_is_divided_by_its_use(machine):
    machine.set_ticks(100, 50, 20, 1000, 30, 5, 5, 7)
    noise = measure(machine, lambda: machine.set_ticks(130, 70, 26, 1010, 36, 7, 7, 31))
    # Of 100 ticks: 30 user, 20 nice, 6 system, 10 idle, 6 waiting, 2 + 2 interrupts, 24 stolen.
    assert (noise.busy, noise.nice, noise.stolen) == (0.4, 0.2, 0.24)


def test_a_kernel_that_does_not_count_stolen_time(machine):
    machine.write("proc/stat", "cpu 1 0 1 8 0 0 0\n")
    noise = measure(machine, lambda: machine.write("proc/stat", "cpu 2 0 2 16 0 0 0\n"))
    assert (noise.busy, noise.stolen) == (0.2, None)


def test_pressure_is_a_share_of_the_time(machine):
    machine.set_ticks(*[1] * 8)
    for resource in ("cpu", "memory", "io"):
        machine.set_pressure(resource, 1000, 100)

    def change() -> None:
        machine.set_pressure("cpu", 1000 + 10**12, 100)  # far more than there was time for
        machine.set_pressure("io", 1000, 100)

    noise = measure(machine, change)
    assert noise.cpu_some == pytest.approx(10**6 / noise.interval_s, rel=1e-3)
    assert (noise.memory_some, noise.io_some, noise.io_full) == (0, 0, 0)


def test_limits_of_the_cgroup_and_of_those_above_add_up(machine):
    machine.set_ticks(*[1] * 8)
    machine.set_throttled(CGROUP, 3, 1_000)
    machine.set_throttled("system.slice", 10, 20_000)

    def change() -> None:
        machine.set_throttled(CGROUP, 5, 301_000)
        machine.set_throttled("system.slice", 11, 920_000)

    noise = measure(machine, change)
    assert (noise.throttled, noise.throttled_s) == (3, 1.2)


def test_hot_processors_are_counted(machine):
    machine.set_ticks(*[1] * 8)
    machine.set_heat(0, 4)
    machine.set_heat(11, 0)
    noise = measure(machine, lambda: machine.set_heat(11, 2))
    assert noise.frequency_throttled == 2


def test_values_that_a_host_does_not_report_are_null_and_not_0(machine):
    machine.set_ticks(*[1] * 8)
    noise = measure(machine, lambda: machine.set_ticks(*[2] * 8))
    assert noise.busy is not None
    reported = ("interval_s", "busy", "nice", "stolen")
    assert {value for name, value in noise.model_dump().items() if name not in reported} == {None}


def test_an_interval_begins_at_the_end_of_the_previous_one(machine):
    machine.set_ticks(0, 0, 0, 0, 0, 0, 0, 0)
    meter = NoiseMeter(str(machine.root))
    machine.set_ticks(50, 0, 0, 50, 0, 0, 0, 0)
    assert meter.end_interval().busy == 0.5
    machine.set_ticks(50, 0, 0, 150, 0, 0, 0, 0)
    assert meter.end_interval().busy == 0
    meter.close()


def test_noise_of_this_machine_is_measured():
    meter = NoiseMeter()
    noise = Noise.model_validate(meter.end_interval().to_json())
    meter.close()
    assert noise.interval_s > 0
