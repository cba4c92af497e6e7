# SPDX-License-Identifier: Apache-2.0
"""Find and read the trace files that an experiment names."""

from __future__ import annotations

from pathlib import Path

from nagi.plan.request import PlanRequest
from nagi.spec.traces import Format, Quantity, Trace, read_trace
from nagi.spec.yaml_source import KeyPath


def load_trace(
    request: PlanRequest, key_path: KeyPath, file: str, format_: Format, quantity: Quantity = "rate"
) -> Trace:
    """Read the trace file that is named at `key_path`.

    Raises:
        InputError: If the file does not exist or is not such a trace.
    """
    return read_trace(find_file(request, key_path, file), format_, quantity)


def find_file(request: PlanRequest, key_path: KeyPath, file: str, key: str = "file") -> Path:
    """Return the path of the file that is named at `key_path`, under `key`.

    Raises:
        InputError: If there is no such file.
    """
    path = request.document.resolve_path(file)
    if not is_file(path):
        raise request.missing_file((*key_path, key), file)
    return path


def is_file(path: Path) -> bool:
    """Return whether `path` is a regular file; an impossible name is none."""
    try:
        return path.is_file()
    except OSError:  # an impossible file name
        return False
