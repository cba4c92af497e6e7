# SPDX-License-Identifier: Apache-2.0
"""Download Debian's Linux source package by apt, unpack it, and prune it after the build."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from kernel_messages import Refused, report_progress

# The package with which this build was tested. Debian's backports drop old packages. If they have
# dropped this package, the build uses the newest one.
PACKAGE = "linux-source-7.2"
OLDEST = (6, 17)  # the first with DualPI2; since 6.16 User-mode Linux uses seccomp, not ptrace
SUITE = "trixie-backports"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Patterns for tar: source files that this kernel does not need (most of the sources). They exclude
# no file named Kconfig, because the configuration reads all of these.
_UNUSED = (
    *("*/Documentation/*.*", "*/sound/*.[ch]", "*/tools/testing/*", "*/tools/perf/*"),
    *(f"*/arch/[!ux]*/*.{suffix}" for suffix in ("[chS]", "dts", "dtsi", "dtso")),
    # Of the drivers, the kernel needs base, char, net, pci and tty.
    *("*/drivers/[!bcnpt]*/*.[ch]", "*/drivers/net/*/*.[ch]", "*/drivers/c[lpr]*/*.[ch]"),
)
# The files and directories of the sources that the build of modules needs.
_FOR_MODULES = ("Makefile", "Kbuild", "Kconfig", "scripts", "include", "tools/include")
_ARCHITECTURES = ("um", "x86")


def find_archive(origin: str) -> str | None:
    """Return the URL from which apt gets the packages of a distribution; None without such a URL.

    Args:
        origin: name of the distribution, such as "Debian".
    """
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in targets.stdout.splitlines():
        target_origin, label, url = line.split("|", 2)
        if target_origin == label == origin:
            return url
    return None


def require_debian_archive() -> str:
    """Return the URL of the Debian archive that apt uses.

    Raises:
        Refused: Apt has no Debian archive.
    """
    url = find_archive("Debian")
    if url is None:
        raise Refused(
            "apt has no Debian archive, from which the kernel's source is downloaded",
            "on Debian run `apt-get update`; on other systems give an archive with --mirror URL, "
            "or a kernel tree with --tree DIRECTORY",
        )
    return url


def download_source(mirror: str, scratch: Path) -> tuple[str, Path]:
    """Download a linux-source package by apt, without changing apt's own sources and lists.

    Args:
        mirror: URL of the Debian archive.
        scratch: an empty directory.

    Returns:
        Name and version of the package, such as "linux-source-7.2 7.2.1-1", and the package's file.

    Raises:
        Refused: Apt fails, or the archive has no package that is new enough.
    """
    if not KEYRING.exists():
        raise Refused(f"{KEYRING} does not exist", "run `apt-get install debian-archive-keyring`")
    (scratch / "lists" / "partial").mkdir(parents=True)
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    options = [
        *("-q", "-o", f"Dir::State::lists={scratch}/lists", "-o", f"Dir::Cache={scratch}"),
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"),
        *("-o", "APT::Update::Error-Mode=any"),
    ]

    def run_apt(*command: str) -> str:
        """Run a command of apt, and return its output. Raise Refused if it fails."""
        result = subprocess.run(
            [command[0], *options, *command[1:]],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            reason = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
            raise Refused(
                f"{' '.join(command)} of {mirror} {SUITE} failed: {' '.join(reason)}",
                "check the network and the URL, or give a kernel tree with --tree DIRECTORY",
            )
        return result.stdout

    report_progress(f"asking {mirror} for {SUITE}")
    run_apt("apt-get", "update")
    lines = run_apt("apt-cache", "search", "^linux-source-").splitlines()
    names = [line.split()[0] for line in lines]
    versions = {name: parse_numbers(name) for name in names if parse_numbers(name) >= OLDEST}
    if not versions:
        raise Refused(
            f"{SUITE} has no linux-source package of Linux {'.'.join(map(str, OLDEST))} or newer",
            "give a kernel tree with --tree DIRECTORY",
        )
    newest = max(versions, key=lambda name: versions[name])
    name = PACKAGE if PACKAGE in versions else newest
    if name != PACKAGE:
        report_progress(f"{SUITE} no longer has {PACKAGE}; using {name}, which is untested")
    report_progress(f"downloading {name} (about 165 MB)")
    run_apt("apt-get", "download", name)
    (file,) = scratch.glob("*.deb")
    return f"{name} {file.name.split('_')[1]}", file


def parse_numbers(text: str) -> tuple[int, ...]:
    """Return all whole numbers in a text, such as (7, 2) for "linux-source-7.2"."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def unpack_source(package: Path, target: Path) -> None:
    """Unpack a linux-source package, except most files that this kernel does not need.

    Args:
        package: file of a linux-source package.
        target: directory to create.
    """
    report_progress(f"unpacking {package.name}")
    target.mkdir()
    name = package.name.split("_")[0]
    command = (
        f'dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/src/{name}.tar.xz'
        ' | xz -dc -T0 | tar -x -b 512 -C "$2" --strip-components=1 "${@:3}"'
    )
    unused = [f"--exclude={pattern}" for pattern in _UNUSED]
    arguments = ["bash", str(package), str(target), *unused]
    subprocess.run(["bash", "-o", "pipefail", "-c", command, *arguments], check=True)


def read_version(tree: Path) -> str:
    """Return the version of a Linux tree, such as "7.2"."""
    text = (tree / "Makefile").read_text(encoding="utf-8")
    parts = (re.search(rf"^{part} = (\d+)", text, re.M) for part in ("VERSION", "PATCHLEVEL"))
    return ".".join(part[1] for part in parts if part is not None)


def prune_source(tree: Path) -> None:
    """Remove from a Linux tree all files that the build of modules does not need."""
    needed_paths = [tree / name for name in _FOR_MODULES]
    needed_paths += [
        path
        for name in _ARCHITECTURES
        for top in [tree / "arch" / name]
        for path in (top / "include", top / "um", *top.glob("Makefile*"), *top.glob("Kconfig*"))
    ]

    def prune(directory: Path) -> None:
        for entry in directory.iterdir():
            if entry in needed_paths or any(path in entry.parents for path in needed_paths):
                continue
            if any(entry in path.parents for path in needed_paths):
                prune(entry)
            elif entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    prune(tree)
