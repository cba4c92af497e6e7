# SPDX-License-Identifier: Apache-2.0
"""Check for nagi-sdr on this machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.doctor import (
    STAGES_OF_DEVICES,
    STAGES_OF_RADIO,
    RadioStage,
    StageOfRadio,
)
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import compute_sha256
from pydantic import ValidationError

from nagi.plan.schemes import Availability

INSTALL = "install GNU Radio and nagi-sdr with `make sdr`"
INSTALL_THERE = f"{INSTALL} there, or set its path as `nagi_sdr`"
SYSTEM_PYTHON = "/usr/bin/python3"  # the Python that has GNU Radio's modules
_TIMEOUT_S = 120.0
# Further files of nagi-sdr, relative to the prefix to which `make sdr` installs.
_INSTALLED = (
    "lib/nagi/sdr",
    "lib/python3*/dist-packages/gnuradio/nagi",
    "lib/**/libgnuradio-nagi*.so*",
    "lib/nagi/uhd-double",
)


def list_radios(plans: Iterable[RunPlan]) -> list[str]:
    """Return the names of the links of `plans` that are radios, each once."""
    return list(dict.fromkeys(link.name for plan in plans for link in plan.radios()))


def describe_links(links: Sequence[str]) -> str:
    """Return a clause for messages, such as `link wireless is a radio`."""
    predicate = "is a radio" if len(links) == 1 else "are radios"
    return f"link{'' if len(links) == 1 else 's'} {', '.join(links)} {predicate}"


def locate_nagi_sdr() -> Path:
    return paths.executable("nagi-sdr")


def list_installed_parts() -> list[Path]:
    """Return the paths of nagi-sdr and of the files and directories that it needs."""
    program = locate_nagi_sdr().resolve()
    parts = {part for pattern in _INSTALLED for part in program.parent.parent.glob(pattern)}
    return [program, *sorted(parts)]


def compute_checksum() -> str | None:
    """Return a checksum of nagi-sdr and its files on this machine, or None without nagi-sdr."""
    if not locate_nagi_sdr().is_file():
        return None
    program, *parts = list_installed_parts()
    prefix = program.parent.parent
    installed = {
        file
        for part in parts
        for file in (part.rglob("*") if part.is_dir() else [part])
        if file.is_file()
    }
    checked = [program, *sorted(path for path in installed if path.suffix != ".pyc")]
    sums = [[str(path.relative_to(prefix)), compute_sha256(path)] for path in checked]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def check_availability() -> Availability:
    """Return whether links can be radios on this machine."""
    library = check_library()
    if not library.ok:
        return Availability(False, library.detail, INSTALL)
    if not locate_nagi_sdr().is_file():
        return Availability(False, f"there is no {locate_nagi_sdr()}", INSTALL)
    return Availability(True)


def check_library() -> RadioStage:
    """Check the first stage: whether the system's Python has GNU Radio."""
    script = "from gnuradio import gr; print(gr.version())"
    result = _run([SYSTEM_PYTHON, "-c", script])
    if isinstance(result, str):
        return RadioStage(stage="library", ok=False, detail=result, cure=INSTALL)
    if result.returncode != 0:
        last_line = result.stderr.strip().splitlines()[-1:] or ["no message"]
        detail = f"{SYSTEM_PYTHON} does not import gnuradio: {last_line[0]}"
        return RadioStage(stage="library", ok=False, detail=detail, cure=INSTALL)
    version = f"GNU Radio {result.stdout.strip()} under {SYSTEM_PYTHON}"
    return RadioStage(stage="library", ok=True, detail=version)


def check_stages(devices: Sequence[str] = ()) -> list[RadioStage]:
    """Check all stages in order, up to the first that fails.

    Args:
        devices: Options of `nagi-sdr doctor` for radio hardware. Without options, the simulated
            radio is checked.
    """
    library = check_library()
    if not library.ok:
        return [library]
    if not devices:
        # nagi-sdr checks all stages but the first.
        return [library, *_check_with_nagi_sdr(STAGES_OF_RADIO[1:], [])]
    stages = _check_with_nagi_sdr(STAGES_OF_DEVICES, devices)
    first, *others = stages
    if first.stage == library.stage and first.ok:
        first = first.model_copy(update={"detail": f"{library.detail}, {first.detail}"})
    return [first, *others]


def _check_with_nagi_sdr(
    stages: Sequence[StageOfRadio], options: Sequence[str]
) -> list[RadioStage]:
    """Run `nagi-sdr doctor`; return its findings about `stages`, up to the first that fails."""
    program = locate_nagi_sdr()
    first = stages[0]
    if not program.is_file():
        return [RadioStage(stage=first, ok=False, detail=f"there is no {program}", cure=INSTALL)]
    result = _run([str(program), "doctor", "--json", *options])
    if isinstance(result, str):
        return [RadioStage(stage=first, ok=False, detail=result, cure=INSTALL)]
    findings: list[RadioStage] = []
    for line in result.stdout.splitlines():
        if '"stage"' not in line:
            continue  # GNU Radio prints messages of its own between the lines
        try:
            finding = RadioStage.model_validate_json(line)
        except ValidationError:
            break
        if finding.stage in stages:
            findings.append(finding)
        if not finding.ok:
            return findings
    reported = {finding.stage for finding in findings}
    missing = [stage for stage in stages if stage not in reported]
    if missing:
        output = " ".join(result.stderr.split()[-40:]) or "no message"
        detail = f"nagi-sdr ended with status {result.returncode} before it: {output}"
        findings.append(RadioStage(stage=missing[0], ok=False, detail=detail, cure=INSTALL))
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
