# SPDX-License-Identifier: Apache-2.0
"""The kinds of resources, and the resources of a role. Standard library only, for Python 3.9."""

from __future__ import annotations

import os

from ansible_collections.nagi.testbed.plugins.module_utils.accounts import Group, User
from ansible_collections.nagi.testbed.plugins.module_utils.files import Directory, File, Override
from ansible_collections.nagi.testbed.plugins.module_utils.kernel import (
    Journal,
    KernelModule,
    Sysctl,
)
from ansible_collections.nagi.testbed.plugins.module_utils.packages import Deb, Package
from ansible_collections.nagi.testbed.plugins.module_utils.services import StoppedService, Unit
from ansible_collections.nagi.testbed.plugins.module_utils.system import ManagedResource, System

# Kind -> class, in the order in which resources are changed.
KINDS = {
    resource.kind: resource
    for resource in (
        Package,
        Deb,
        StoppedService,
        Group,
        User,
        Directory,
        Journal,
        File,
        Override,
        Sysctl,
        KernelModule,
        Unit,
    )
}


def list_required(system: System, params: dict) -> list[ManagedResource]:
    """Return the resources that a role requires, in the order in which they are changed.

    Args:
        system: The host.
        params: The parameters of the module nagi.testbed.owned.
    """
    settings_by_kind = {
        "package": [(name, {}) for name in params["packages"]],
        "deb": [(deb["name"], deb) for deb in params["debs"]],
        "stopped": [(name, {}) for name in params["stopped"]],
        "group": [(name, {}) for name in params["groups"]],
        "user": [(user["name"], user) for user in params["users"]],
        "directory": list(_list_directories(params)),
        "journal": [(path, {}) for path in params["journals"]],
        "file": [(file["path"], file) for file in params["files"]],
        "override": [(override["path"], override) for override in params["overrides"]],
        "sysctl": [(name, {"value": str(value)}) for name, value in params["sysctls"].items()],
        "module": [(name, {}) for name in params["modules"]],
        "unit": [(name, {}) for name in params["units"]],
    }
    return [
        KINDS[kind](system, name, settings)
        for kind in KINDS
        for name, settings in settings_by_kind[kind]
    ]


def _list_directories(params: dict):
    """Return (path, settings) of the required directories, parents before their children.

    Parent directories of directories and files are included if they do not exist.
    """
    required = {directory["path"].rstrip("/"): directory for directory in params["directories"]}
    directories = {}
    for path in (*required, *(os.path.dirname(file["path"]) for file in params["files"])):
        ancestor = path
        ancestors = []
        while ancestor not in ("", "/") and (ancestor in required or not os.path.isdir(ancestor)):
            ancestors.append(ancestor)
            ancestor = os.path.dirname(ancestor)
        for ancestor in reversed(ancestors):
            directories.setdefault(ancestor, required.get(ancestor, {}))
    return directories.items()
