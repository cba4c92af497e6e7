# SPDX-License-Identifier: Apache-2.0
"""Builds the guest kernel of the virtual lab: User-mode Linux, from one of Debian's linux-source
packages, with the TCP schemes of hosts/tcp as its modules.

A program that needs nothing but Python, so that `make` can start it before anything is installed:
`python3 kernel.py --to DIRECTORY`. `nagi setup virtual-lab` takes it as a module.

Kernels are kept outside the checkout ($XDG_CACHE_HOME/nagi/guest-kernel), a directory for each
content: configuration, source and compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What it was tried with. Backports drop packages; then the newest one there is does.
PACKAGE = "linux-source-7.2"
OLDEST = (6, 17)  # has DualPI2; from 6.16 on system calls go by seccomp, not by ptrace
SUITE = "trixie-backports"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FILE = "kernel.json"  # what a kernel is; nagi's GuestKernel says what is in there
_HERE = Path(__file__).resolve().parent
_CONFIGURATION, _COMPILE, _COMMON = (
    _HERE / name for name in ("kernel.config", "compile.sh", "common.h")
)
_MODULE_SOURCES = _HERE.parent / "tcp"
_PLAIN = re.compile(r"[A-Za-z0-9_./@+-]+")  # names that make, shells and Kbuild leave alone
_LINUX = "linux"
_BUILD, _SOURCE = "build", "source"
_OBJECTS = 700  # that are compiled, about; for the progress
# Processor seconds that the build takes, about.
_BUILD_S = 320
# So many at once a processor: where others are at work, too, the build gets the greater part of it.
_JOBS_A_PROCESSOR = 3
# Of the sources, what is no part of this kernel, for tar: most. Kconfig reads its files everywhere.
_UNUSED = (
    *("*/Documentation/*.*", "*/sound/*.[ch]", "*/tools/testing/*", "*/tools/perf/*"),
    *(f"*/arch/[!ux]*/*.{kind}" for kind in ("[chS]", "dts", "dtsi", "dtso")),
    # Of the drivers, base, char, net, pci and tty are.
    *("*/drivers/[!bcnpt]*/*.[ch]", "*/drivers/net/*/*.[ch]", "*/drivers/c[lpr]*/*.[ch]"),
)
# Of the sources, what modules need to be built.
_FOR_MODULES = ("Makefile", "Kbuild", "Kconfig", "scripts", "include", "tools/include")
_ARCHITECTURES = ("um", "x86")
# What building kernel and modules takes, and what runs guests: program -> Debian's package.
_PROGRAMS = {
    **{"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc"},
    **{"xz": "xz-utils", "bwrap": "bubblewrap"},
}


class Refused(Exception):
    """It cannot be built: what is wrong, what would be right, and of which file."""

    def __init__(self, what: str, cure: str, file: str = "") -> None:
        super().__init__(f"{file}: {what}; {cure}" if file else f"{what}; {cure}")
        self.what = what
        self.cure = cure
        self.file = file


def configuration() -> str:
    """Stands for how a kernel is configured and compiled now."""
    return _digest(_CONFIGURATION, _COMPILE, _COMMON)


def module_sources() -> str:
    """Stands for what the modules are built from now."""
    return _digest(*sorted([*_MODULE_SOURCES.glob("*.c"), *_MODULE_SOURCES.glob("*/*.h")]))


def minutes() -> str:
    """How long a kernel takes to build, about."""
    number = max(1, round(_BUILD_S / (os.cpu_count() or 1) / 60))
    return f"{number} minute{'s' * (number > 1)}"


def _digest(*files: Path) -> str:
    listed = "".join(f"{file.name} {_sha256_of(file)}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def _sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read(directory: Path) -> dict[str, Any] | None:
    """What is said of the kernel in a directory, if one is there."""
    try:
        found: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _write(kernel: dict[str, Any], directory: Path) -> None:
    partial = directory / f"{FILE}.partial"
    partial.write_text(json.dumps(kernel, indent=1) + "\n", encoding="utf-8")
    partial.replace(directory / FILE)


def set_up(target: Path, tree: Path | None, mirror: str | None) -> str:
    """Builds kernel and modules and installs them in `target`, as far as they are not there yet.
    The kernel's source comes from apt's Debian archive, from `mirror`, another one, or from `tree`.
    Returns what there is, in words. Raises Refused."""
    _require_programs()
    for path in (_cache(), tree or _cache()):
        _require_plain(str(path.absolute()), str(path))
    cached = _build(tree, mirror)
    built, there = _read(cached), _read(target)
    assert built is not None
    wanted = {**built, "module_sources": module_sources(), "build": str(cached / _BUILD)}
    if there is None or not wanted.items() <= there.items():
        with tempfile.TemporaryDirectory(prefix="nagi-modules-") as scratch:
            there = _install(wanted, cached, _build_modules(cached / _BUILD, Path(scratch)), target)
    return (
        f"guest kernel: Linux {there['release']} of {there['source']}, "
        f"with {', '.join(there['modules'])}"
    )


def _build(tree: Path | None, mirror: str | None) -> Path:
    """Builds the kernel, unless the cache has it. Returns its directory there."""
    compiler = _compiler()
    if tree is None:
        found = _cached(compiler)
        if found is not None:
            return found
        with tempfile.TemporaryDirectory(prefix="nagi-linux-source-") as scratch:
            source, package = _download(mirror or _debian_archive(), Path(scratch))
            return _made(compiler, source, package)
    if not (tree / "Makefile").exists():
        raise Refused(
            "no kernel's sources are there", "give the top of a Linux tree", file=str(tree)
        )
    tree = tree.resolve()
    return _made(compiler, f"{tree} {_version(tree)}", tree)


def _require_programs() -> None:
    missing = [package for name, package in _PROGRAMS.items() if shutil.which(name) is None]
    if missing:
        raise Refused(
            f"the virtual lab needs programs that are not installed: {', '.join(missing)}",
            f"install them: `apt-get install {' '.join(missing)}`",
        )


def _build_modules(kernel_build: Path, scratch: Path) -> list[Path]:
    """Build the TCP schemes as modules of the kernel with this build directory."""
    stage_module_sources(sorted(_MODULE_SOURCES.glob("*.c")), scratch)
    done = subprocess.run(
        module_command(kernel_build, scratch),
        env=module_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        raise Refused(
            f"the TCP schemes cannot be built as modules: {' / '.join(said[:3])}",
            "mend that, or give another kernel tree with --tree DIRECTORY",
            file=str(kernel_build),
        )
    return sorted(scratch.glob("*.ko"))


def stage_module_sources(sources: Sequence[Path], target: Path) -> None:
    """Copy into a directory what Kbuild makes modules from there: `sources`, C files of schemes and
    headers of theirs, and the headers of ours. Raises Refused if Kbuild would take a name apart."""
    for source in sources:
        _require_plain(source.name, str(source))
    for directory in ("arithmetic", "glue"):
        shutil.copytree(_MODULE_SOURCES / directory, target / directory, dirs_exist_ok=True)
    shutil.copy(_MODULE_SOURCES / "module" / "Kbuild", target)
    for source in sources:
        name = f"nagi_{source.name}" if source.suffix == ".c" else source.name
        shutil.copy(source, target / name)


def module_command(kernel_build: Path, directory: Path) -> list[str]:
    """Return the command that builds modules in a directory with their sources, for the kernel with
    this build directory. Raises Refused if make or a shell of its would take a path apart."""
    for path in (kernel_build, directory):
        _require_plain(str(path), str(path))
    # Type information of the modules' own, for which it would need pahole, nobody asks for.
    options = ("ARCH=um", "CONFIG_DEBUG_INFO_BTF_MODULES=", f"-j{os.cpu_count() or 1}")
    return ["make", "-s", "-C", str(kernel_build), f"M={directory}", *options, "modules"]


def module_environment() -> dict[str, str]:
    """Return the environment in which modules are built."""
    return {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"} | {"LC_ALL": "C"}


def _require_plain(name: str, file: str) -> None:
    """Raise Refused if a name has other characters than make, the shell and Kbuild leave alone."""
    if not _PLAIN.fullmatch(name):
        raise Refused(
            f"the kernel's build cannot have {name!r} in a name",
            "use letters, digits, `.`, `_`, `+` and `-` alone; XDG_CACHE_HOME and TMPDIR say where "
            "nagi's own files are",
            file=file,
        )


def _install(
    kernel: dict[str, Any], cached: Path, modules: list[Path], target: Path
) -> dict[str, Any]:
    """Puts a kernel of the cache and modules built against it where the lab looks for them."""
    kernel = {**kernel, "modules": {file.stem: _sha256_of(file) for file in modules}}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in (cached / _LINUX, *modules):
            partial = target / f"{file.name}.partial"
            shutil.copy2(file, partial)
            partial.replace(target / file.name)
        _write(kernel, target)
    except PermissionError:
        raise Refused(
            "this user may not write there",
            "run it as the user who has installed nagi",
            file=str(target),
        ) from None
    return kernel


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / "guest-kernel"


def _cached(compiler: str) -> Path | None:
    """The newest kernel of a linux-source package with this configuration."""
    found = []
    wanted = (configuration(), compiler)
    for file in _cache().glob(f"*/{FILE}"):
        kernel = _read(file.parent)
        if (
            kernel is not None
            and (kernel["configuration"], kernel["compiler"]) == wanted
            and kernel["source"].startswith("linux-source-")
        ):
            found.append((_numbers(kernel["release"]), file.parent))
    return max(found)[1] if found else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _compiler() -> str:
    try:
        said = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    except OSError:
        raise Refused("there is no gcc", "install it: `apt-get install gcc`") from None
    return said.stdout.splitlines()[0]


def archive_of(origin: str) -> str | None:
    """Where apt has the packages of a distribution from."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in said.stdout.splitlines():
        found, label, address = line.split("|", 2)
        if found == label == origin:
            return address
    return None


def _debian_archive() -> str:
    address = archive_of("Debian")
    if address is None:
        raise Refused(
            "apt knows no Debian archive, which the kernel's source comes from",
            "on Debian run `apt-get update`; elsewhere name an archive with --mirror URL, or a "
            "kernel tree with --tree DIRECTORY",
        )
    return address


def _download(mirror: str, scratch: Path) -> tuple[str, Path]:
    """Fetches a linux-source package by apt, whose own sources and lists stay as they are. Returns
    its name with version, and the file."""
    if not KEYRING.exists():
        raise Refused(
            f"there is no {KEYRING}", "install it: `apt-get install debian-archive-keyring`"
        )
    (scratch / "lists" / "partial").mkdir(parents=True)
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    options = [
        *("-q", "-o", f"Dir::State::lists={scratch}/lists", "-o", f"Dir::Cache={scratch}"),
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"),
        *("-o", "APT::Update::Error-Mode=any"),
    ]

    def apt(*command: str) -> str:
        done = subprocess.run(
            [command[0], *options, *command[1:]],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            why = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise Refused(
                f"{' '.join(command)} of {mirror} {SUITE} failed: {' '.join(why)}",
                "mend the connection, or give a kernel tree with --tree DIRECTORY",
            )
        return done.stdout

    _say(f"asking {mirror} for {SUITE}")
    apt("apt-get", "update")
    names = [line.split()[0] for line in apt("apt-cache", "search", "^linux-source-").splitlines()]
    versions = {name: _numbers(name) for name in names if _numbers(name) >= OLDEST}
    if not versions:
        raise Refused(
            f"{SUITE} has no linux-source of {'.'.join(map(str, OLDEST))} or newer",
            "give a kernel tree with --tree DIRECTORY",
        )
    newest = max(versions, key=lambda name: versions[name])
    name = PACKAGE if PACKAGE in versions else newest
    if name != PACKAGE:
        _say(f"{SUITE} has no {PACKAGE} any more; taking {name}, which nobody has tried here")
    _say(f"downloading {name} (about 165 MB)")
    apt("apt-get", "download", name)
    (file,) = scratch.glob("*.deb")
    return f"{name} {file.name.split('_')[1]}", file


def _made(compiler: str, source: str, origin: Path) -> Path:
    """The kernel in the cache, built there if it is not yet. `origin`: a package or a tree."""
    key = hashlib.sha256("\n".join((configuration(), compiler, source)).encode()).hexdigest()[:16]
    cached = _cache() / key
    if _read(cached) is not None:
        return cached
    with _partial(cached) as partial:
        tree = origin
        if origin.is_file():
            tree = partial / _SOURCE
            _unpack(origin, tree)
        if _numbers(_version(tree))[:2] < OLDEST:
            raise Refused(
                f"it is Linux {_version(tree)}",
                f"give one of {'.'.join(map(str, OLDEST))} or newer",
                file=str(origin),
            )
        output = partial / _BUILD
        release = _compile(tree, output)
        shutil.copy2(output / _LINUX, partial / _LINUX)
        if origin.is_file():
            _prune(tree)
        _prune_objects(output)
        _relocate(output, partial, cached)
        kernel = {
            "schema_version": 1,
            "release": release,
            "source": source,
            "configuration": configuration(),
            "compiler": compiler,
            "linux": _sha256_of(partial / _LINUX),
            "congestion_controls": _congestion_controls(output / ".config"),
        }
        _write(kernel, partial)
    return cached


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A directory that becomes `target` at the end, or goes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob("*.partial-*"):
        if not Path(f"/proc/{left.name.rpartition('-')[2]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    needed, free = 1 << 30, shutil.disk_usage(target.parent).free
    if free < needed:
        raise Refused(
            f"building the kernel takes 1 GB, and {free / 1e9:.1f} GB are free",
            "make room, or set XDG_CACHE_HOME to a directory elsewhere",
            file=str(target.parent),
        )
    partial.mkdir()
    try:
        yield partial
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unpack(package: Path, target: Path) -> None:
    _say("unpacking it")
    target.mkdir()
    name = package.name.split("_")[0]
    command = (
        f'dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/src/{name}.tar.xz'
        ' | xz -dc -T0 | tar -x -b 512 -C "$2" --strip-components=1 "${@:3}"'
    )
    unused = [f"--exclude={pattern}" for pattern in _UNUSED]
    arguments = ["bash", str(package), str(target), *unused]
    subprocess.run(["bash", "-o", "pipefail", "-c", command, *arguments], check=True)


def _version(tree: Path) -> str:
    text = (tree / "Makefile").read_text(encoding="utf-8")
    parts = (re.search(rf"^{part} = (\d+)", text, re.M) for part in ("VERSION", "PATCHLEVEL"))
    return ".".join(part[1] for part in parts if part is not None)


def _compile(tree: Path, output: Path) -> str:
    """Returns the kernel's release."""
    processors = os.cpu_count() or 1
    compiler = shlex.join(["bash", str(_COMPILE), str(output), "gcc"])
    make = ["make", "-C", str(tree), "ARCH=um", f"O={output}", f"CC={compiler}"]
    make += [f"-j{processors * _JOBS_A_PROCESSOR}"]
    environment = {
        **os.environ,
        "KCONFIG_ALLCONFIG": str(_CONFIGURATION),
        # The same kernel, whoever builds it and when.
        "KBUILD_BUILD_TIMESTAMP": "@0",
        "KBUILD_BUILD_USER": "nagi",
        "KBUILD_BUILD_HOST": "nagi",
        "KBUILD_BUILD_VERSION": "1",
    }
    environment.pop("MAKEFLAGS", None)
    output.mkdir()
    shutil.copy2(_COMMON, output)
    log = output / "build.log"

    def run(*goals: str) -> str:
        with log.open("a+", encoding="utf-8") as file:
            before = file.tell()
            process = subprocess.Popen(
                [*make, *goals],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            _follow(process, log)
            file.seek(before)
            said = file.read()
        if process.returncode != 0:
            lines = [line for line in said.splitlines() if not line.startswith("make")]
            wrong = [line for line in lines if "error" in line] or lines[-3:]
            raise Refused(
                f"the kernel cannot be built: {' / '.join(wrong[:3])}",
                "mend that, or give another kernel tree with --tree DIRECTORY",
                file=str(tree),
            )
        return said

    run("allnoconfig")
    _check_configuration(tree, output / ".config")
    _say(f"building it (about {minutes()} with {processors} processor{'s' * (processors > 1)})")
    run("linux", "modules")
    return run("-s", "--no-print-directory", "kernelrelease").strip().splitlines()[-1]


def _follow(process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits for a build, saying now and then how far it is."""
    said = time.monotonic()
    while True:
        try:
            process.wait(1)
            return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() - said > 30:
            said = time.monotonic()
            done = log.read_text(encoding="utf-8").count("\n  CC ")
            if done:
                _say(f"compiled {done} files of about {_OBJECTS}")


def _check_configuration(tree: Path, made: Path) -> None:
    have = set(made.read_text(encoding="utf-8").splitlines())
    wanted = [
        line
        for line in _CONFIGURATION.read_text(encoding="utf-8").splitlines()
        if line.startswith("CONFIG_")
    ]
    missing = [line for line in wanted if line not in have]
    if missing:
        raise Refused(
            f"this kernel cannot have {', '.join(missing)}", "take another tree", file=str(tree)
        )


def _congestion_controls(configuration: Path) -> list[str]:
    found = re.findall(r"^CONFIG_TCP_CONG_(\w+)=y", configuration.read_text(encoding="utf-8"), re.M)
    return sorted({"reno", *(name.lower() for name in found if name != "ADVANCED")})


def _prune(tree: Path) -> None:
    """Leaves of the sources what modules need."""
    keep = [tree / name for name in _FOR_MODULES]
    keep += [
        each
        for name in _ARCHITECTURES
        for top in [tree / "arch" / name]
        for each in (top / "include", top / "um", *top.glob("Makefile*"), *top.glob("Kconfig*"))
    ]

    def prune(directory: Path) -> None:
        for entry in directory.iterdir():
            if entry in keep or any(kept in entry.parents for kept in keep):
                continue
            if any(entry in kept.parents for kept in keep):
                prune(entry)
            elif entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    prune(tree)


def _prune_objects(output: Path) -> None:
    for pattern in ("*.o", "*.o.h", "*.a", ".*.cmd", f"{_COMMON.name}*"):
        for file in output.rglob(pattern):
            if "scripts" not in file.parts and file.name != "module.lds":
                file.unlink()
    for name in (_LINUX, "vmlinux", "build.log"):
        (output / name).unlink(missing_ok=True)


def _relocate(output: Path, partial: Path, cached: Path) -> None:
    """The build directory names itself and the sources by paths that are others from now on."""
    makefile = output / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace(str(partial), str(cached)), encoding="utf-8")
    link = output / _SOURCE
    to = str(link.readlink())
    link.unlink()
    link.symlink_to(to.replace(str(partial), str(cached)))


def _say(what: str) -> None:
    print(f"== guest kernel: {what}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="The guest kernel of nagi's virtual lab.")
    parser.add_argument("--to", type=Path, required=True, help="where to install it")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--tree", type=Path, help="a Linux tree instead of Debian's package")
    origin.add_argument("--mirror", help="a Debian archive instead of the one apt has")
    given = parser.parse_args()
    try:
        print(set_up(given.to, given.tree, given.mirror))
    except Refused as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
