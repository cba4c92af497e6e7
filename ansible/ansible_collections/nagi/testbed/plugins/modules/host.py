# SPDX-License-Identifier: Apache-2.0
"""Ansible module: reads the state of a host before the host is provisioned."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host
short_description: read the state of a host of a testbed
description: Reads the facts about a host on which the roles depend. Changes nothing.
author: the nagi authors
options:
  user:
    description: the service user
    type: str
    default: ""
  interfaces:
    description: the test interfaces
    type: list
    elements: str
    default: []
  modules:
    description: kernel modules that the roles require
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the state of the host
  nagi.testbed.host:
    user: nagi
    interfaces: [enp2s0, enp3s0]
    modules: [tcp_vegas]
  register: host

- name: Stop if a test interface is how the host is reached
  ansible.builtin.assert:
    that: host.management_uses == []
"""

RETURN = r"""
user_comment:
  description: the comment of the service user's account; empty if there is none
  type: str
  returned: always
interfaces:
  description: all network interfaces
  type: list
  elements: str
  returned: always
clocks:
  description: the network interfaces that have a PTP hardware clock
  type: list
  elements: str
  returned: always
management_uses:
  description: the test interfaces by which the host is reached, each with the reason
  type: list
  elements: str
  returned: always
recorded:
  description: the resources in the manifest of M(nagi.testbed.owned), each with kind, name, roles
  type: list
  elements: dict
  returned: always
has_armed_watchdog:
  description: whether a watchdog is about to undo changes of an interrupted provisioning
  type: bool
  returned: always
ifupdown_files:
  description: files that make ifupdown manage a test interface
  type: list
  elements: str
  returned: always
has_network_manager:
  description: whether NetworkManager is configured by files
  type: bool
  returned: always
kernel:
  description: the kernel's release
  type: str
  returned: always
loadable_modules:
  description: required modules that are loaded or loadable, and not built into the kernel
  type: list
  elements: str
  returned: always
absent_modules:
  description: required modules that are neither installed nor built into the kernel
  type: list
  elements: str
  returned: always
holder:
  description: who has reserved the host for a campaign, and until when; empty if it is free
  type: str
  returned: always
last_processor:
  description: the highest number of an online processor
  type: int
  returned: always
scales_frequency:
  description: whether the kernel can change the frequency of processors
  type: bool
  returned: always
idle_states:
  description: the name of each idle state, and the time to wake from it in microseconds
  type: list
  elements: dict
  returned: always
"""

import fcntl
import json
import os
import pwd
import re
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils.management import (
    find_management_interfaces,
)
from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    MANIFEST_DIRECTORY,
    Manifest,
    ManifestError,
)
from ansible_collections.nagi.testbed.plugins.module_utils.watchdog import DIRECTORY, is_armed

_PROCESSORS = Path("/sys/devices/system/cpu")
_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LOCK, _HOLDER = Path("/run/nagi/lock"), Path("/run/nagi/holder.json")


def _find_user_comment(user: str) -> str:
    try:
        return pwd.getpwnam(user).pw_gecos
    except KeyError:
        return ""


def _is_loadable(module: AnsibleModule, name: str) -> bool:
    """Return whether a kernel module is loaded or loadable, and not built into the kernel."""
    # Modules that are built into the kernel have no initstate.
    if Path("/sys/module", name).is_dir():
        return Path("/sys/module", name, "initstate").exists()
    modprobe = module.get_bin_path("modprobe")
    if modprobe is None or name in _list_built_in():
        return False
    return bool(module.run_command([modprobe, "--dry-run", "--quiet", name])[0] == 0)


def _list_built_in() -> set[str]:
    """Return the modules that are built into the kernel.

    All available congestion controls are included, because some kernels have no list of built-in
    modules.
    """
    builtin = Path("/lib/modules", os.uname().release, "modules.builtin")
    names = {Path(line).stem.replace("-", "_") for line in _read_lines(builtin)}
    return names | {f"tcp_{name}" for name in _CONTROLS.read_text().split()}


def _read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _list_recorded() -> list[dict[str, object]]:
    """List the resources in the manifest; return [] if there is none, or it is damaged.

    The module owned reports a damaged manifest.
    """
    try:
        with Manifest(MANIFEST_DIRECTORY, read_only=True) as manifest:
            return [
                {key: entry[key] for key in ("kind", "name", "roles")} for entry in manifest.entries
            ]
    except (ManifestError, PermissionError):
        return []


def _describe_holder() -> str:
    """Describe who has reserved the host; return "" if it is free.

    A guard holds the lock during a reservation, see hosts/agent/nagi_agent/hold.py.
    """
    try:
        with open(_LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return ""
    except FileNotFoundError:
        return ""
    except BlockingIOError:
        pass
    holder = json.loads(_HOLDER.read_text())
    until = datetime.fromtimestamp(holder["expires_s"], timezone.utc)
    return f"{holder['owner']} ({holder['campaign']}), until {until:%Y-%m-%d %H:%M} UTC"


def _find_ifupdown_files(interfaces: list[str]) -> list[str]:
    """Return the configuration files of ifupdown that name one of the interfaces."""
    names = "|".join(map(re.escape, interfaces))
    stanza = re.compile(rf"^\s*(iface|auto|allow-\S+)\s(.*\s)?({names})(\s|$)", re.MULTILINE)
    paths = [Path("/etc/network/interfaces"), *Path("/etc/network/interfaces.d").glob("*")]
    return sorted(
        str(path)
        for path in paths
        if path.is_file() and stanza.search(path.read_text(errors="replace"))
    )


def _read_idle_states() -> list[dict[str, object]]:
    return [
        {
            "name": (state / "name").read_text().strip(),
            "wake_us": int((state / "latency").read_text()),
        }
        for state in sorted(_PROCESSORS.glob("cpu0/cpuidle/state*"))
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "user": {"type": "str", "default": ""},
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "modules": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    network = Path("/sys/class/net")
    modules = module.params["modules"]
    loadable = [name for name in modules if _is_loadable(module, name)]
    module.exit_json(
        changed=False,
        user_comment=_find_user_comment(module.params["user"]),
        interfaces=sorted(path.name for path in network.iterdir()),
        clocks=sorted(path.parts[-3] for path in network.glob("*/device/ptp")),
        management_uses=[
            f"{name} {reason}"
            for name, reason in find_management_interfaces().items()
            if name in module.params["interfaces"]
        ],
        recorded=_list_recorded(),
        has_armed_watchdog=is_armed(DIRECTORY),
        ifupdown_files=_find_ifupdown_files(module.params["interfaces"]),
        has_network_manager=Path("/etc/NetworkManager/conf.d").is_dir(),
        kernel=os.uname().release,
        loadable_modules=loadable,
        absent_modules=[
            name for name in modules if name not in loadable and name not in _list_built_in()
        ],
        holder=_describe_holder(),
        last_processor=int(re.findall(r"\d+", (_PROCESSORS / "online").read_text())[-1]),
        scales_frequency=(_PROCESSORS / "cpu0/cpufreq/scaling_governor").exists(),
        idle_states=_read_idle_states(),
    )


if __name__ == "__main__":
    main()
