# SPDX-License-Identifier: Apache-2.0
"""nagi-sdr on this machine: its files, and its own test of GNU Radio and of radio hardware."""

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
# Further files of nagi-sdr, relative to the prefix to which `make sdr` installs.
_INSTALLED = (
    "lib/nagi/sdr",
    "lib/python3*/dist-packages/gnuradio/nagi",
    "lib/**/libgnuradio-nagi*.so*",
    "lib/nagi/uhd-double",
)
# The steps of the test: GNU Radio itself, nagi's blocks in it, waveforms in a loopback, packets of
# all sizes, packets of an interface. For radio hardware, also UHD's images, the devices and their
# rates.
Step = Literal["library", "flowgraph", "images", "device", "rate", "loopback", "packets", "ip"]
# The steps in the order in which they are examined.
STEPS: tuple[Step, ...] = ("library", "flowgraph", "loopback", "packets", "ip")
STEPS_OF_DEVICES: tuple[Step, ...] = (
    "library", "images", "device", "rate", "loopback", "packets", "ip"
)  # fmt: skip


class StepResult(Contract):
    """A line of the output of `nagi-sdr doctor --json`: one step of its test of this machine."""

    stage: Step
    ok: bool
    detail: str = Field(description="the finding")
    cure: str | None = Field(None, description="for a failed step: what helps")


def locate_nagi_sdr() -> Path:
    return paths.executable("nagi-sdr")


def list_installed_parts() -> list[Path]:
    """Return the paths of nagi-sdr and of the files and directories that it needs."""
    program = locate_nagi_sdr().resolve()
    parts = {part for pattern in _INSTALLED for part in program.parent.parent.glob(pattern)}
    return [program, *sorted(parts)]


def check_library() -> StepResult:
    """Check the first step: whether the system's Python has GNU Radio."""
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
    """Check all steps in order, up to the first that fails.

    Args:
        devices: Options of `nagi-sdr doctor` for radio hardware. Without options, the simulated
            radio is checked.
    """
    library = check_library()
    if not library.ok:
        return [library]
    if not devices:
        # nagi-sdr checks all steps but the first.
        return [library, *_check_with_nagi_sdr(STEPS[1:], [])]
    results = _check_with_nagi_sdr(STEPS_OF_DEVICES, devices)
    first, *others = results
    if first.stage == library.stage and first.ok:
        first = first.model_copy(update={"detail": f"{library.detail}, {first.detail}"})
    return [first, *others]


def _check_with_nagi_sdr(steps: Sequence[Step], options: Sequence[str]) -> list[StepResult]:
    """Run `nagi-sdr doctor`; return its findings about `steps`, up to the first that fails."""
    program = locate_nagi_sdr()
    first = steps[0]
    if not program.is_file():
        return [StepResult(stage=first, ok=False, detail=f"there is no {program}", cure=INSTALL)]
    result = _run([str(program), "doctor", "--json", *options])
    if isinstance(result, str):
        return [StepResult(stage=first, ok=False, detail=result, cure=INSTALL)]
    findings: list[StepResult] = []
    for line in result.stdout.splitlines():
        if '"stage"' not in line:
            continue  # GNU Radio prints messages of its own between the lines
        try:
            finding = StepResult.model_validate_json(line)
        except ValidationError:
            break
        if finding.stage in steps:
            findings.append(finding)
        if not finding.ok:
            return findings
    reported = {finding.stage for finding in findings}
    missing = [step for step in steps if step not in reported]
    if missing:
        output = " ".join(result.stderr.split()[-40:]) or "no message"
        detail = f"nagi-sdr ended with status {result.returncode} before it: {output}"
        findings.append(StepResult(stage=missing[0], ok=False, detail=detail, cure=INSTALL))
    return findings


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | str:
    """Run a command; return the finished process, or a message if it could not be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} was not done after {_TIMEOUT_S:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}"
