# SPDX-License-Identifier: Apache-2.0
"""Snapshots of throw-away hosts: all that provisioning and runs can change there."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Mapping, Sequence

from throw_away import Host

# Left out: what apt and dpkg note of their work (logs, lists, downloads), the copies that tools
# keep of accounts' files (`passwd-`), caches of the linker, of Python and of systemd, which are
# made anew, dbus, which starts when it is asked, and the group rdma, which a library of Ubuntu's
# tcpdump leaves when it is purged.
_STATE = r"""
cd /
left_out="! -name *- ! -name ld.so.cache ! -name .updated ! -name *.pyc ! -name __pycache__"
find etc usr var/lib/nagi* run/nagi* root srv opt home $left_out -printf '%p %y %m %u %g %l\n' \
    2>/dev/null | grep -v ^srv/archive/ | sort
find etc usr $left_out ! -path etc/group ! -path etc/gshadow -type f -exec sha256sum {} + \
    | sort -k 2
grep -v ^rdma: etc/group etc/gshadow
dpkg-query --show --showformat '${db:Status-Abbrev} ${Package} ${Version}\n'
apt-mark showmanual
dpkg-statoverride --list
systemctl list-unit-files --no-legend --plain | awk '{print $1, $2}'
systemctl list-units --no-legend --plain --state=active --type=service,timer,socket \
    | awk '$1 != "dbus.service" {print $1}'
systemctl list-units --no-legend --plain --state=failed | awk '{print $1}'
cat /proc/irq/default_smp_affinity
"""
_ATTRIBUTES = r"""
import os
for top in ("/etc", "/usr", "/root", "/home"):
    for directory, names, files in os.walk(top):
        for path in (os.path.join(directory, name) for name in sorted(names + files)):
            for attribute in sorted(os.listxattr(path, follow_symlinks=False)):
                print(path, attribute, os.getxattr(path, attribute, follow_symlinks=False))
"""
# Executed with the host's network, but with this machine's programs.
# Left out: lists of congestion controls, which belong to the kernel, and the queueing discipline
# noqueue, which a virtual card without one gets when it is set up once.
_NETWORK = r"""
mount -t sysfs sysfs /sys
mount -t proc proc /proc
ip -oneline address show scope global | sed 's, *valid_lft.*,,'
ip -4 route show table all
ip -json link | python3 -c '
import json, sys
for card in json.load(sys.stdin):
    settings = {key: card[key] for key in ("ifname", "mtu", "address", "flags", "qdisc")}
    print(settings | {"qdisc": card["qdisc"].replace("noqueue", "noop")})
'
for card in $(ls /sys/class/net); do
    ethtool -k $card 2>/dev/null
done
grep -rs . /proc/sys/net | grep -vE 'congestion_control|/nf_log/|nf_conntrack_count' | sort
"""


def read_states(machines: Mapping[str, Host]) -> dict[str, list[str]]:
    """Return host -> its state, as lines."""
    return {name: _read_state(machine) for name, machine in machines.items()}


def list_differences(
    before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the lines that differ between states of hosts, each with the name of its host."""
    return [
        f"{name}: {line}"
        for name in before
        for line in difflib.unified_diff(before[name], after[name], lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]


def _read_state(machine: Host) -> list[str]:
    state = machine.run("sh", "-c", _STATE) + machine.run("python3", "-c", _ATTRIBUTES)
    within = ["nsenter", f"--target={machine.pid}", "--net", "--", "unshare", "--mount"]
    done = subprocess.run(
        [*within, "sh", "-ec", _NETWORK], capture_output=True, text=True, check=True
    )
    return (state + done.stdout).splitlines()
