# SPDX-License-Identifier: Apache-2.0
"""Read the calibration tables (written by `nagi-sdr calibrate`) that an experiment names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nagi_contracts.calibration import CalibratedMode, Calibration
from nagi_contracts.errors import BadValue, refuse

from nagi.plan.air_time import load_air_time
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import find_file
from nagi.spec.yaml_source import KeyPath


def find_calibrated_mode(
    request: PlanRequest,
    key_path: KeyPath,
    table: str,
    *,
    modem: str | None,
    modulation: str | None,
    code_rate: str | None,
) -> CalibratedMode:
    """Return the mode of a calibration table that an experiment selects.

    Args:
        request: The point that is planned.
        key_path: Key path of the setting that names the table.
        table: Path of the table, relative to the experiment file.
        modem: Name of the modem, or None if the table has one modem.
        modulation: Modulation, or None if the table has one modulation for this modem.
        code_rate: Code rate, or None if the table has one code rate for this modem.

    Raises:
        InputError: If the table does not exist or has no such mode, if a curve of the mode is
            incomplete, or if the modem of this name has changed since the calibration.
    """
    path = find_file(request, key_path, table, "table")
    calibration = read_calibration(path)
    try:
        mode = calibration.mode(modem, modulation, code_rate)
        mode.check_range()
    except BadValue as error:
        raise refuse(error.what, error.cure, file=str(path)) from None
    try:
        digest = load_air_time().compute_modem_digest(mode.modem, mode.modulation, mode.code_rate)
    except ValueError as error:
        raise refuse(
            f"the table is for another modem: {error}",
            "calibrate again with this nagi",
            file=str(path),
        ) from None
    if digest != mode.digest:
        raise refuse(
            f"the table is for another modem: {mode.name} of nagi {calibration.nagi} differs from "
            "the same mode of this nagi",
            "calibrate again with this nagi",
            file=str(path),
        )
    return mode


def read_calibration(path: Path) -> Calibration:
    """Read a calibration table, from a cache if the file is unchanged since an earlier call.

    Raises:
        InputError: If the file is not a calibration table.
    """
    status = path.stat()
    return _read_version(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=16)
def _read_version(path: Path, version: tuple[int, int, int]) -> Calibration:
    return Calibration.read(path)
