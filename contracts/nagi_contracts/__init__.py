# SPDX-License-Identifier: Apache-2.0
"""The formats in which nagi's components exchange data (contracts), units, and errors.

Every JSON file has a `schema_version`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return `__version__`, read only when it is used, because reading is slow."""
    if name == "__version__":
        from importlib.metadata import version

        return version("nagi")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
