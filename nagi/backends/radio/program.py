# SPDX-License-Identifier: Apache-2.0
"""Find the files of nagi-sdr on this machine, and run its test of GNU Radio and radio hardware."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nagi_contracts import paths
from nagi_contracts.base import Contract
from pydantic import Field, ValidationError

INSTALL = "install GNU Radio and nagi-sdr with `make sdr`"
SYSTEM_PYTHON = "/usr/bin/python3"  # the Python that has GNU Radio's modules
_TIMEOUT_S = 120.0
# Further files of nagi-sdr, relative to the prefix where `make sdr` installs it.
_INSTALLED = (
    "lib/nagi/sdr",
    "lib/python3*/dist-packages/gnuradio/nagi",
    "lib/**/libgnuradio-nagi*.so*",
    "lib/nagi/uhd-double",
)
# The steps of the test:
# library: GNU Radio can be imported, flowgraph: nagi's blocks work in GNU Radio,
# loopback: waveforms pass from sender to receiver, packets: packets of all sizes pass,
# ip: packets of a network interface pass; only for radio hardware: images: UHD's images are
# installed, device: the devices answer, rate: the devices have the sample rate.
Step = Literal["library", "flowgraph", "images", "device", "rate", "loopback", "packets", "ip"]
# The steps of the simulated radio and of radio hardware, in their order.
STEPS: tuple[Step, ...] = ("library", "flowgraph", "loopback", "packets", "ip")
STEPS_OF_DEVICES: tuple[Step, ...] = (
    "library", "images", "device", "rate", "loopback", "packets", "ip"
)  # fmt: skip


class StepResult(Contract):
    """The result of one step of the test: a line of the output of `nagi-sdr doctor --json`."""

    stage: Step
    ok: bool
    detail: str = Field(description="the finding")
    cure: str | None = Field(None, description="for a failed step: what the user can do")


def locate_nagi_sdr() -> Path:
    """Return the path where nagi-sdr is installed. The file need not exist."""
    return paths.executable("nagi-sdr")


def list_installed_paths() -> list[Path]:
    """Return the path of nagi-sdr, then the paths of the installed files and folders it needs."""
    program = locate_nagi_sdr().resolve()
    further_paths = {path for pattern in _INSTALLED for path in program.parent.parent.glob(pattern)}
    return [program, *sorted(further_paths)]


def check_library() -> StepResult:
    """Check the first step: whether the system's Python can import GNU Radio."""
    script = "from gnuradio import gr; print(gr.version())"
    result = _run([SYSTEM_PYTHON, "-c", script])
    if isinstance(result, str):
        return StepResult(stage="library", ok=False, detail=result, cure=INSTALL)
    if result.returncode != 0:
        last_line = result.stderr.strip().splitlines()[-1:] or ["no message"]
        detail = f"{SYSTEM_PYTHON} does not import gnuradio: {last_line[0]}"
        return StepResult(stage="library", ok=False, detail=detail, cure=INSTALL)
    version = f"GNU Radio {result.stdout.strip()} under {SYSTEM_PYTHON}"
    return StepResult(stage="library", ok=True, detail=version)


def check_steps(devices: Sequence[str] = ()) -> list[StepResult]:
    """Check the steps in order, and return their results, up to the first step that fails.

    Args:
        devices: Options of `nagi-sdr doctor` for radio hardware. If there are none, the simulated
            radio is checked.
    """
    library = check_library()
    if not library.ok:
        return [library]
    if not devices:
        # The first step has been checked here. nagi-sdr checks the others.
        return [library, *_check_with_nagi_sdr(STEPS[1:], [])]
    results = _check_with_nagi_sdr(STEPS_OF_DEVICES, devices)
    first, *others = results
    if first.stage == library.stage and first.ok:
        first = first.model_copy(update={"detail": f"{library.detail}, {first.detail}"})
    return [first, *others]


def _check_with_nagi_sdr(steps: Sequence[Step], options: Sequence[str]) -> list[StepResult]:
    """Run `nagi-sdr doctor`, and return its results of `steps`, up to the first step that fails.

    If nagi-sdr cannot be run or ends early, the first step without a result fails.
    """
    program = locate_nagi_sdr()
    first = steps[0]
    if not program.is_file():
        return [StepResult(stage=first, ok=False, detail=f"there is no {program}", cure=INSTALL)]
    result = _run([str(program), "doctor", "--json", *options])
    if isinstance(result, str):
        return [StepResult(stage=first, ok=False, detail=result, cure=INSTALL)]
    results: list[StepResult] = []
    for line in result.stdout.splitlines():
        if '"stage"' not in line:
            continue  # GNU Radio prints other messages between the lines
        try:
            step_result = StepResult.model_validate_json(line)
        except ValidationError:
            break
        if step_result.stage in steps:
            results.append(step_result)
        if not step_result.ok:
            return results
    reported_steps = {step_result.stage for step_result in results}
    missing_steps = [step for step in steps if step not in reported_steps]
    if missing_steps:
        output = " ".join(result.stderr.split()[-40:]) or "no message"
        detail = f"nagi-sdr ended with status {result.returncode} before this step: {output}"
        results.append(StepResult(stage=missing_steps[0], ok=False, detail=detail, cure=INSTALL))
    return results


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | str:
    """Run a command; return the finished process, or a message if it could not be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {_TIMEOUT_S:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}"
