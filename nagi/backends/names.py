# SPDX-License-Identifier: Apache-2.0
"""Find the backends, and load one file of each, such as `plan.py`.

A backend is a package in this folder. Its files have the names that interface.py lists, and each
file exports one object called `part`. Agents use this module too. Therefore it needs only Python
3.9 and the standard library.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from nagi import backends

DEFAULT = "link"  # the backend of links that no other backend carries
# The order of nagi's own backends in messages, checksums and reports. Further backends follow in
# alphabetical order.
_ORDER = (DEFAULT, "switch", "radio", "fpga", "medium")


def list_backends() -> list[str]:
    """Return the names of all backends: nagi's own, then further backends in alphabetical order.

    All packages iterate over backends in this order.
    """
    names = [module.name for module in pkgutil.iter_modules(backends.__path__) if module.ispkg]
    return sorted(
        names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
    )


def load_parts(file: str) -> dict[str, Any]:
    """Import the module `file` of each backend that has this module.

    Args:
        file: Name of the module's file without suffix, such as `needs`.

    Returns:
        Name of the backend -> the object `part` of its module. Backends without the module are left
        out.

    Raises:
        AttributeError: A module has no object called `part`.
    """
    return dict(_find_parts(file, tuple(backends.__path__)))


@cache
def _find_parts(file: str, directories: tuple[str, ...]) -> dict[str, Any]:
    """Return the result of load_parts(). The cache has one entry per file and list of folders."""
    modules = {name: f"{backends.__name__}.{name}.{file}" for name in list_backends()}
    return {
        name: _get_part(import_module(module))
        for name, module in modules.items()
        if find_spec(module) is not None
    }


def _get_part(module: ModuleType) -> Any:
    if not hasattr(module, "part"):
        raise AttributeError(f"{module.__file__} has no object called `part`, see interface.py")
    return module.part
