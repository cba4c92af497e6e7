#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Build Debian packages of nagi, for `make deb`.

Packages for the release of this machine are built directly. Packages for another release are built
as root in a tree, which is a root directory with an installation of that release. mmdebstrap makes
trees from the distribution's archive, in $XDG_CACHE_HOME/nagi/deb. A build runs in bubblewrap, so
that it sees only its tree and its build directory.

The packages, with objects and sources, are in build/deb/CODENAME. This script needs only Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "hosts" / "guest"))

from kernel_messages import Refused  # noqa: E402
from kernel_source import find_archive  # noqa: E402

PACKAGES = ("nagi-link", "nagi-switch", "nagi-tcp", "nagi-traffic", "gr-nagi")
RADIO, RADIO_NEEDS = "gr-nagi", "gnuradio-dev"
# Files and directories of the checkout from which packages are built.
_SOURCES = (
    *("CHANGELOG.md", "CMakeLists.txt", "captures/native", "cmake", "hosts/guest", "hosts/tcp"),
    *("ansible", "hosts/traffic", "link-emulator", "p4/switch", "packaging", "pyproject.toml"),
    "runtime",
)
_MAX_SHOWN = 200  # characters of a line of the log; lines with compiler commands are longer
_UNUSED = shutil.ignore_patterns("__pycache__", "bench_*.py", "fuzz")
# mmdebstrap mounts /proc, /sys and devices into the tree. It runs in its own namespaces, so that
# other programs do not see the mounts, and is killed when this program ends.
_ISOLATED = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--kill-child", "--fork", "--mount", "--pid", "--mount-proc"),
)
_TREE_BYTES = 3 << 30  # largest size of a tree, with GNU Radio


@dataclass(frozen=True)
class Release:
    """A release for which packages can be built in a tree."""

    codename: str
    distribution: str  # origin of its packages, as apt names it
    components: str  # components of the archive
    keyring: Path  # file with the keys of the archive
    keyring_package: str  # package that has this file


_DEBIAN = (
    "Debian",
    "main",
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    "debian-archive-keyring",
)
_UBUNTU = (
    "Ubuntu",
    "main,universe",
    Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
    "ubuntu-keyring",
)
RELEASES = {
    release.codename: release
    for release in (
        Release("bookworm", *_DEBIAN),
        Release("trixie", *_DEBIAN),
        Release("noble", *_UBUNTU),
    )
}


class LocalBuilder:
    """A builder of packages for the release of this machine, which needs no tree."""

    def __init__(self) -> None:
        self.codename = read_codename()

    def has_package(self, package: str) -> bool:
        """Return whether a package is installed on this machine."""
        return _is_installed(package)

    def create(self) -> None:
        """Do nothing, because this machine needs no tree."""

    def install_dependencies(self, directory: Path) -> None:
        """Check that the dependencies of the build are installed; install nothing.

        Raises:
            Refused: A dependency is missing.
        """
        missing = _find_missing_dependencies([], directory / "source")
        if missing:
            raise Refused(f"not installed: {missing}", f"as root, run `apt-get install {missing}`")

    def command_prefix(self, directory: Path) -> list[str]:
        """Return the words to put before a command so that it runs in `directory`/source.

        If this user is root, the command runs as the checkout's owner.
        """
        return [*_as_owner(), "env", "-C", str(directory / "source")]


class TreeBuilder:
    """A builder of packages for another release, in a tree of that release. It needs root."""

    def __init__(self, release: Release, mirror: str | None, keyring: Path | None) -> None:
        self.codename = release.codename
        self._release = release
        self._mirror = mirror
        self._keyring = keyring or release.keyring
        self._root = tree_path(release.codename)

    def has_package(self, package: str) -> bool:
        """Return whether the tree exists and has a package."""
        return self._root.exists() and _is_installed(package, self._root)

    def create(self) -> None:
        """Create the tree if it does not exist.

        Raises:
            Refused: The user is not root, or mmdebstrap cannot make the tree.
        """
        if os.geteuid() != 0:
            raise Refused(
                f"only root can make and enter a tree of {self.codename}",
                f"run it as root, or on a machine with {self.codename}",
            )
        if not self._root.exists():
            self._create()

    def install_dependencies(self, directory: Path) -> None:
        """Install the missing dependencies of the build in the tree.

        Raises:
            Refused: apt-get failed.
        """
        prefix = self._enter(directory, network=True)
        if _find_missing_dependencies(prefix, Path("/build/source")):
            _report(f"installing the dependencies of the build into {self._root}")
            install = ["apt-get", "build-dep", "-q", "-y", "--no-install-recommends"]
            install += ["/build/source"]
            for command in (["apt-get", "update", "-q"], install):
                done = _run([*prefix, *command])
                if done.returncode != 0:
                    raise Refused(
                        f"{' '.join(command[:2])} in {self._root} failed: {_find_reason(done)}",
                        f"repair the connection, or remove {self._root} and name another archive "
                        "with MIRROR=URL",
                    )

    def command_prefix(self, directory: Path) -> list[str]:
        """Return the words to put before a command so that it runs in the tree.

        The working directory of the command is `directory`/source. The command runs as the
        checkout's owner, without network.
        """
        return [*self._enter(directory, network=False), *_as_owner()]

    def _create(self) -> None:
        """Make the tree with mmdebstrap. The tree has a temporary name until it is complete.

        Incomplete trees of processes that have ended are deleted first.

        Raises:
            Refused: A program, the archive or its keys are missing, the disk is too full, or
                mmdebstrap failed.
        """
        for program, package in (("mmdebstrap", "mmdebstrap"), ("bwrap", "bubblewrap")):
            if shutil.which(program) is None:
                raise Refused(f"there is no {program}", f"install it: `apt-get install {package}`")
        distribution = self._release.distribution
        mirror = self._mirror or find_archive(distribution)
        if mirror is None:
            raise Refused(
                f"apt has no archive of {distribution}, the distribution of {self.codename}",
                f"name an archive: `make deb RELEASE={self.codename} MIRROR=URL`",
            )
        if not self._keyring.exists():
            raise Refused(
                f"there is no {self._keyring}, with the keys of {self.codename}'s archive",
                f"install {self._release.keyring_package}, or give a file of keys by KEYRING=FILE",
            )
        _make_directory(self._root.parent)
        free = shutil.disk_usage(self._root.parent).free
        if free < _TREE_BYTES:
            raise Refused(
                f"{self._root.parent}: a tree takes up to {_TREE_BYTES / 1e9:.0f} GB, and "
                f"{free / 1e9:.1f} GB are free",
                "free disk space, or set XDG_CACHE_HOME to a directory on another disk",
            )
        _report(f"making a tree of {self.codename} from {mirror} (takes a minute)")
        for leftover in self._root.parent.glob("*.partial-*"):
            if not Path(f"/proc/{leftover.name.rpartition('-')[2]}").exists():
                shutil.rmtree(leftover)
        partial = self._root.with_name(f"{self._root.name}.partial-{os.getpid()}")
        done = _run(
            [
                *_ISOLATED,
                *("mmdebstrap", "--quiet", "--mode=root", "--variant=apt"),
                *(f"--keyring={self._keyring}", f"--components={self._release.components}"),
                *("--include=build-essential,debhelper", self.codename, str(partial), mirror),
            ]
        )
        if done.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise Refused(
                f"no tree of {self.codename} could be made from {mirror}: {_find_reason(done)}",
                "repair the connection, or name another archive with MIRROR=URL",
            )
        partial.rename(self._root)

    def _enter(self, directory: Path, network: bool) -> list[str]:
        """Return the words to put before a command so that it runs in the tree.

        Args:
            directory: The build directory, which the command sees as /build.
            network: Whether the command can use the network.
        """
        command = ["bwrap", "--die-with-parent", "--cap-add", "ALL", "--bind", str(self._root), "/"]
        command += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"]
        command += ["--bind", str(directory), "/build", "--chdir", "/build/source"]
        command += ["--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        if network:
            command += ["--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"]
        else:
            command += ["--unshare-net"]
        command += ["--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin"]
        return [*command, "--setenv", "DEBIAN_FRONTEND", "noninteractive", "--"]


def build(builder: LocalBuilder | TreeBuilder, names: list[str]) -> list[Path]:
    """Build packages, and return their files. Earlier files of these packages are deleted.

    Progress goes to standard output; if the build fails, the end of its log goes to standard error.
    The environment variable DEB_BUILD_PROFILES is changed.

    Args:
        builder: The builder for a release.
        names: The packages; empty means all packages, without gr-nagi if GNU Radio is missing.

    Raises:
        Refused: A dependency is missing, or the build failed.
    """
    builder.create()
    if not names:
        names = [name for name in PACKAGES if name != RADIO or builder.has_package(RADIO_NEEDS)]
        if RADIO not in names:
            _report(
                f"leaving out {RADIO}, because {RADIO_NEEDS} (600 MB) is not installed; to build "
                f"it, name {RADIO}"
            )
    directory = ROOT / "build" / "deb" / builder.codename
    _make_directory(directory)
    # apt, dpkg and debhelper read the profiles from the environment.
    profiles = [f"pkg.nagi.without-{name}" for name in PACKAGES if name not in names]
    os.environ["DEB_BUILD_PROFILES"] = " ".join(profiles)
    _copy_sources(directory / "source", builder.codename)
    builder.install_dependencies(directory)
    for name in names:
        for file in directory.glob(f"{name}_*.deb"):
            file.unlink()
    _give_to_owner(directory)
    log = directory / "build.log"
    _report(f"building {', '.join(names)} for {builder.codename} (minutes); log: {log}")
    command = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-pre-clean"]
    command += [f"--jobs={os.cpu_count() or 1}"]
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [*builder.command_prefix(directory), *command],
            env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    _give_to_owner(log)
    if done.returncode != 0:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]:
            print(line[:_MAX_SHOWN], file=sys.stderr)
        raise Refused(
            f"the build for {builder.codename} failed, see above", f"the rest is in {log}"
        )
    lines = (directory / "source" / "debian" / "files").read_text(encoding="utf-8").splitlines()
    files = [line.split()[0] for line in lines]
    return [directory / file for file in files if file.endswith(".deb")]


def tree_path(codename: str) -> Path:
    """Return the path of a release's tree, which may not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / "deb" / codename


def read_version() -> str:
    """Read nagi's version from pyproject.toml."""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise AssertionError("pyproject.toml has no version")


def read_codename() -> str:
    """Read the codename of this machine's release, such as bookworm.

    Raises:
        Refused: os-release has no codename.
    """
    file = Path(os.environ.get("OS_RELEASE", "/etc/os-release"))
    for line in file.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    raise Refused(f"{file} has no VERSION_CODENAME", "build on Debian or Ubuntu")


def _copy_sources(target: Path, codename: str) -> None:
    """Copy the sources to `target` with their times, so that unchanged files are not built again.

    Earlier contents of `target` are deleted. The changelog has the date of the newest file.
    """
    shutil.rmtree(target, ignore_errors=True)
    for name in _SOURCES:
        source = ROOT / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=_UNUSED, symlinks=True)
        else:
            shutil.copy2(source, target / name)
    shutil.copytree(target / "packaging" / "debian", target / "debian", symlinks=True)
    newest = max(file.stat().st_mtime for file in _list_files(target))
    maintainer = next(
        line.partition(": ")[2]
        for line in (target / "debian" / "control").read_text(encoding="utf-8").splitlines()
        if line.startswith("Maintainer: ")
    )
    (target / "debian" / "changelog").write_text(
        f"nagi ({read_version()}) {codename}; urgency=medium\n\n"
        f"  * Built for {codename}. CHANGELOG.md lists the changes.\n\n"
        f" -- {maintainer}  {format_datetime(datetime.fromtimestamp(newest, UTC))}\n",
        encoding="utf-8",
    )


def _list_files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())


def _is_installed(package: str, root: Path = Path("/")) -> bool:
    query = ["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${db:Status-Status}"]
    return _run([*query, package]).stdout == "installed"


def _find_missing_dependencies(prefix: list[str], source: Path) -> str:
    """Return the dependencies of the build that are not installed, separated by spaces.

    Return an empty text if all are installed.

    Args:
        prefix: The words to put before a command so that it runs in the builder's release.
        source: Path of the sources, as the command sees it.
    """
    done = _run([*prefix, "dpkg-checkbuilddeps", str(source / "debian" / "control")])
    return done.stderr.strip().rpartition(": ")[2] if done.returncode != 0 else ""


def _as_owner() -> list[str]:
    """Return the words to put before a command so that it runs as the checkout's owner.

    Return no words if this user is not root, or root owns the checkout.
    """
    owner = ROOT.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return []
    return ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]


def _give_to_owner(path: Path) -> None:
    """Make the checkout's owner the owner of a path and all files in it, if this user is root."""
    owner = ROOT.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for file in (path, *(path.rglob("*") if path.is_dir() else ())):
            os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _make_directory(path: Path) -> None:
    """Make a directory and its parents. Each new directory gets the owner of its parent.

    So if the user runs this program with sudo, the user owns the new directories in the cache.
    """
    if not path.exists():
        _make_directory(path.parent)
        path.mkdir()
        parent = path.parent.stat()
        if os.geteuid() == 0:
            os.chown(path, parent.st_uid, parent.st_gid)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise Refused(
            f"there is no {command[0]}", "as root, install the packages that `make deb` names"
        ) from None


def _find_reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the first error of apt or mmdebstrap; without an error, the last line of output."""
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E: ")]
    return (errors or lines[-1:] or ["no reason given"])[0].strip()


def _report(text: str) -> None:
    print(f"== {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="builds Debian packages of nagi")
    parser.add_argument("--release", help="codename of the release; default: this machine's")
    parser.add_argument(
        "--mirror", help="URL of the archive from which a tree is made; default: apt's"
    )
    parser.add_argument("--keyring", type=Path, help="file with the keys of the archive")
    parser.add_argument(
        "--package", action="append", default=[], help="package to build; may be repeated"
    )
    options = parser.parse_args()
    try:
        for name in options.package:
            if name not in PACKAGES:
                raise Refused(f"there is no package {name}", f"one of: {', '.join(PACKAGES)}")
        builder: LocalBuilder | TreeBuilder
        if options.release in (None, read_codename()):
            builder = LocalBuilder()
        elif options.release in RELEASES:
            builder = TreeBuilder(RELEASES[options.release], options.mirror, options.keyring)
        else:
            raise Refused(
                f"nagi has no packages for {options.release}", f"one of: {', '.join(RELEASES)}"
            )
        for file in build(builder, options.package):
            print(file.relative_to(ROOT))
    except Refused as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
