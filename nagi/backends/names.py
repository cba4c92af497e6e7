# SPDX-License-Identifier: Apache-2.0
"""Finds the backends, and loads their files of one name.

A backend is a package in this folder. Its files have the names that interface.py lists, and each
exports one object called `part`. Agents use this module too: it needs Python 3.9 and its standard
library only.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from nagi import backends

DEFAULT = "link"  # carries the links that no other backend carries
# The order in which problems, checksums and sections of nagi's own backends are listed. Further
# backends follow by name.
_ORDER = (DEFAULT, "switch", "radio", "fpga", "medium")


def list_backends() -> list[str]:
    """Return the names of all backends, in the order in which they are asked."""
    names = [module.name for module in pkgutil.iter_modules(backends.__path__) if module.ispkg]
    return sorted(
        names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
    )


def load_parts(file: str) -> dict[str, Any]:
    """Import the module `file` of each backend that has it.

    Args:
        file: Name of a file of backends without its suffix, such as `needs`.

    Returns:
        The name of the backend -> the `part` of its module.
    """
    return dict(_find_parts(file, tuple(backends.__path__)))


@cache
def _find_parts(file: str, directories: tuple[str, ...]) -> dict[str, Any]:
    """Return the parts. The result is kept until `directories`, which contain backends, change."""
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
