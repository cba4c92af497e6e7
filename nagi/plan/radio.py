# SPDX-License-Identifier: Apache-2.0
"""Links that are radios: what their modems make of a link's rate, and what nagi-sdr needs here.

How long a packet is on the air, gr-nagi's air_time.py says, which needs nothing but Python: planned
and transmitted by the same lines.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from nagi_contracts import paths
from nagi_contracts.doctor import (
    STAGES_OF_DEVICES,
    STAGES_OF_RADIO,
    RadioStage,
    StageOfRadio,
)
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import sha256_of
from pydantic import ValidationError

from nagi.plan.schemes import Availability

MIN_DELAY_NS = 10_000_000  # waveforms are computed while the packet is on its way
# Interference is known 2 ms after a transmission is over: margin_ns of gr-nagi's `interference`.
MIN_FEEDBACK_NS = 4_000_000
INSTALL = "install GNU Radio and nagi-sdr with `make sdr`"
INSTALL_THERE = f"{INSTALL} there, or say where it is as `nagi_sdr`"
SYSTEM_PYTHON = "/usr/bin/python3"  # GNU Radio is of its modules
_TIMEOUT_S = 120.0
# What belongs to nagi-sdr, beside its program, below the prefix where `make sdr` installs.
_INSTALLED = (
    "lib/nagi/sdr",
    "lib/python3*/dist-packages/gnuradio/nagi",
    "lib/**/libgnuradio-nagi*.so*",
    "lib/nagi/uhd-double",
)


class AirTime(Protocol):
    """What air_time.py offers. Each raises ValueError for what the modem cannot do."""

    MAX_SAMPLE_RATE_HZ: int

    def compute_rate_bps(
        self, modem: str, modulation: str, sample_rate_hz: int, code_rate: str
    ) -> int: ...

    def compute_overhead_bytes(
        self, modem: str, modulation: str, sample_rate_hz: int, code_rate: str
    ) -> int: ...

    def compute_modem_digest(self, modem: str, modulation: str, code_rate: str) -> str: ...


@cache
def air_time() -> AirTime:
    """gr-nagi's module. Raises InputError if it is not there."""
    source = paths.AIR_TIME
    if not source.is_file():
        raise refuse(f"there is no {source}", "restore it: it belongs to nagi")
    return cast(AirTime, paths.module_at(source))


def sample_rate_for(modem: str, modulation: str, code_rate: str, rate_bps: int) -> int:
    """The smallest sample rate in Hz at which a modem carries `rate_bps`. Raises ValueError."""

    def carried(sample_rate_hz: int) -> int:
        return air_time().compute_rate_bps(modem, modulation, sample_rate_hz, code_rate)

    maximum, minimum = 1, 0
    while carried(maximum) < rate_bps:
        # At the limit, the modem's own complaint ends this.
        limit = air_time().MAX_SAMPLE_RATE_HZ
        minimum, maximum = maximum, limit + 1 if maximum == limit else min(2 * maximum, limit)
    while maximum - minimum > 1:
        middle = (minimum + maximum) // 2
        if carried(middle) < rate_bps:
            minimum = middle
        else:
            maximum = middle
    return maximum


def names(plans: Iterable[RunPlan]) -> list[str]:
    """The links of `plans` that are radios, each once."""
    return list(dict.fromkeys(link.name for plan in plans for link in plan.radios()))


def of_links(links: Sequence[str]) -> str:
    """`link wireless is a radio`."""
    are = "is a radio" if len(links) == 1 else "are radios"
    return f"link{'' if len(links) == 1 else 's'} {', '.join(links)} {are}"


def nagi_sdr() -> Path:
    return paths.executable("nagi-sdr")


def installed_parts() -> list[Path]:
    """Return nagi-sdr and what it finds beside itself, files and directories."""
    program = nagi_sdr().resolve()
    found = {part for pattern in _INSTALLED for part in program.parent.parent.glob(pattern)}
    return [program, *sorted(found)]


def checksum() -> str | None:
    """Stands for what radios run on this machine; None if there is no nagi-sdr."""
    if not nagi_sdr().is_file():
        return None
    program, *parts = installed_parts()
    prefix = program.parent.parent
    found = {
        file
        for part in parts
        for file in (part.rglob("*") if part.is_dir() else [part])
        if file.is_file()
    }
    mine = [program, *sorted(path for path in found if path.suffix != ".pyc")]
    sums = [[str(path.relative_to(prefix)), sha256_of(path)] for path in mine]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def availability() -> Availability:
    """Whether links can be radios on this machine."""
    library = look_at_library()
    if not library.ok:
        return Availability(False, library.detail, INSTALL)
    if not nagi_sdr().is_file():
        return Availability(False, f"there is no {nagi_sdr()}", INSTALL)
    return Availability(True)


def look_at_library() -> RadioStage:
    """The first stage: whether the system's Python has GNU Radio."""
    ask = "from gnuradio import gr; print(gr.version())"
    said = _run([SYSTEM_PYTHON, "-c", ask])
    if isinstance(said, str):
        return RadioStage(stage="library", ok=False, detail=said, cure=INSTALL)
    if said.returncode != 0:
        last = said.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        why = f"{SYSTEM_PYTHON} does not import gnuradio: {last[0]}"
        return RadioStage(stage="library", ok=False, detail=why, cure=INSTALL)
    version = f"GNU Radio {said.stdout.strip()} under {SYSTEM_PYTHON}"
    return RadioStage(stage="library", ok=True, detail=version)


def look_at_stages(devices: Sequence[str] = ()) -> list[RadioStage]:
    """All stages, up to the first that does not do. `devices`: options of `nagi-sdr doctor` for
    radio hardware; without, the simulated radio is tried."""
    library = look_at_library()
    if not library.ok:
        return [library]
    if not devices:
        # nagi-sdr tells of all but the first.
        return [library, *_of_nagi_sdr(STAGES_OF_RADIO[1:], [])]
    found = _of_nagi_sdr(STAGES_OF_DEVICES, devices)
    first, *others = found
    if first.stage == library.stage and first.ok:
        first = first.model_copy(update={"detail": f"{library.detail}, {first.detail}"})
    return [first, *others]


def _of_nagi_sdr(further: Sequence[StageOfRadio], options: Sequence[str]) -> list[RadioStage]:
    program = nagi_sdr()
    first = further[0]
    if not program.is_file():
        return [RadioStage(stage=first, ok=False, detail=f"there is no {program}", cure=INSTALL)]
    said = _run([str(program), "doctor", "--json", *options])
    if isinstance(said, str):
        return [RadioStage(stage=first, ok=False, detail=said, cure=INSTALL)]
    found: list[RadioStage] = []
    for line in said.stdout.splitlines():
        if '"stage"' not in line:
            continue  # what GNU Radio itself says is between the lines
        try:
            stage = RadioStage.model_validate_json(line)
        except ValidationError:
            break
        if stage.stage in further:
            found.append(stage)
        if not stage.ok:
            return found
    missing = [stage for stage in further if stage not in {each.stage for each in found}]
    if missing:
        words = " ".join(said.stderr.split()[-40:]) or "it says nothing"
        why = f"nagi-sdr ended with status {said.returncode} before it: {words}"
        found.append(RadioStage(stage=missing[0], ok=False, detail=why, cure=INSTALL))
    return found


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | str:
    """How a program ended, or why it could not be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} was not done after {_TIMEOUT_S:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}"
