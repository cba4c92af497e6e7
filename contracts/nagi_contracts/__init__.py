# SPDX-License-Identifier: Apache-2.0
"""The formats in which nagi's components exchange data, with units and errors.

Every file has a `schema_version`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Read `__version__` at its first use, because that takes as long as the whole import."""
    if name == "__version__":
        from importlib.metadata import version

        return version("nagi")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
