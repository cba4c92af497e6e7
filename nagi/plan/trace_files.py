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
    """Read the trace file `file`, which the experiment file names at `key_path`.

    Args:
        request: The request to plan a point.
        key_path: Key path of the mapping that contains the key `file`.
        file: Path of the trace file, relative to the experiment file.
        format_: Format of the trace file.
        quantity: Quantity of the values, if the format is `steps`.

    Raises:
        InputError: If the file does not exist or does not have this format.
    """
    return read_trace(find_file(request, key_path, file), format_, quantity)


def find_file(request: PlanRequest, key_path: KeyPath, file: str, key: str = "file") -> Path:
    """Return the path of `file`, which an experiment file names at `key_path` under `key`.

    Raises:
        InputError: If the file does not exist.
    """
    path = request.document.resolve_path(file)
    if not is_file(path):
        raise request.missing_file((*key_path, key), file)
    return path


def is_file(path: Path) -> bool:
    """Return whether `path` is a regular file; False for names that no file can have."""
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False
