# SPDX-License-Identifier: Apache-2.0
"""The formats that nagi's components hand to one another, with their units and errors. Every file
says its `schema_version`."""

from typing import Any


def __getattr__(name: str) -> Any:
    """`__version__`, read where it is asked for: that takes as long as all else that is here."""
    if name == "__version__":
        from importlib.metadata import version

        return version("nagi")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
