# SPDX-License-Identifier: Apache-2.0
"""Files of traces that an experiment names."""

from __future__ import annotations

from pathlib import Path

from nagi.plan.request import PlanRequest
from nagi.spec.traces import Format, Quantity, Trace, read_trace
from nagi.spec.yaml_source import Place


def trace_file(
    request: PlanRequest, place: Place, file: str, format_: Format, quantity: Quantity = "rate"
) -> Trace:
    """The trace in the file that is named at `place`. Raises InputError."""
    return read_trace(named_file(request, place, file), format_, quantity)


def named_file(request: PlanRequest, place: Place, file: str, key: str = "file") -> Path:
    """The path of a file that is named at `place`, under `key`. Raises InputError if it is none."""
    path = request.document.beside(file)
    if not is_file(path):
        raise request.no_file((*place, key), file)
    return path


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False
