#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Debian packages of nagi: what `make deb` does.

For the release that this machine runs they are built here. For another one they are built as root
in a tree of that release, which mmdebstrap makes from the distribution's archive. Trees are kept in
$XDG_CACHE_HOME/nagi/deb. bubblewrap shows a build nothing but its tree and its directory.

Packages, and beside them objects and sources, are in build/deb/CODENAME. Needs nothing but Python.
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
# Of the checkout, what packages are built from.
_SOURCES = (
    *("CHANGELOG.md", "CMakeLists.txt", "captures/native", "cmake", "hosts/guest", "hosts/tcp"),
    *("ansible", "hosts/traffic", "link-emulator", "p4/switch", "packaging", "pyproject.toml"),
    "runtime",
)
_LINE = 200  # characters of a line of the log that are shown: commands are longer
_UNUSED = shutil.ignore_patterns("__pycache__", "bench_*.py", "fuzz")
# mmdebstrap mounts /proc, /sys and devices into what it makes. Nobody else is to see that, and it
# ends with this program.
_ALONE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--kill-child", "--fork", "--mount", "--pid", "--mount-proc"),
)
_TREE_BYTES = 3 << 30  # of disk that a tree may take, with GNU Radio


@dataclass(frozen=True)
class Release:
    """A release that packages can be built for in a tree."""

    codename: str
    distribution: str  # as apt names the origin of its packages
    components: str
    keyring: Path
    keyring_package: str


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


class Here:
    """This machine, which builds for the release that it runs."""

    def __init__(self) -> None:
        self.codename = running_release()

    def has(self, package: str) -> bool:
        return _installed(package)

    def make(self) -> None:
        """Nothing has to be made."""

    def prepare(self, directory: Path) -> None:
        """Raises Refused if something that the build needs is missing."""
        missing = _unmet([], directory / "source")
        if missing:
            raise Refused(f"not installed: {missing}", f"as root, run `apt-get install {missing}`")

    def command(self, directory: Path) -> list[str]:
        """What goes before a command that works in the sources of `directory`."""
        return [*_as_owner(), "env", "-C", str(directory / "source")]


class Tree:
    """A tree of another release. Needs root."""

    def __init__(self, release: Release, mirror: str | None, keyring: Path | None) -> None:
        self.codename = release.codename
        self._release = release
        self._mirror = mirror
        self._keyring = keyring or release.keyring
        self._root = tree_of(release.codename)

    def has(self, package: str) -> bool:
        return self._root.exists() and _installed(package, self._root)

    def make(self) -> None:
        """Makes the tree, if it is not there. Raises Refused."""
        if os.geteuid() != 0:
            raise Refused(
                f"a tree of {self.codename} is made and entered by root",
                "run it as root, or on a machine with that release",
            )
        if not self._root.exists():
            self._make()

    def prepare(self, directory: Path) -> None:
        """Installs what the build needs, as far as it is not there. Raises Refused."""
        inside = self._inside(directory, network=True)
        if _unmet(inside, Path("/build/source")):
            _say(f"installing what the build needs into {self._root}")
            install = ["apt-get", "build-dep", "-q", "-y", "--no-install-recommends"]
            install += ["/build/source"]
            for command in (["apt-get", "update", "-q"], install):
                done = _run([*inside, *command])
                if done.returncode != 0:
                    raise Refused(
                        f"{' '.join(command[:2])} in {self._root} failed: {_why(done)}",
                        "mend the connection; or remove that directory, and name another archive "
                        "with MIRROR=URL",
                    )

    def command(self, directory: Path) -> list[str]:
        return [*self._inside(directory, network=False), *_as_owner()]

    def _make(self) -> None:
        for program, package in (("mmdebstrap", "mmdebstrap"), ("bwrap", "bubblewrap")):
            if shutil.which(program) is None:
                raise Refused(f"there is no {program}", f"install it: `apt-get install {package}`")
        distribution = self._release.distribution
        mirror = self._mirror or find_archive(distribution)
        if mirror is None:
            raise Refused(
                f"apt knows no archive of {distribution}, which {self.codename} comes from",
                f"name one: `make deb RELEASE={self.codename} MIRROR=URL`",
            )
        if not self._keyring.exists():
            raise Refused(
                f"there is no {self._keyring}, by whose keys apt checks {self.codename}",
                f"install {self._release.keyring_package}, or name such a file with KEYRING=FILE",
            )
        _make_directory(self._root.parent)
        free = shutil.disk_usage(self._root.parent).free
        if free < _TREE_BYTES:
            raise Refused(
                f"{self._root.parent}: a tree takes up to {_TREE_BYTES / 1e9:.0f} GB, and "
                f"{free / 1e9:.1f} GB are free",
                "make room, or set XDG_CACHE_HOME to a directory elsewhere",
            )
        _say(f"making a tree of {self.codename} from {mirror} (a minute)")
        for left in self._root.parent.glob("*.partial-*"):
            if not Path(f"/proc/{left.name.rpartition('-')[2]}").exists():
                shutil.rmtree(left)
        partial = self._root.with_name(f"{self._root.name}.partial-{os.getpid()}")
        done = _run(
            [
                *_ALONE,
                *("mmdebstrap", "--quiet", "--mode=root", "--variant=apt"),
                *(f"--keyring={self._keyring}", f"--components={self._release.components}"),
                *("--include=build-essential,debhelper", self.codename, str(partial), mirror),
            ]
        )
        if done.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise Refused(
                f"no tree of {self.codename} could be made from {mirror}: {_why(done)}",
                "mend the connection, or name another archive with MIRROR=URL",
            )
        partial.rename(self._root)

    def _inside(self, directory: Path, network: bool) -> list[str]:
        """What goes before a command in the tree, where `directory` is /build."""
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


def build(place: Here | Tree, chosen: list[str]) -> list[Path]:
    """Builds packages, PACKAGES if none are chosen. Returns their files. Raises Refused."""
    place.make()
    if not chosen:
        chosen = [name for name in PACKAGES if name != RADIO or place.has(RADIO_NEEDS)]
        if RADIO not in chosen:
            _say(f"leaving out {RADIO}: {RADIO_NEEDS} (600 MB) is not there; ask for it by name")
    directory = ROOT / "build" / "deb" / place.codename
    _make_directory(directory)
    # For apt, dpkg and debhelper alike.
    without = [f"pkg.nagi.without-{name}" for name in PACKAGES if name not in chosen]
    os.environ["DEB_BUILD_PROFILES"] = " ".join(without)
    _copy_sources(directory / "source", place.codename)
    place.prepare(directory)
    for name in chosen:
        for file in directory.glob(f"{name}_*.deb"):
            file.unlink()
    _give_to_owner(directory)
    log = directory / "build.log"
    _say(f"building {', '.join(chosen)} for {place.codename} (minutes); log: {log}")
    command = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-pre-clean"]
    command += [f"--jobs={os.cpu_count() or 1}"]
    with log.open("w", encoding="utf-8") as said:
        done = subprocess.run(
            [*place.command(directory), *command],
            env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
    _give_to_owner(log)
    if done.returncode != 0:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]:
            print(line[:_LINE], file=sys.stderr)
        raise Refused(f"the build for {place.codename} failed, see above", f"the rest is in {log}")
    listed = (directory / "source" / "debian" / "files").read_text(encoding="utf-8").splitlines()
    names = [line.split()[0] for line in listed]
    return [directory / name for name in names if name.endswith(".deb")]


def tree_of(codename: str) -> Path:
    """Where the tree of a release is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / "deb" / codename


def version() -> str:
    """Of all that nagi is."""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise AssertionError("pyproject.toml has no version")


def running_release() -> str:
    """The codename of the release that this machine runs."""
    file = Path(os.environ.get("OS_RELEASE", "/etc/os-release"))
    for line in file.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    raise Refused(f"{file} names no VERSION_CODENAME", "build on Debian or Ubuntu")


def _copy_sources(target: Path, codename: str) -> None:
    """As they are in the checkout, with the times that they have there: what is built from them and
    has not changed is not built again."""
    shutil.rmtree(target, ignore_errors=True)
    for name in _SOURCES:
        source = ROOT / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=_UNUSED, symlinks=True)
        else:
            shutil.copy2(source, target / name)
    shutil.copytree(target / "packaging" / "debian", target / "debian", symlinks=True)
    newest = max(file.stat().st_mtime for file in _files(target))
    maintainer = next(
        line.partition(": ")[2]
        for line in (target / "debian" / "control").read_text(encoding="utf-8").splitlines()
        if line.startswith("Maintainer: ")
    )
    (target / "debian" / "changelog").write_text(
        f"nagi ({version()}) {codename}; urgency=medium\n\n"
        f"  * Built for {codename}. CHANGELOG.md lists the changes.\n\n"
        f" -- {maintainer}  {format_datetime(datetime.fromtimestamp(newest, UTC))}\n",
        encoding="utf-8",
    )


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())


def _installed(package: str, root: Path = Path("/")) -> bool:
    query = ["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${db:Status-Status}"]
    return _run([*query, package]).stdout == "installed"


def _unmet(inside: list[str], source: Path) -> str:
    """The packages that a build needs and that are not installed. `inside`: what goes before a
    command there."""
    done = _run([*inside, "dpkg-checkbuilddeps", str(source / "debian" / "control")])
    return done.stderr.strip().rpartition(": ")[2] if done.returncode != 0 else ""


def _as_owner() -> list[str]:
    """What has root build as whom the checkout belongs to."""
    owner = ROOT.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return []
    return ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]


def _give_to_owner(path: Path) -> None:
    """Gives what root has made in the checkout to whom the checkout belongs to."""
    owner = ROOT.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for each in (path, *(path.rglob("*") if path.is_dir() else ())):
            os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _make_directory(path: Path) -> None:
    """With the parents that it lacks. What root makes belongs to whom the directory above it does:
    with sudo, the cache is a user's."""
    if not path.exists():
        _make_directory(path.parent)
        path.mkdir()
        above = path.parent.stat()
        if os.geteuid() == 0:
            os.chown(path, above.st_uid, above.st_gid)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise Refused(
            f"there is no {command[0]}", "install what `make deb` names, as root"
        ) from None


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """The first error that apt or mmdebstrap gives, else the last line."""
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E: ")]
    return (errors or lines[-1:] or ["no reason given"])[0].strip()


def _say(text: str) -> None:
    print(f"== {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="builds Debian packages of nagi")
    parser.add_argument("--release", help="codename; if not given, the one that this machine runs")
    parser.add_argument("--mirror", help="archive that a tree is made from; if not given, apt's")
    parser.add_argument("--keyring", type=Path, help="by whose keys that archive is checked")
    parser.add_argument("--package", action="append", default=[], help="may be repeated")
    given = parser.parse_args()
    try:
        for name in given.package:
            if name not in PACKAGES:
                raise Refused(f"there is no package {name}", f"one of: {', '.join(PACKAGES)}")
        place: Here | Tree
        if given.release in (None, running_release()):
            place = Here()
        elif given.release in RELEASES:
            place = Tree(RELEASES[given.release], given.mirror, given.keyring)
        else:
            raise Refused(
                f"nagi has no packages for {given.release}", f"one of: {', '.join(RELEASES)}"
            )
        for file in build(place, given.package):
            print(file.relative_to(ROOT))
    except Refused as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
