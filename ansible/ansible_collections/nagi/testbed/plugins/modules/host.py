# SPDX-License-Identifier: Apache-2.0
"""Ansible module: what there is to know of a host before it is provisioned."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host
short_description: look at a host of a testbed
description: Reads what the roles decide by, all at once. Changes nothing.
author: the nagi authors
options:
  user:
    description: the service user
    type: str
    required: true
  interfaces:
    description: the test interfaces
    type: list
    elements: str
    required: true
  packages:
    description: packages that are wanted, by name or pattern
    type: list
    elements: str
    required: true
"""

RETURN = r"""
user_comment:
  description: the comment of the service user's account; empty if there is none
  type: str
  returned: always
missing_packages:
  description: the wanted packages that are not installed
  type: list
  elements: str
  returned: always
interfaces:
  description: all network interfaces
  type: list
  elements: str
  returned: always
clocks:
  description: those that have a PTP hardware clock
  type: list
  elements: str
  returned: always
ifupdown_files:
  description: files in which ifupdown is told to manage a test interface
  type: list
  elements: str
  returned: always
link_files:
  description: what was written for test interfaces, see systemd.link(5)
  type: list
  elements: str
  returned: always
switch_files:
  description: what was written to have a switch
  type: list
  elements: str
  returned: always
has_network_manager:
  description: whether NetworkManager is configured by files
  type: bool
  returned: always
congestion_controls:
  description: congestion controls that the kernel has ready
  type: list
  elements: str
  returned: always
congestion_modules:
  description: those of them that are modules
  type: list
  elements: str
  returned: always
last_processor:
  description: the highest number of a processor that is online
  type: int
  returned: always
scales_frequency:
  description: whether the kernel sets the frequency of processors
  type: bool
  returned: always
idle_states:
  description: the name of each idle state, and the microseconds it takes to wake from it
  type: list
  elements: dict
  returned: always
"""

import pwd
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

_PROCESSORS = Path("/sys/devices/system/cpu")
# What the role switch writes.
_SWITCH_FILES = (
    ("/etc/systemd/system", "nagi-switch@.service"),
    ("/etc/systemd/system", "nagi-bmv2@.service"),
    ("/etc/systemd/system", "nagi-*@switch.service.d"),
    ("/usr/local/bin", "nagi-switch"),
    ("/usr/local/lib", "nagi"),
    ("/etc/apt/sources.list.d", "nagi-bmv2.sources"),
    ("/etc/apt/keyrings", "nagi-bmv2.*"),
    ("/etc/nagi", "switch.json"),
    ("/etc/nagi", "switch.pipeline.json"),
    ("/etc/nagi", "switch.entries.jsonl"),
)
_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def _user_comment(user: str) -> str:
    try:
        return pwd.getpwnam(user).pw_gecos
    except KeyError:
        return ""


def _missing(module: AnsibleModule, packages: list[str]) -> list[str]:
    missing = []
    if module.get_bin_path("dpkg-query") is None:
        return packages
    for package in packages:
        command = ["dpkg-query", "--show", "--showformat", r"${db:Status-Status}\n", package]
        _, states, _ = module.run_command(command)
        if "installed" not in states.splitlines():
            missing.append(package)
    return missing


def _ifupdown_files(interfaces: list[str]) -> list[str]:
    names = "|".join(map(re.escape, interfaces))
    stanza = re.compile(rf"^\s*(iface|auto|allow-\S+)\s(.*\s)?({names})(\s|$)", re.MULTILINE)
    places = [Path("/etc/network/interfaces"), *Path("/etc/network/interfaces.d").glob("*")]
    return sorted(
        str(place)
        for place in places
        if place.is_file() and stanza.search(place.read_text(errors="replace"))
    )


def _idle_states() -> list[dict[str, object]]:
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
            "user": {"type": "str", "required": True},
            "interfaces": {"type": "list", "elements": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    network = Path("/sys/class/net")
    module.exit_json(
        changed=False,
        user_comment=_user_comment(module.params["user"]),
        missing_packages=_missing(module, module.params["packages"]),
        interfaces=sorted(path.name for path in network.iterdir()),
        clocks=sorted(path.parts[-3] for path in network.glob("*/device/ptp")),
        ifupdown_files=_ifupdown_files(module.params["interfaces"]),
        link_files=sorted(map(str, Path("/etc/systemd/network").glob("10-nagi-*.link"))),
        switch_files=sorted(
            str(path) for directory, name in _SWITCH_FILES for path in Path(directory).glob(name)
        ),
        has_network_manager=Path("/etc/NetworkManager/conf.d").is_dir(),
        congestion_controls=_CONTROLS.read_text().split(),
        congestion_modules=sorted(
            # What is built into the kernel has no state of its own.
            path.parent.name[len("tcp_") :]
            for path in Path("/sys/module").glob("tcp_*/initstate")
        ),
        last_processor=int(re.findall(r"\d+", (_PROCESSORS / "online").read_text())[-1]),
        scales_frequency=(_PROCESSORS / "cpu0/cpufreq/scaling_governor").exists(),
        idle_states=_idle_states(),
    )


if __name__ == "__main__":
    main()
