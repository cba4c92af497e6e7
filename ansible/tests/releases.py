# SPDX-License-Identifier: Apache-2.0
"""Fresh systems of other releases: for each a tree, and an archive of packages.

mmdebstrap and apt make both once. They are kept in the user's cache
($XDG_CACHE_HOME/nagi/releases), with one directory per release and list of packages:

    tree      the root directory that a host boots, read-only
    archive   the distribution's signed lists, and the packages that provisioning may install

On such a host, apt finds the archive at ARCHIVE by a file: address, and needs no network. It
resolves names among all packages of the release, and verifies the distribution's signature.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from nagi.scratch import get_user_cache, make_scratch

ARCHIVE = "/srv/archive"
# The packages that the installer puts on a host, besides those that dpkg and apt need.
INSTALLED = (
    *("systemd-sysv", "dbus", "udev", "systemd-timesyncd", "iproute2", "python3"),
    *("openssh-server", "sudo"),
)
# The packages that the roles may install, by names and patterns of apt-get. Add every new package
# here, or else apt on the hosts does not find it.
PROVISIONED = (
    *("iputils-ping", "ethtool", "tcpdump", "iperf", "kmod", "procps", "util-linux"),
    *("libcap2-bin", "python3-apt", "libspdlog1.*", "libxdp1", "libbpf1", "libelf1*"),
    *("libcap-ng0", "libstdc++6", "chrony", "linuxptp", "python3-thrift"),
)
# If the command is killed, all its processes and mounts end with it.
_ISOLATED = (
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child", "--fork"),
    *("--mount", "--pid", "--mount-proc"),
)
# Arguments: the tree, the archive.
_UPDATE = f"""
set -e
mount --make-rprivate /
mount --bind "$2" "$1{ARCHIVE}"
exec chroot "$1" apt-get -o APT::Update::Error-Mode=any update
"""


class Unavailable(Exception):
    """The error of a release that is not available here, with the reason and the cure."""


@dataclass(frozen=True)
class Distribution:
    """A distribution, and the archive of its releases."""

    name: str  # as in its archive
    components: tuple[str, ...]
    own_keyring: str
    keyring_package: str
    # Variables of the environment and of make: an archive's address, and the keys that sign it.
    variable: str
    keyring_variable: str

    @property
    def keyring(self) -> str:
        return os.environ.get(self.keyring_variable) or self.own_keyring

    def find_archive(self) -> str:
        """Return the address of an archive, from the variable or else from this machine's apt."""
        if address := os.environ.get(self.variable):
            return address.rstrip("/")
        done = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(RELEASE)|$(REPO_URI)"],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            origin, label, suite, address = line.split("|", 3)
            if origin == label == self.name and "-" not in suite:
                return address.rstrip("/")
        raise Unavailable(
            f"apt of this machine has no archive of {self.name}; give one: {self.variable}=URL"
        )


_DEBIAN = Distribution(
    "Debian",
    ("main",),
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "debian-archive-keyring",
    "MIRROR",
    "KEYRING",
)
_UBUNTU = Distribution(
    "Ubuntu",
    ("main", "universe"),
    "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
    "ubuntu-keyring",  # which Debian has from 13 on
    "UBUNTU_MIRROR",
    "UBUNTU_KEYRING",
)


@dataclass(frozen=True)
class Release:
    """A release that nagi provisions."""

    suite: str
    title: str
    distribution: Distribution

    def make_directory(self) -> Path:
        """Return the directory of the release's tree and archive, and make both if needed.

        Raises:
            Unavailable: They could not be made.
        """
        cache = get_user_cache("releases")
        parts = [self.suite, *self.distribution.components, *INSTALLED, "", *PROVISIONED]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        directory = cache / f"{self.suite}-{key}"
        if not directory.exists():
            cache.mkdir(parents=True, exist_ok=True)
            cache.chmod(0o700)  # the trees have programs that are set-user-ID
            with _lock(cache / f"{self.suite}.lock"):
                if not directory.exists():
                    self._make(directory)
        return directory

    def _make(self, target: Path) -> None:
        address = self.distribution.find_archive()
        if shutil.which("mmdebstrap") is None:
            raise Unavailable("needs mmdebstrap: `apt-get install mmdebstrap`")
        if not Path(self.distribution.keyring).exists():
            raise Unavailable(
                f"needs {self.distribution.keyring}: install {self.distribution.keyring_package}, "
                f"or name a file: {self.distribution.keyring_variable}=FILE"
            )
        with make_scratch(target.parent) as directory:
            partial = directory / "made"
            tree, archive = partial / "tree", partial / "archive"
            partial.mkdir(mode=0o755)
            self._make_tree(address, tree)
            self._make_archive(archive, address, tree)
            self._configure(tree, archive)
            partial.rename(target)

    def _make_tree(self, address: str, tree: Path) -> None:
        self._run(
            *(*_ISOLATED, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"),
            *(f"--include=apt,{','.join(INSTALLED)}", "--skip=cleanup/apt/lists"),
            *(self.suite, str(tree), self._source_line(address)),
        )

    def _source_line(self, address: str) -> str:
        components = " ".join(self.distribution.components)
        return f"deb [signed-by={self.distribution.keyring}] {address} {self.suite} {components}"

    def _make_archive(self, archive: Path, address: str, tree: Path) -> None:
        """Download the signed lists and the packages to their paths in an archive."""
        architecture = self._run("dpkg", "--print-architecture").strip()
        (release,) = (tree / "var/lib/apt/lists").glob("*_InRelease")
        lists = archive / "dists" / self.suite
        lists.mkdir(parents=True)
        shutil.copy(release, lists / "InRelease")
        for component in self.distribution.components:
            name = f"{component}/binary-{architecture}/Packages.xz"
            (checksum,) = re.findall(rf"^ ([0-9a-f]{{64}}) +\d+ {name}$", release.read_text(), re.M)
            (lists / name).parent.mkdir(parents=True)
            self._run(
                *("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=", "download-file"),
                *(f"{address}/dists/{self.suite}/{name}", str(lists / name), f"SHA256:{checksum}"),
            )
        cache = archive.with_name("cache")
        apt = [
            *("apt-get", "--quiet", "--yes", "--no-install-recommends"),
            *("-o", f"Dir={tree}", "-o", f"Dir::State::status={tree}/var/lib/dpkg/status"),
            *("-o", f"Dir::Cache={cache}", "-o", "Dir::Bin::methods=/usr/lib/apt/methods"),
            *("-o", f"APT::Architecture={architecture}", "-o", "APT::Sandbox::User="),
        ]
        # The installer's packages are included: deprovisioning installs those again that
        # provisioning has removed.
        for packages in (PROVISIONED, ("--reinstall", *INSTALLED)):
            install = [*apt, "install", *packages]
            (cache / "archives/partial").mkdir(parents=True, exist_ok=True)
            output = self._run(*install, "--print-uris")
            self._run(*install, "--download-only")
            for url, file in re.findall(r"^'(\S+)' (\S+) \d+", output, re.M):
                path = archive / unquote(url.removeprefix(f"{address}/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                (cache / "archives" / file).rename(path)
            shutil.rmtree(cache)

    def _configure(self, tree: Path, archive: Path) -> None:
        """Replace this machine's settings in the tree: the host name, and apt's archive."""
        (tree / "etc/hostname").write_text(f"{self.suite}\n")
        (tree / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.suite}\n")
        (tree / "etc/resolv.conf").unlink(missing_ok=True)
        # The lists in the cache may be older than apt permits, and have no descriptions. The
        # distribution's keys are at apt's default path.
        components = " ".join(self.distribution.components)
        options = "check-valid-until=no lang=none"
        source = f"deb [{options}] file:{ARCHIVE} {self.suite} {components}"
        (tree / "etc/apt/sources.list").write_text(f"{source}\n")
        shutil.rmtree(tree / "var/lib/apt/lists")
        (tree / ARCHIVE.lstrip("/")).mkdir()
        self._run(*_ISOLATED, "sh", "-c", _UPDATE, "update", str(tree), str(archive))

    def _run(self, *command: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            reason = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-5:])
            raise Unavailable(
                f"{self.distribution.find_archive()}: {reason}; "
                f"give another archive: {self.distribution.variable}=URL"
            )
        return done.stdout


RELEASES = {
    release.suite: release
    for release in (
        Release("bookworm", "Debian 12", _DEBIAN),
        Release("trixie", "Debian 13", _DEBIAN),
        Release("noble", "Ubuntu 24.04", _UBUNTU),
    )
}


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock from entry to exit, or until the process ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
