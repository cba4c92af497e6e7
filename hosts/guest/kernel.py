# SPDX-License-Identifier: Apache-2.0
"""Build the guest kernel of the virtual lab: User-mode Linux with the TCP schemes as modules.

The kernel is built from one of Debian's linux-source packages (kernel_source.py), the modules from
hosts/tcp (kernel_modules.py). This program needs only Python, so `make` can run it before anything
is installed: `python3 kernel.py --to DIRECTORY`. `nagi setup virtual-lab` loads it as a module.

Kernels are kept outside the checkout in $XDG_CACHE_HOME/nagi/guest-kernel, one directory for each
combination of configuration, source and compiler.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path.append(str(_HERE))  # nagi loads this file by its path

from kernel_messages import Refused, report_progress  # noqa: E402
from kernel_modules import (  # noqa: E402
    build_module_command,
    build_modules,
    list_module_sources,
    make_module_environment,
    require_plain,
    stage_module_sources,
)
from kernel_source import (  # noqa: E402
    OLDEST,
    download_source,
    parse_numbers,
    prune_source,
    read_version,
    require_debian_archive,
    unpack_source,
)

# The names that nagi and its tests use from this module.
__all__ = [
    "FILE",
    "Refused",
    "build_module_command",
    "describe_build_time",
    "digest_configuration",
    "digest_module_sources",
    "make_module_environment",
    "set_up",
    "stage_module_sources",
]

FILE = "kernel.json"  # describes a kernel; GuestKernel of nagi.labs.guest_kernel defines its keys
_CONFIGURATION, _COMPILE, _COMMON = (
    _HERE / name for name in ("kernel.config", "compile.sh", "common.h")
)
_LINUX = "linux"
_BUILD, _SOURCE = "build", "source"
_OBJECT_FILES = 700  # approximate number of compiled files, for the progress
_BUILD_S = 320  # approximate processor time of the build
# With more jobs than processors, the build gets the larger share of a processor that other programs
# use as well.
_JOBS_PER_PROCESSOR = 3
# Programs that build kernel and modules or run guests: program -> Debian's package.
_PROGRAMS = {
    **{"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc"},
    **{"xz": "xz-utils", "bwrap": "bubblewrap"},
}


def digest_configuration() -> str:
    """Return a digest of the files that determine how a kernel is configured and compiled."""
    return _digest(_CONFIGURATION, _COMPILE, _COMMON)


def digest_module_sources() -> str:
    """Return a digest of the files from which the modules are built."""
    return _digest(*list_module_sources())


def describe_build_time() -> str:
    """Return the approximate time that building a kernel takes, such as "3 minutes"."""
    number = max(1, round(_BUILD_S / (os.cpu_count() or 1) / 60))
    return f"{number} minute{'s' * (number > 1)}"


def _digest(*files: Path) -> str:
    lines = "".join(f"{file.name} {_hash_file(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _hash_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read(directory: Path) -> dict[str, Any] | None:
    """Return the description of the kernel in a directory, or None if there is no kernel."""
    try:
        kernel: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kernel


def _write(kernel: dict[str, Any], directory: Path) -> None:
    partial = directory / f"{FILE}.partial"
    partial.write_text(json.dumps(kernel, indent=1) + "\n", encoding="utf-8")
    partial.replace(directory / FILE)


def set_up(target: Path, tree: Path | None, mirror: str | None) -> str:
    """Build kernel and modules and install them in `target`, unless they are installed already.

    Args:
        target: directory in which the virtual lab looks for them.
        tree: a Linux tree to build, instead of Debian's package.
        mirror: URL of a Debian archive, instead of the one that apt uses.

    Returns:
        A line about the installed kernel.

    Raises:
        Refused: a program or the source is missing, or the kernel does not compile.
    """
    _require_programs()
    for path in (_find_cache_directory(), tree or _find_cache_directory()):
        require_plain(str(path.absolute()), str(path))
    cached = _find_or_build(tree, mirror)
    built, installed = _read(cached), _read(target)
    assert built is not None
    expected = {**built, "module_sources": digest_module_sources(), "build": str(cached / _BUILD)}
    if installed is None or not expected.items() <= installed.items():
        with tempfile.TemporaryDirectory(prefix="nagi-modules-") as scratch:
            modules = build_modules(cached / _BUILD, Path(scratch))
            installed = _install(expected, cached, modules, target)
    return (
        f"guest kernel: Linux {installed['release']} of {installed['source']}, "
        f"with {', '.join(installed['modules'])}"
    )


def _find_or_build(tree: Path | None, mirror: str | None) -> Path:
    """Build the kernel unless the cache has it, and return its directory in the cache."""
    compiler = _read_compiler_version()
    if tree is None:
        cached = _find_cached(compiler)
        if cached is not None:
            return cached
        with tempfile.TemporaryDirectory(prefix="nagi-linux-source-") as scratch:
            source, package = download_source(mirror or require_debian_archive(), Path(scratch))
            return _build(compiler, source, package)
    if not (tree / "Makefile").exists():
        raise Refused("it has no kernel sources", "give the top of a Linux tree", file=str(tree))
    tree = tree.resolve()
    return _build(compiler, f"{tree} {read_version(tree)}", tree)


def _require_programs() -> None:
    missing = [package for name, package in _PROGRAMS.items() if shutil.which(name) is None]
    if missing:
        raise Refused(
            f"the virtual lab needs programs that are not installed: {', '.join(missing)}",
            f"install them: `apt-get install {' '.join(missing)}`",
        )


def _install(
    kernel: dict[str, Any], cached: Path, modules: list[Path], target: Path
) -> dict[str, Any]:
    """Copy a kernel of the cache and its modules to `target`, and return their description.

    Args:
        kernel: description of the kernel, without its modules.
        cached: directory of the kernel in the cache.
        modules: files of the modules.
        target: directory in which the virtual lab looks for them.
    """
    kernel = {**kernel, "modules": {file.stem: _hash_file(file) for file in modules}}
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
            "run it as the user who installed nagi",
            file=str(target),
        ) from None
    return kernel


def _find_cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / "guest-kernel"


def _find_cached(compiler: str) -> Path | None:
    """Return the directory of the newest cached kernel that fits, or None.

    A kernel fits that was built from a linux-source package with this configuration and compiler.
    """
    kernels = []
    expected = (digest_configuration(), compiler)
    for file in _find_cache_directory().glob(f"*/{FILE}"):
        kernel = _read(file.parent)
        if (
            kernel is not None
            and (kernel["configuration"], kernel["compiler"]) == expected
            and kernel["source"].startswith("linux-source-")
        ):
            kernels.append((parse_numbers(kernel["release"]), file.parent))
    return max(kernels)[1] if kernels else None


def _read_compiler_version() -> str:
    try:
        done = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    except OSError:
        raise Refused("there is no gcc", "install it: `apt-get install gcc`") from None
    return done.stdout.splitlines()[0]


def _build(compiler: str, source: str, origin: Path) -> Path:
    """Build the kernel in the cache unless it is there, and return its directory.

    Args:
        compiler: version of the compiler.
        source: name and version of the source.
        origin: file of a linux-source package, or a Linux tree.

    Raises:
        Refused: the source is too old, or does not compile.
    """
    identity = "\n".join((digest_configuration(), compiler, source))
    cached = _find_cache_directory() / hashlib.sha256(identity.encode()).hexdigest()[:16]
    if _read(cached) is not None:
        return cached
    with _create_atomically(cached) as partial:
        tree = origin
        if origin.is_file():
            tree = partial / _SOURCE
            unpack_source(origin, tree)
        if parse_numbers(read_version(tree))[:2] < OLDEST:
            raise Refused(
                f"it is Linux {read_version(tree)}",
                f"give one of {'.'.join(map(str, OLDEST))} or newer",
                file=str(origin),
            )
        output = partial / _BUILD
        release = _compile(tree, output)
        shutil.copy2(output / _LINUX, partial / _LINUX)
        if origin.is_file():
            prune_source(tree)
        _prune_objects(output)
        _relocate(output, partial, cached)
        kernel = {
            "schema_version": 1,
            "release": release,
            "source": source,
            "configuration": digest_configuration(),
            "compiler": compiler,
            "linux": _hash_file(partial / _LINUX),
            "congestion_controls": _list_congestion_controls(output / ".config"),
        }
        _write(kernel, partial)
    return cached


@contextmanager
def _create_atomically(target: Path) -> Iterator[Path]:
    """Give a new directory, which is renamed to `target` at the end, or removed after an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob("*.partial-*"):
        if not Path(f"/proc/{leftover.name.rpartition('-')[2]}").exists():
            shutil.rmtree(leftover, ignore_errors=True)
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    needed, free = 1 << 30, shutil.disk_usage(target.parent).free
    if free < needed:
        raise Refused(
            f"building the kernel takes 1 GB, and {free / 1e9:.1f} GB are free",
            "free some space, or set XDG_CACHE_HOME to a directory on another disk",
            file=str(target.parent),
        )
    partial.mkdir()
    try:
        yield partial
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _compile(tree: Path, output: Path) -> str:
    """Configure and compile a kernel, and return its release.

    Args:
        tree: the Linux tree.
        output: build directory to create.

    Raises:
        Refused: the tree lacks a setting of kernel.config, or does not compile.
    """
    processors = os.cpu_count() or 1
    compiler = shlex.join(["bash", str(_COMPILE), str(output), "gcc"])
    make = ["make", "-C", str(tree), "ARCH=um", f"O={output}", f"CC={compiler}"]
    make += [f"-j{processors * _JOBS_PER_PROCESSOR}"]
    environment = {
        **os.environ,
        "KCONFIG_ALLCONFIG": str(_CONFIGURATION),
        # Constants, so that a kernel does not depend on who builds it and when.
        "KBUILD_BUILD_TIMESTAMP": "@0",
        "KBUILD_BUILD_USER": "nagi",
        "KBUILD_BUILD_HOST": "nagi",
        "KBUILD_BUILD_VERSION": "1",
    }
    environment.pop("MAKEFLAGS", None)
    output.mkdir()
    shutil.copy2(_COMMON, output)
    log = output / "build.log"

    def run_make(*goals: str) -> str:
        with log.open("a+", encoding="utf-8") as file:
            start = file.tell()
            process = subprocess.Popen(
                [*make, *goals],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            _follow(process, log)
            file.seek(start)
            printed = file.read()
        if process.returncode != 0:
            lines = [line for line in printed.splitlines() if not line.startswith("make")]
            errors = [line for line in lines if "error" in line] or lines[-3:]
            raise Refused(
                f"the kernel cannot be built: {' / '.join(errors[:3])}",
                "correct that, or give another kernel tree with --tree DIRECTORY",
                file=str(tree),
            )
        return printed

    run_make("allnoconfig")
    _check_configuration(tree, output / ".config")
    plural = "s" * (processors > 1)
    report_progress(
        f"building it (about {describe_build_time()} with {processors} processor{plural})"
    )
    run_make("linux", "modules")
    return run_make("-s", "--no-print-directory", "kernelrelease").strip().splitlines()[-1]


def _follow(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a build, and report its progress every 30 seconds."""
    reported = time.monotonic()
    while True:
        try:
            process.wait(1)
            return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() - reported > 30:
            reported = time.monotonic()
            done = log.read_text(encoding="utf-8").count("\n  CC ")
            if done:
                report_progress(f"compiled {done} files of about {_OBJECT_FILES}")


def _check_configuration(tree: Path, config: Path) -> None:
    """Raise Refused if Kconfig has dropped a setting of kernel.config from `config`."""
    actual = set(config.read_text(encoding="utf-8").splitlines())
    expected = [
        line
        for line in _CONFIGURATION.read_text(encoding="utf-8").splitlines()
        if line.startswith("CONFIG_")
    ]
    missing = [line for line in expected if line not in actual]
    if missing:
        raise Refused(
            f"this kernel cannot have {', '.join(missing)}", "use another tree", file=str(tree)
        )


def _list_congestion_controls(config: Path) -> list[str]:
    """Return the congestion controls that a kernel with this .config has built in."""
    names = re.findall(r"^CONFIG_TCP_CONG_(\w+)=y", config.read_text(encoding="utf-8"), re.M)
    return sorted({"reno", *(name.lower() for name in names if name != "ADVANCED")})


def _prune_objects(output: Path) -> None:
    """Remove the files from a build directory that the build of modules does not need."""
    for pattern in ("*.o", "*.o.h", "*.a", ".*.cmd", f"{_COMMON.name}*"):
        for file in output.rglob(pattern):
            if "scripts" not in file.parts and file.name != "module.lds":
                file.unlink()
    for name in (_LINUX, "vmlinux", "build.log"):
        (output / name).unlink(missing_ok=True)


def _relocate(output: Path, partial: Path, cached: Path) -> None:
    """Replace the path `partial` by `cached` in the files of a build directory that contain it."""
    makefile = output / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace(str(partial), str(cached)), encoding="utf-8")
    link = output / _SOURCE
    source = str(link.readlink())
    link.unlink()
    link.symlink_to(source.replace(str(partial), str(cached)))


def main() -> int:
    """Build and install the guest kernel, and return the exit status."""
    parser = argparse.ArgumentParser(description="Build the guest kernel of nagi's virtual lab.")
    parser.add_argument("--to", type=Path, required=True, help="where to install it")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--tree", type=Path, help="a Linux tree instead of Debian's package")
    origin.add_argument("--mirror", help="a Debian archive instead of the one that apt uses")
    options = parser.parse_args()
    try:
        print(set_up(options.to, options.tree, options.mirror))
    except Refused as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
