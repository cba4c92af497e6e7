# SPDX-License-Identifier: Apache-2.0
"""Throw-away hosts: systems booted by their own systemd, of which nothing remains.

Each host is a set of namespaces with an overlay in memory as its root, over this machine's / or the
tree of a release (see releases.py). It can neither set the clock nor load modules, and has its own
/proc/irq, so it changes nothing on this machine. Ansible enters by nagi's netns connection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from releases import ARCHIVE, RELEASES, Unavailable

SYSTEMD = Path("/lib/systemd/systemd")
_NETNS = "self"
_TIMEOUT_S = 120.0  # for a busy machine
_NEW_NAMESPACES = [
    *["setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child", "--fork"],
    *["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"],
]

# Arguments: the directory that host and controller share, the tree to boot, the target of systemd,
# and the archive of the release.
_BOOT = f"""
set -e
shared=$1 tree=$2 target=$3 archive=$4
mount --make-rprivate /
mount -t tmpfs -o mode=0755 host /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=$tree,upperdir=/mnt/upper,workdir=/mnt/work host /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t tmpfs -o mode=0755 irq proc/irq
echo ffffffff >proc/irq/default_smp_affinity
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=0755 dev dev
for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
done
# systemd changes the mode of its console.
mknod -m 0600 dev/console c 1 3
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=0755 run run
mount -t tmpfs -o mode=1777 tmp tmp  # systemd would empty this machine's, file by file
mkdir -p run/netns run/systemd/system "./$shared"
touch run/netns/{_NETNS}
mount --bind /proc/self/ns/net run/netns/{_NETNS}
mount --bind "$shared" "./$shared"
test -z "$archive" || mount --bind -o ro "$archive" ./{ARCHIVE}
test ! -e lib/modules || mount -t tmpfs none lib/modules
: >etc/fstab
echo 6e61676900000000000000006e616769 >etc/machine-id
for unit in systemd-sysctl systemd-modules-load systemd-binfmt systemd-timesyncd systemd-logind \\
    systemd-random-seed systemd-remount-fs systemd-udevd systemd-udev-trigger console-getty; do
    ln -sf /dev/null run/systemd/system/$unit.service
done
# Debian's chrony does not start where nobody may set the clock. It can compare it: -x.
mkdir run/systemd/system/chrony.service.d
printf '[Unit]\\nConditionCapability=\\n' >run/systemd/system/chrony.service.d/throw-away.conf
ip link set lo up
mkdir .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec env -i container=nagi PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    setpriv --bounding-set=-sys_time,-sys_boot,-sys_module,-sys_rawio,-syslog \\
    {SYSTEMD} --system --unit=$target --log-target=journal --show-status=no
"""


class Host:
    """A throw-away host, as a context manager.

    Args:
        shared: A directory that the host shares with this machine.
        release: The release of the host; None for this machine's system.
    """

    def __init__(self, shared: Path, release: str | None = None) -> None:
        self._shared = shared
        # This machine's services are not started; a release's services are, as on a fresh host.
        self._boots = ["/", "basic.target", ""]
        if release is not None:
            directory = RELEASES[release].make_directory()
            self._boots = [str(directory / "tree"), "multi-user.target", str(directory / "archive")]

    def __enter__(self) -> Host:
        self._process = subprocess.Popen(
            [*_NEW_NAMESPACES, "/bin/sh", "-c", _BOOT, "boot", str(self._shared), *self._boots],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + _TIMEOUT_S
        state = ""
        while state not in ("running", "degraded"):
            if time.monotonic() > deadline or self._process.poll() is not None:
                self._process.kill()
                pytest.fail(f"systemd did not start: {state} {self._process.communicate()[0]}")
            time.sleep(0.05)
            state = self._read_state()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _read_state(self) -> str:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        if not children:
            return ""
        self.pid = int(children)
        done = subprocess.run(
            self.command("systemctl", "is-system-running"), capture_output=True, text=True
        )
        return done.stdout.strip()

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs a command on the host."""
        return ["nsenter", "--target", str(self.pid), "--all", "--wdns=/", "--", *command]

    def fail(self, *command: str) -> str:
        """Run a command that must fail, and return its stderr."""
        done = subprocess.run(self.command(*command), capture_output=True, text=True, check=False)
        assert done.returncode > 0, f"{command}: status {done.returncode}: {done.stdout}"
        return done.stderr

    def run(self, *command: str) -> str:
        """Run a command on the host, and return its output."""
        done = subprocess.run(self.command(*command), capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
        return done.stdout

    def copy(self, source: Path, target: str) -> None:
        """Copy a file of this machine to the host, which has its own /tmp and other directories."""
        with source.open("rb") as file:
            subprocess.run(self.command("cp", "/dev/stdin", target), stdin=file, check=True)

    def join(self, interface: str, other: Host, peer: str) -> None:
        """Add an interface to this host and to another one, and connect both by a cable."""
        link = ["ip", "link", "add", interface, "type", "veth", "peer", "name", peer]
        # Only the network namespace is entered: the other host's process id is this machine's.
        prefix = ["nsenter", f"--target={self.pid}", "--net", "--"]
        subprocess.run([*prefix, *link, "netns", str(other.pid)], check=True)

    @property
    def variables(self) -> dict[str, object]:
        """The variables with which Ansible reaches the host."""
        return {
            "ansible_connection": "nagi.testbed.netns",
            "ansible_remote_tmp": str(self._shared / "ansible"),
            "nagi_keeper_pid": self.pid,
            "nagi_namespace": _NETNS,
        }


@pytest.fixture(scope="module")
def boot_host() -> Iterator[Callable[..., Host]]:
    """Boot throw-away hosts for the tests of a module.

    `boot_host()` has this machine's system, `boot_host("trixie")` that of a release.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root for throw-away hosts: run `sudo make test`")
    if not SYSTEMD.exists():
        pytest.skip(f"needs {SYSTEMD} for throw-away hosts: install systemd")
    with ExitStack() as hosts:
        shared = Path(tempfile.mkdtemp(prefix="nagi-throw-away-"))
        hosts.callback(shutil.rmtree, shared)

        def boot(release: str | None = None) -> Host:
            try:
                return hosts.enter_context(Host(shared, release))
            except Unavailable as error:
                pytest.skip(f"{RELEASES[str(release)].title} is not available here: {error}")

        yield boot
