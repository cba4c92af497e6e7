# SPDX-License-Identifier: Apache-2.0
"""Installation, upgrade, removal and purge of the packages of `make deb` on a throw-away host.

Packages for other releases are installed in an overlay of the tree in which they were built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from deb_files import ROOT, build, find_packages, read_control_field
from throw_away import Host, boot_host

__all__ = ["boot_host"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]  # the build, on a busy machine

NAMES = ("nagi-link", "nagi-switch", "nagi-tcp", "nagi-traffic")
UNIT = "nagi-link@lab.service"
SOCKET = "/run/nagi-link/lab/socket"
# Everything that an installation could write, but what dpkg, apt and systemd keep for themselves.
LIST = """
find / -xdev \\( -path /proc -o -path /tmp -o -path /run -o -path /root \\
    -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/systemd -o -path /var/log \\
    -o -path /var/cache \\) -prune \\
    -o \\( -path '/usr/*' -o -path '/etc/*' -o -path '/var/*' -o -path '/lib/*' \\) \\
    \\( -type d -printf '%p %M %u %g\\n' -o -printf '%p %M %u %g %s %l\\n' \\) | sort
sha256sum /etc/passwd /etc/group
"""

# Arguments: a tree, a package. What it needs is in the tree, as it was built there.
IN_OVERLAY = """
set -e
mount --make-rprivate /
mount -t tmpfs overlay /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
cp "$2" /mnt/root/nagi-tcp.deb
cd /mnt/root
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . sh -ec '
dpkg --install /nagi-tcp.deb >/dev/null
nagi-tcp --version
nagi-tcp describe /usr/lib/nagi/tcp/vegas.bpf.o
dpkg --purge nagi-tcp >/dev/null
test ! -e /usr/lib/nagi'
"""


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    """Build the packages for this machine's release, and return their files by package."""
    if shutil.which("dpkg-buildpackage") is None:
        pytest.skip("needs dpkg-buildpackage: install debhelper")
    done = subprocess.run(["make", "deb", f"DEB={' '.join(NAMES)}"], cwd=ROOT)
    assert done.returncode == 0
    return find_packages(build.read_codename())


@pytest.fixture(scope="module")
def host(boot_host) -> Host:
    machine = boot_host()
    for end in ("left", "right"):
        machine.run(*f"ip link add {end}0 type veth peer name {end}1".split())
    return machine


def install(host: Host, *packages: Path) -> None:
    for file in packages:
        host.copy(file, f"/root/{file.name}")
    host.run("dpkg", "--install", *(f"/root/{file.name}" for file in packages))


def make_later_version(file: Path, directory: Path) -> Path:
    """Return a copy of a package that only differs in its later version."""
    tree, made = directory / "tree", directory / "later.deb"
    subprocess.run(["dpkg-deb", "--raw-extract", file, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1000."))
    pack = ["dpkg-deb", "--root-owner-group", "--build", tree, made]
    subprocess.run(pack, check=True, capture_output=True)
    return made


def drop_lines(listed: str, *paths: str) -> list[str]:
    return [line for line in listed.splitlines() if not any(path in line for path in paths)]


def test_the_whole_life_of_packages(host: Host, files: dict[str, Path], tmp_path: Path) -> None:
    before = host.run("sh", "-c", LIST)
    install(host, *(files[name] for name in NAMES))
    for name in NAMES:
        program = f"/usr/bin/{name}"
        assert host.run(program, "--version") == f"{name} {build.read_version()}\n"
        assert host.run("dpkg", "--verify", name) == ""
    assert "vegas" in host.run("/usr/bin/nagi-tcp", "describe", "/usr/lib/nagi/tcp/vegas.bpf.o")
    for unit in ("nagi-link@.service", "nagi-switch@.service"):
        assert host.run("sh", "-c", f"systemctl is-enabled {unit}; true") == "disabled\n"
        output = subprocess.run(
            host.command("systemd-analyze", "verify", f"/usr/lib/systemd/system/{unit}"),
            capture_output=True,
            text=True,
        )
        assert output.returncode == 0 and "nagi" not in output.stderr, output.stderr
    assert "nagi-" not in host.run("systemctl", "list-units", "--all", "--plain", "nagi-link@*")
    assert host.run("id", "-gn", "nagi") == "nagi\n"

    direction = {"rate_bps": 10_000_000, "delay_ns": 1000, "queue": {"packets": 10}}
    link = {"name": "link", "id": 1, "a": "left0", "b": "right0"}
    configuration = {
        "schema_version": 1,
        "seed": 1,
        "account": "account.json",
        "control_socket": SOCKET,
        "links": [{**link, "forward": direction, "backward": direction}],
    }
    (tmp_path / "lab.json").write_text(json.dumps(configuration))
    host.copy(tmp_path / "lab.json", "/etc/nagi/lab.json")
    host.run("chmod", "644", "/etc/nagi/lab.json")
    for end in ("left0", "left1", "right0", "right1"):
        host.run("ip", "link", "set", end, "up")
    host.run("systemctl", "enable", "--now", UNIT)
    host.run("timeout", "60", "sh", "-c", f"until test -S {SOCKET}; do sleep 0.1; done")
    account = json.loads(host.run("/usr/bin/nagi-link", "show", SOCKET))
    assert account["links"][0]["name"] == "link"
    pid = host.run("systemctl", "show", "--value", "--property=MainPID", UNIT).strip()
    assert (
        host.run("stat", "--format=%U", f"/proc/{pid}/exe", f"/proc/{pid}").split() == ["nagi"] * 2
    )

    # A later version replaces this one, and the link does not notice.
    install(host, make_later_version(files["nagi-link"], tmp_path))
    version = ["dpkg-query", "-W", "-f", "${Version}", "nagi-link"]
    assert host.run(*version) == f"1000.{build.read_version()}"
    assert host.run("systemctl", "show", "--value", "--property=MainPID", UNIT).strip() == pid

    host.run("dpkg", "--remove", "nagi-link")
    assert host.run("sh", "-c", f"systemctl is-active {UNIT}; true") == "inactive\n"
    assert "account.json" in host.run("ls", "/var/lib/nagi-link/lab")
    host.run("dpkg", "--purge", *NAMES)
    after = host.run("sh", "-c", LIST)

    # What is left is the operator's, and the user that it belongs to.
    own = ("/etc/nagi", "/var/lib/nagi-link")
    users = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow")
    assert drop_lines(after, *own, *users) == drop_lines(before, *own, *users)
    kept = [line.split()[0] for line in after.splitlines() if any(path in line for path in own)]
    assert kept == [
        *("/etc/nagi", "/etc/nagi/lab.json"),
        *("/var/lib/nagi-link", "/var/lib/nagi-link/lab", "/var/lib/nagi-link/lab/account.json"),
    ]
    entry = host.run("getent", "passwd", "nagi").strip().split(":")
    assert entry[0] == "nagi" and entry[-1] == "/usr/sbin/nologin"
    host.run("sh", "-c", "! getent shadow nagi | cut -d: -f2 | grep -v '^[!*]'")


def test_without_anything_of_the_operator_s_nothing_stays(
    host: Host, files: dict[str, Path]
) -> None:
    host.run("rm", "-rf", "/etc/nagi", "/var/lib/nagi-link")
    before = host.run("sh", "-c", LIST)  # with the user, who is there now
    install(host, *(files[name] for name in NAMES))
    assert host.run("ls", "-A", "/etc/nagi") == ""
    host.run("dpkg", "--purge", *NAMES)
    assert host.run("sh", "-c", LIST) == before


def test_a_refused_configuration_is_in_the_journal(host: Host, files: dict[str, Path]) -> None:
    install(host, files["nagi-switch"])
    host.run("sh", "-c", "echo '{\"schema_version\": 1}' >/etc/nagi/bad.json")
    host.run("sh", "-c", "systemctl start nagi-switch@bad; true")
    host.run(
        *[
            "timeout",
            "60",
            "sh",
            "-c",
            "until systemctl is-failed nagi-switch@bad; do sleep 0.1; done",
        ]
    )
    output = host.run("journalctl", "--no-pager", "--output=cat", "--unit=nagi-switch@bad")
    assert "nagi-switch: /etc/nagi/bad.json" in output, output
    status = ["systemctl", "show", "--value", "--property=ExecMainStatus", "nagi-switch@bad"]
    assert host.run(*status) == "2\n"
    host.run("systemctl", "reset-failed", "nagi-switch@bad")
    host.run("rm", "/etc/nagi/bad.json")
    host.run("dpkg", "--purge", "nagi-switch")


def test_lintian_finds_no_errors(files: dict[str, Path]) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("needs lintian: install lintian")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", *(files[n] for n in NAMES)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="trees are made by root")
@pytest.mark.parametrize("codename", sorted({*build.RELEASES} - {build.read_codename()}))
def test_packages_for_another_release_run_there(codename: str) -> None:
    """Install the smallest package of a release in an overlay of its tree."""
    release = build.RELEASES[codename]
    tree = build.tree_path(codename)
    if not tree.exists() and build.archive_of(release.distribution) is None:
        pytest.skip(
            f"apt has no archive of {release.distribution}: `make deb RELEASE={codename} ...`"
        )
    done = subprocess.run(["make", "deb", f"RELEASE={codename}", "DEB=nagi-tcp"], cwd=ROOT)
    assert done.returncode == 0
    file = find_packages(codename)["nagi-tcp"]
    inside = ["unshare", "--mount", "sh", "-c", IN_OVERLAY, "inside", tree, file]
    done = subprocess.run(inside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"nagi-tcp {build.read_version()}\n") and "vegas" in done.stdout
    assert "libelf1t64" in read_control_field(file, "Depends")
