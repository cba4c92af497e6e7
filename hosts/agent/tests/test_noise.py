# SPDX-License-Identifier: Apache-2.0
"""What disturbs a host is recorded as the kernel counts it, and what it does not count as null."""

from __future__ import annotations

from pathlib import Path

import pytest
from nagi_agent.noise import NoiseMeter
from nagi_contracts.records import Noise

CGROUP = "system.slice/agent.service"


class Machine:
    """A tree with the files of /proc and /sys that tell of noise."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/self/cgroup", f"1:cpu:/\n0::/{CGROUP}\n")
        self.write("proc/self/mountinfo", f"31 24 0:27 / {root}/cgroup rw - cgroup2 cgroup2 rw\n")
        self.write("cgroup/cpu.stat", "usage_usec 5\n")  # the root has no limit

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ticks(self, *fields: int) -> None:
        """user, nice, system, idle, iowait, irq, softirq, steal."""
        words = " ".join(map(str, fields))
        self.write("proc/stat", f"cpu  {words} 0 0\ncpu0 {words} 0 0\nintr 9\n")

    def pressure(self, what: str, some: int, full: int) -> None:
        averages = "avg10=0.00 avg60=0.00 avg300=0.00"
        text = f"some {averages} total={some}\nfull {averages} total={full}\n"
        self.write(f"proc/pressure/{what}", text)

    def throttled(self, cgroup: str, times: int, us: int) -> None:
        text = f"usage_usec 1\nnr_periods 9\nnr_throttled {times}\nthrottled_usec {us}\n"
        self.write(f"cgroup/{cgroup}/cpu.stat", text)

    def hot(self, processor: int, times: int) -> None:
        place = f"sys/devices/system/cpu/cpu{processor}/thermal_throttle"
        self.write(f"{place}/core_throttle_count", f"{times}\n")
        self.write(f"{place}/core_throttle_total_time_ms", "5\n")


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def measured(machine: Machine, change) -> Noise:
    meter = NoiseMeter(str(machine.root))
    meter.start_interval()
    change()
    record = meter.end_interval()
    meter.close()
    return Noise.model_validate(record.to_json())


def test_processors_are_told_apart_by_who_had_them(machine):
    machine.ticks(100, 50, 20, 1000, 30, 5, 5, 7)
    found = measured(machine, lambda: machine.ticks(130, 70, 26, 1010, 36, 7, 7, 31))
    # Of 100 ticks: 30 user, 20 nice, 6 system, 10 idle, 6 waiting, 2 + 2 interrupts, 24 stolen.
    assert (found.busy, found.nice, found.stolen) == (0.4, 0.2, 0.24)


def test_a_kernel_that_does_not_tell_of_stolen_time(machine):
    machine.write("proc/stat", "cpu 1 0 1 8 0 0 0\n")
    found = measured(machine, lambda: machine.write("proc/stat", "cpu 2 0 2 16 0 0 0\n"))
    assert (found.busy, found.stolen) == (0.2, None)


def test_pressure_is_a_share_of_the_time(machine):
    machine.ticks(*[1] * 8)
    for what in ("cpu", "memory", "io"):
        machine.pressure(what, 1000, 100)

    def change() -> None:
        machine.pressure("cpu", 1000 + 10**12, 100)  # far more than there was time for
        machine.pressure("io", 1000, 100)

    found = measured(machine, change)
    assert found.cpu_some == pytest.approx(10**6 / found.interval_s, rel=1e-3)
    assert (found.memory_some, found.io_some, found.io_full) == (0, 0, 0)


def test_limits_of_the_cgroup_and_of_those_above_add_up(machine):
    machine.ticks(*[1] * 8)
    machine.throttled(CGROUP, 3, 1_000)
    machine.throttled("system.slice", 10, 20_000)

    def change() -> None:
        machine.throttled(CGROUP, 5, 301_000)
        machine.throttled("system.slice", 11, 920_000)

    found = measured(machine, change)
    assert (found.throttled, found.throttled_s) == (3, 1.2)


def test_hot_processors_are_counted(machine):
    machine.ticks(*[1] * 8)
    machine.hot(0, 4)
    machine.hot(11, 0)
    found = measured(machine, lambda: machine.hot(11, 2))
    assert found.frequency_throttled == 2


def test_what_a_host_does_not_tell_is_null_and_not_0(machine):
    machine.ticks(*[1] * 8)
    found = measured(machine, lambda: machine.ticks(*[2] * 8))
    assert found.busy is not None
    told = ("interval_s", "busy", "nice", "stolen")
    assert {value for name, value in found.model_dump().items() if name not in told} == {None}


def test_without_a_beginning_it_measures_from_the_end_before(machine):
    machine.ticks(0, 0, 0, 0, 0, 0, 0, 0)
    meter = NoiseMeter(str(machine.root))
    machine.ticks(50, 0, 0, 50, 0, 0, 0, 0)
    assert meter.end_interval().busy == 0.5
    machine.ticks(50, 0, 0, 150, 0, 0, 0, 0)
    assert meter.end_interval().busy == 0
    meter.close()


def test_this_machine_tells_of_its_processors():
    meter = NoiseMeter()
    found = Noise.model_validate(meter.end_interval().to_json())
    meter.close()
    assert found.interval_s > 0
