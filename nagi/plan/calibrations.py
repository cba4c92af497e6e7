# SPDX-License-Identifier: Apache-2.0
"""Tables of `nagi-sdr calibrate` that an experiment names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nagi_contracts.calibration import CalibratedMode, Calibration
from nagi_contracts.errors import BadValue, refuse

from nagi.plan import radio
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import named_file
from nagi.spec.yaml_source import Place


def calibrated_mode(
    request: PlanRequest,
    place: Place,
    table: str,
    *,
    modem: str | None,
    modulation: str | None,
    code_rate: str | None,
) -> CalibratedMode:
    """The modem of a table that an experiment means. Raises InputError if there is none, or if this
    version of nagi has another modem by that name."""
    path = named_file(request, place, table, "table")
    calibration = read_calibration(path)
    try:
        mode = calibration.mode(modem, modulation, code_rate)
        mode.check_range()
    except BadValue as error:
        raise refuse(error.what, error.cure, file=str(path)) from None
    try:
        digest = radio.air_time().compute_modem_digest(mode.modem, mode.modulation, mode.code_rate)
    except ValueError as error:
        raise refuse(
            f"a table of another modem: {error}", "calibrate again with this nagi", file=str(path)
        ) from None
    if digest != mode.digest:
        raise refuse(
            f"a table of another modem: {mode.name} of nagi {calibration.nagi} is not this nagi's",
            "calibrate again with this nagi",
            file=str(path),
        )
    return mode


def read_calibration(path: Path) -> Calibration:
    """Raises InputError."""
    status = path.stat()
    return _read(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=16)
def _read(path: Path, version: tuple[int, int, int]) -> Calibration:
    return Calibration.read(path)
