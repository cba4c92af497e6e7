# SPDX-License-Identifier: Apache-2.0
"""Provisioning and deprovisioning of freshly installed hosts of each release."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from provisioning import Provision
from releases import RELEASES, Unavailable
from snapshots import list_differences, read_states
from throw_away import Host

# Trees are made, hosts boot, and are provisioned from nothing.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
PACKAGES = Path(__file__).parents[2] / "build" / "deb"
NODE = {"nagi_node": "S", "nagi_links": {"wired": "enp2s0"}}
EMULATOR = {"nagi_node": "emulator", "nagi_links": {"wired": {"S": "enp2s0", "N": "enp3s0"}}}
# Nothing there may set the clock: it is compared only.
CHRONY = {"nagi_clock": "chrony", "nagi_chrony_options": "-F 1 -x"}
PTP = {
    "nagi_clock": "ptp",
    "nagi_ptp_interface": "enp3s0",
    "nagi_ptp_time_stamping": "software",
    "nagi_ptp_free_running": True,
}


@dataclass
class Fresh:
    """Two hosts of a release, and the variables of those that are provisioned (`chosen`).

    Without nagi-link for the release, only the node is provisioned.
    """

    machines: dict[str, Host]
    provision: Provision
    chosen: dict[str, dict[str, object]]
    lacking: str


@pytest.fixture(scope="module", params=RELEASES)
def fresh(request, boot_host, tmp_path_factory):
    """Boot a fresh node and a fresh emulator."""
    release = request.param
    machines = {"alice": boot_host(release), "heron": boot_host(release)}
    for name, interface in (("alice", "enp2s0"), ("heron", "enp2s0"), ("heron", "enp3s0")):
        link = f"ip link add {interface} type veth peer name far-{interface}"
        machines[name].run("sh", "-c", link)
    chosen = {"alice": NODE | CHRONY, "heron": EMULATOR | PTP}
    lacking = ""
    if not runs_here(release):
        for name, package in (("alice", "nagi-tcp"), ("heron", "nagi-link")):
            if list((PACKAGES / release).glob(f"{package}_*.deb")):
                chosen[name]["nagi_packages"] = str(PACKAGES)
            elif name == "heron":
                lacking = f"needs {package} of {release}: `make deb RELEASE={release}`"
                del chosen[name]
    provision = Provision(machines, tmp_path_factory.mktemp("ansible"))
    return Fresh(machines, provision, chosen, lacking)


def runs_here(release: str) -> bool:
    """Return whether programs that were built for this machine run on the release."""
    said = Path("/etc/os-release").read_text()
    return re.search(rf"^VERSION_CODENAME={release}$", said, re.M) is not None


def test_a_fresh_host_is_provisioned_once_and_put_back_to_the_byte(fresh):
    before = read_states(fresh.machines)
    checked = fresh.provision("--check", "--diff", **fresh.chosen)
    assert checked.status == 0, checked.output
    assert all(checked.changed[name] > 3 for name in fresh.chosen), checked.output
    assert list_differences(before, read_states(fresh.machines)) == []

    first = fresh.provision(**fresh.chosen)
    assert first.status == 0, first.output
    installed = "dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n'"
    packages = fresh.machines["alice"].run("sh", "-c", installed)
    for package in ("chrony", "iperf", r"libelf1(t64)?", r"libspdlog1\..*"):
        assert re.search(rf"^ii +{package}$", packages, re.M), packages
    if not fresh.lacking:
        fresh.machines["heron"].run("nagi-link", "--version")
        fresh.machines["heron"].run("systemctl", "is-active", "nagi-ptp.service")

    provisioned = read_states(fresh.machines)
    second = fresh.provision(**fresh.chosen)
    assert second.status == 0, second.output
    assert second.changed == {**dict.fromkeys(fresh.chosen, 0), "localhost": 0}, second.output
    assert list_differences(provisioned, read_states(fresh.machines)) == []

    back = fresh.provision.deprovision()
    assert back.status == 0, back.output
    assert list_differences(before, read_states(fresh.machines)) == []
    if fresh.lacking:
        pytest.skip(f"all but the emulator: {fresh.lacking}")


@pytest.fixture
def tree(boot_host):
    """Return the tree of this machine's release, or of another one that is available."""
    del boot_host  # which skips where there are no throw-away hosts
    for release in sorted(RELEASES, key=runs_here, reverse=True):
        with suppress(Unavailable):
            return release, RELEASES[release].make_directory() / "tree"
    pytest.skip("no release can be had here: give an archive, MIRROR=URL")


def test_nothing_of_a_host_stays(tree, tmp_path):
    """No processes, mounts or files of the host remain."""
    release, directory = tree
    mounts = Path("/proc/self/mountinfo").read_text()
    with Host(tmp_path, release) as machine:
        assert machine.run("hostname") == f"{release}\n"
        machine.run("sh", "-c", "touch /etc/written; rm /etc/hosts; sleep 1000 >/dev/null 2>&1 &")
        inside = _namespace(Path(f"/proc/{machine.pid}"))
    deadline = time.monotonic() + 60
    while left := [each for each in Path("/proc").glob("[0-9]*") if _namespace(each) == inside]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)  # they are killed all at once, and need not be dead at once
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert (directory / "etc/hosts").exists() and not (directory / "etc/written").exists()


def _namespace(process: Path) -> int:
    with suppress(OSError):
        return (process / "ns" / "pid").stat().st_ino
    return 0


MAKE = "from releases import *; RELEASES['trixie'].make_directory()"


def test_a_release_that_cannot_be_had_is_named_and_a_killed_one_leaves_nothing(
    boot_host, tmp_path, monkeypatch
):
    del boot_host
    if shutil.which("mmdebstrap") is None:
        pytest.skip("needs mmdebstrap: `apt-get install mmdebstrap`")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "nagi" / "releases"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/debian"
        monkeypatch.setenv("MIRROR", address)
        maker = subprocess.Popen([sys.executable, "-c", MAKE], cwd=Path(__file__).parent)
        silent.settimeout(120)
        with silent.accept()[0]:  # apt asks for the release, and waits
            maker.kill()
            maker.wait()
    assert list(cache.glob("trixie-*")) == [] and len(list(cache.glob("nagi-scratch-*"))) == 1
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1.*give another archive: MIRROR=URL"):
        RELEASES["trixie"].make_directory()  # nobody answers any more
    assert [left.name for left in cache.iterdir()] == ["trixie.lock"]
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
