# SPDX-License-Identifier: Apache-2.0
"""Systems of other releases, fresh from an installer: a tree of each, and an archive of packages.

Both are made once by mmdebstrap and apt, and kept in the user's cache
($XDG_CACHE_HOME/nagi/releases), a directory for each release and list of packages:

    tree      what a host boots, read-only
    archive   the distribution's own signed lists, and the packages that provisioning may install

apt of such a host has the archive at ARCHIVE, by a file: address, so it needs no network: it
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
# What a host is given by the installer, besides what dpkg and apt need.
INSTALLED = (
    *("systemd-sysv", "dbus", "udev", "systemd-timesyncd", "iproute2", "python3"),
    *("openssh-server", "sudo"),
)
# What the roles may install, by names and patterns of apt-get. A package that is missing here is
# not found by apt of the hosts: add it.
PROVISIONED = (
    *("ethtool", "tcpdump", "iperf", "kmod", "procps", "util-linux", "libcap2-bin", "python3-apt"),
    *("libspdlog1.*", "libxdp1", "libbpf1", "libelf1*", "libcap-ng0", "libstdc++6"),
    *("chrony", "linuxptp", "python3-thrift"),
)
# Whoever is killed takes all that it started, and its mounts, with it.
_ALONE = (
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
    """A release cannot be had here: why, and how to get it."""


@dataclass(frozen=True)
class Distribution:
    """Where the releases of one are from."""

    name: str  # as its archive says
    components: tuple[str, ...]
    own_keyring: str
    keyring_package: str
    # Of the environment, and of make: the address of an archive, and the keys that sign it.
    variable: str
    keyring_variable: str

    @property
    def keyring(self) -> str:
        return os.environ.get(self.keyring_variable) or self.own_keyring

    def archive(self) -> str:
        """The address of an archive: the variable's, or the one that this machine's apt has."""
        if given := os.environ.get(self.variable):
            return given.rstrip("/")
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(RELEASE)|$(REPO_URI)"],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in listed.stdout.splitlines():
            origin, label, suite, address = line.split("|", 3)
            if origin == label == self.name and "-" not in suite:
                return address.rstrip("/")
        raise Unavailable(
            f"apt of this machine knows no archive of {self.name}; give one: {self.variable}=URL"
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

    def directory(self) -> Path:
        """Where its tree and its archive are, made if they are not yet. Raises Unavailable."""
        cache = get_user_cache("releases")
        what = [self.suite, *self.distribution.components, *INSTALLED, "", *PROVISIONED]
        key = hashlib.sha256("\n".join(what).encode()).hexdigest()[:16]
        made = cache / f"{self.suite}-{key}"
        if not made.exists():
            cache.mkdir(parents=True, exist_ok=True)
            cache.chmod(0o700)  # the trees have programs that are set-user-ID
            with _locked(cache / f"{self.suite}.lock"):
                if not made.exists():
                    self._make(made)
        return made

    def _make(self, target: Path) -> None:
        address = self.distribution.archive()
        if shutil.which("mmdebstrap") is None:
            raise Unavailable("needs mmdebstrap: `apt-get install mmdebstrap`")
        if not Path(self.distribution.keyring).exists():
            raise Unavailable(
                f"needs {self.distribution.keyring}: install {self.distribution.keyring_package}, "
                f"or name a file: {self.distribution.keyring_variable}=FILE"
            )
        with make_scratch(target.parent) as directory:
            made = directory / "made"
            tree, archive = made / "tree", made / "archive"
            made.mkdir(mode=0o755)
            self._bootstrap(address, tree)
            self._fill(archive, address, tree)
            self._settle(tree, archive)
            made.rename(target)

    def _bootstrap(self, address: str, tree: Path) -> None:
        self._run(
            *(*_ALONE, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"),
            *(f"--include=apt,{','.join(INSTALLED)}", "--skip=cleanup/apt/lists"),
            *(self.suite, str(tree), self._source(address)),
        )

    def _source(self, address: str) -> str:
        components = " ".join(self.distribution.components)
        return f"deb [signed-by={self.distribution.keyring}] {address} {self.suite} {components}"

    def _fill(self, archive: Path, address: str, tree: Path) -> None:
        """The archive: lists as they were signed, and packages, all in their places."""
        architecture = self._run("dpkg", "--print-architecture").strip()
        (release,) = (tree / "var/lib/apt/lists").glob("*_InRelease")
        place = archive / "dists" / self.suite
        place.mkdir(parents=True)
        shutil.copy(release, place / "InRelease")
        for component in self.distribution.components:
            name = f"{component}/binary-{architecture}/Packages.xz"
            (checksum,) = re.findall(rf"^ ([0-9a-f]{{64}}) +\d+ {name}$", release.read_text(), re.M)
            (place / name).parent.mkdir(parents=True)
            self._run(
                *("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=", "download-file"),
                *(f"{address}/dists/{self.suite}/{name}", str(place / name), f"SHA256:{checksum}"),
            )
        cache = archive.with_name("cache")
        apt = [
            *("apt-get", "--quiet", "--yes", "--no-install-recommends"),
            *("-o", f"Dir={tree}", "-o", f"Dir::State::status={tree}/var/lib/dpkg/status"),
            *("-o", f"Dir::Cache={cache}", "-o", "Dir::Bin::methods=/usr/lib/apt/methods"),
            *("-o", f"APT::Architecture={architecture}", "-o", "APT::Sandbox::User="),
        ]
        # Those of the installer, too: what provisioning drives out, deprovisioning brings back.
        for packages in (PROVISIONED, ("--reinstall", *INSTALLED)):
            wanted = [*apt, "install", *packages]
            (cache / "archives/partial").mkdir(parents=True, exist_ok=True)
            listed = self._run(*wanted, "--print-uris")
            self._run(*wanted, "--download-only")
            for url, file in re.findall(r"^'(\S+)' (\S+) \d+", listed, re.M):
                place = archive / unquote(url.removeprefix(f"{address}/"))
                place.parent.mkdir(parents=True, exist_ok=True)
                (cache / "archives" / file).rename(place)
            shutil.rmtree(cache)

    def _settle(self, tree: Path, archive: Path) -> None:
        """The tree is no part of this machine: it has a name of its own, and its own archive."""
        (tree / "etc/hostname").write_text(f"{self.suite}\n")
        (tree / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.suite}\n")
        (tree / "etc/resolv.conf").unlink(missing_ok=True)
        # Lists that are kept are older than they may be; descriptions are in none of them.
        # The distribution's keys are where its apt looks for them.
        components = " ".join(self.distribution.components)
        options = "check-valid-until=no lang=none"
        source = f"deb [{options}] file:{ARCHIVE} {self.suite} {components}"
        (tree / "etc/apt/sources.list").write_text(f"{source}\n")
        shutil.rmtree(tree / "var/lib/apt/lists")
        (tree / ARCHIVE.lstrip("/")).mkdir()
        self._run(*_ALONE, "sh", "-c", _UPDATE, "update", str(tree), str(archive))

    def _run(self, *command: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            said = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-5:])
            raise Unavailable(
                f"{self.distribution.archive()}: {said}; "
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
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock from entry to exit; it goes with the process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
