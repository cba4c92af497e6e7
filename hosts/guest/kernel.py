# SPDX-License-Identifier: Apache-2.0
"""Build the guest kernel of the virtual lab: User-mode Linux with the TCP schemes as modules.

The kernel is built from a linux-source package of Debian (kernel_source.py), the modules from
hosts/tcp (kernel_modules.py). `make` runs this file as a program (`python3 kernel.py --to
DIRECTORY`) when nagi is not installed yet, so it imports only the standard library.
`nagi setup virtual-lab` loads it as a module.

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

# The names of this module that nagi and its tests use.
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
_OBJECT_FILES = 700  # approximate number of compiled files, for reports of progress
_BUILD_S = 320  # approximate processor time of the build
# With more jobs than processors, the build gets most of the processor time, even if other programs
# run as well.
_JOBS_PER_PROCESSOR = 3
# Programs that build kernel and modules or run guests: program -> Debian's package.
_PROGRAMS = {
    **{"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc"},
    **{"xz": "xz-utils", "bwrap": "bubblewrap"},
}


def digest_configuration() -> str:
    """Return a digest of the files that configure and compile a kernel, 16 hexadecimal digits."""
    return _digest(_CONFIGURATION, _COMPILE, _COMMON)


def digest_module_sources() -> str:
    """Return a digest of the files from which the modules are built, 16 hexadecimal digits."""
    return _digest(*list_module_sources())


def describe_build_time() -> str:
    """Return the approximate time that a build takes on this machine, such as "3 minutes"."""
    number = max(1, round(_BUILD_S / (os.cpu_count() or 1) / 60))
    return f"{number} minute{'s' * (number > 1)}"


def _digest(*files: Path) -> str:
    lines = "".join(f"{file.name} {_hash_file(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _hash_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read_description(directory: Path) -> dict[str, Any] | None:
    """Return the description of the kernel in a directory, or None if there is no kernel."""
    try:
        kernel: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kernel


def _write_description(kernel: dict[str, Any], directory: Path) -> None:
    partial = directory / f"{FILE}.partial"
    partial.write_text(json.dumps(kernel, indent=1) + "\n", encoding="utf-8")
    partial.replace(directory / FILE)


def set_up(target: Path, tree: Path | None, mirror: str | None) -> str:
    """Build kernel and modules and install them in `target`, unless they are installed already.

    A kernel in the cache is used again if configuration, compiler and source are equal. Of a tree,
    only path and version are compared, not its files. Progress is printed to stderr.

    Args:
        target: directory in which the virtual lab looks for kernel and modules.
        tree: a Linux tree to build; None builds Debian's package.
        mirror: URL of a Debian archive; None uses the archive that apt uses.

    Returns:
        A line that describes the installed kernel.

    Raises:
        Refused: A program or the source is missing, or the kernel does not compile.
    """
    _require_programs()
    for path in (_find_cache_directory(), tree or _find_cache_directory()):
        require_plain(str(path.absolute()), str(path))
    cached = _find_or_build(tree, mirror)
    built_kernel, installed_kernel = _read_description(cached), _read_description(target)
    assert built_kernel is not None
    expected_kernel = {
        **built_kernel,
        "module_sources": digest_module_sources(),
        "build": str(cached / _BUILD),
    }
    if installed_kernel is None or not expected_kernel.items() <= installed_kernel.items():
        with tempfile.TemporaryDirectory(prefix="nagi-modules-") as scratch:
            modules = build_modules(cached / _BUILD, Path(scratch))
            installed_kernel = _install(expected_kernel, cached, modules, target)
    return (
        f"guest kernel: Linux {installed_kernel['release']} of {installed_kernel['source']}, "
        f"with {', '.join(installed_kernel['modules'])}"
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
        raise Refused(
            "this directory has no kernel sources",
            "give the top directory of a Linux tree",
            file=str(tree),
        )
    tree = tree.resolve()
    return _build(compiler, f"{tree} {read_version(tree)}", tree)


def _require_programs() -> None:
    packages = [package for name, package in _PROGRAMS.items() if shutil.which(name) is None]
    if packages:
        raise Refused(
            f"the virtual lab needs packages that are not installed: {', '.join(packages)}",
            f"install them: `apt-get install {' '.join(packages)}`",
        )


def _install(
    kernel: dict[str, Any], cached: Path, modules: list[Path], target: Path
) -> dict[str, Any]:
    """Copy a kernel of the cache and its modules to `target`, and return the new description.

    Args:
        kernel: description of the kernel, without its modules.
        cached: directory of the kernel in the cache.
        modules: files of the modules.
        target: directory in which the virtual lab looks for kernel and modules.
    """
    kernel = {**kernel, "modules": {file.stem: _hash_file(file) for file in modules}}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in (cached / _LINUX, *modules):
            partial = target / f"{file.name}.partial"
            shutil.copy2(file, partial)
            partial.replace(target / file.name)
        _write_description(kernel, target)
    except PermissionError:
        raise Refused(
            "this user must not write to this directory",
            "run this command as the user who installed nagi",
            file=str(target),
        ) from None
    return kernel


def _find_cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / "guest-kernel"


def _find_cached(compiler: str) -> Path | None:
    """Return the directory of the newest suitable kernel in the cache, or None.

    A kernel is suitable if it was built from a linux-source package with the current configuration
    and this compiler.
    """
    kernels = []
    expected = (digest_configuration(), compiler)
    for file in _find_cache_directory().glob(f"*/{FILE}"):
        kernel = _read_description(file.parent)
        if (
            kernel is not None
            and (kernel["configuration"], kernel["compiler"]) == expected
            and kernel["source"].startswith("linux-source-")
        ):
            kernels.append((parse_numbers(kernel["release"]), file.parent))
    return max(kernels)[1] if kernels else None


def _read_compiler_version() -> str:
    try:
        result = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    except OSError:
        raise Refused("gcc is not installed", "run `apt-get install gcc`") from None
    return result.stdout.splitlines()[0]


def _build(compiler: str, source: str, origin: Path) -> Path:
    """Build the kernel in the cache unless the cache has it, and return its directory.

    Args:
        compiler: version of the compiler.
        source: name and version of the source.
        origin: file of a linux-source package, or a Linux tree.

    Raises:
        Refused: The source is too old, or does not compile.
    """
    identity = "\n".join((digest_configuration(), compiler, source))
    cached = _find_cache_directory() / hashlib.sha256(identity.encode()).hexdigest()[:16]
    if _read_description(cached) is not None:
        return cached
    with _create_atomically(cached) as partial:
        tree = origin
        if origin.is_file():
            tree = partial / _SOURCE
            unpack_source(origin, tree)
        if parse_numbers(read_version(tree))[:2] < OLDEST:
            raise Refused(
                f"this is Linux {read_version(tree)}, which is too old",
                f"give a tree of Linux {'.'.join(map(str, OLDEST))} or newer",
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
        _write_description(kernel, partial)
    return cached


@contextmanager
def _create_atomically(target: Path) -> Iterator[Path]:
    """Yield a new directory, which is renamed to `target` at the end, or removed after an error.

    An existing `target` is replaced. Directories that killed builds have left are removed first.

    Raises:
        Refused: The disk has less than 1 GB of free space.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob("*.partial-*"):
        if not Path(f"/proc/{leftover.name.rpartition('-')[2]}").exists():
            shutil.rmtree(leftover, ignore_errors=True)
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    needed_bytes, free_bytes = 1 << 30, shutil.disk_usage(target.parent).free
    if free_bytes < needed_bytes:
        raise Refused(
            f"building the kernel takes 1 GB, but only {free_bytes / 1e9:.1f} GB are free",
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
    """Configure and compile a kernel, and return its release, such as "7.2.1-nagi".

    Args:
        tree: the Linux tree.
        output: build directory to create.

    Raises:
        Refused: The tree lacks a setting of kernel.config, or does not compile.
    """
    processors = os.cpu_count() or 1
    compiler = shlex.join(["bash", str(_COMPILE), str(output), "gcc"])
    make = ["make", "-C", str(tree), "ARCH=um", f"O={output}", f"CC={compiler}"]
    make += [f"-j{processors * _JOBS_PER_PROCESSOR}"]
    environment = {
        **os.environ,
        "KCONFIG_ALLCONFIG": str(_CONFIGURATION),
        # Constants, so that equal sources give equal kernels.
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
        """Run make, and return its output. Raise Refused if it fails."""
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
            output_text = file.read()
        if process.returncode != 0:
            lines = [line for line in output_text.splitlines() if not line.startswith("make")]
            errors = [line for line in lines if "error" in line] or lines[-3:]
            raise Refused(
                f"the kernel cannot be built: {' / '.join(errors[:3])}",
                "correct these errors, or give another kernel tree with --tree DIRECTORY",
                file=str(tree),
            )
        return output_text

    run_make("allnoconfig")
    _check_configuration(tree, output / ".config")
    plural = "s" * (processors > 1)
    report_progress(
        f"building the kernel (about {describe_build_time()} with {processors} processor{plural})"
    )
    run_make("linux", "modules")
    return run_make("-s", "--no-print-directory", "kernelrelease").strip().splitlines()[-1]


def _follow(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a build ends, and report the progress every 30 seconds."""
    last_report_s = time.monotonic()
    while True:
        try:
            process.wait(1)
            return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() - last_report_s > 30:
            last_report_s = time.monotonic()
            file_count = log.read_text(encoding="utf-8").count("\n  CC ")
            if file_count:
                report_progress(f"compiled {file_count} files of about {_OBJECT_FILES}")


def _check_configuration(tree: Path, config: Path) -> None:
    """Raise Refused if a setting of kernel.config is missing in the kernel's file .config."""
    actual_lines = set(config.read_text(encoding="utf-8").splitlines())
    expected_lines = [
        line
        for line in _CONFIGURATION.read_text(encoding="utf-8").splitlines()
        if line.startswith("CONFIG_")
    ]
    missing_lines = [line for line in expected_lines if line not in actual_lines]
    if missing_lines:
        raise Refused(
            f"this kernel does not support {', '.join(missing_lines)}",
            "use another tree",
            file=str(tree),
        )


def _list_congestion_controls(config: Path) -> list[str]:
    """Return the congestion controls that are built into a kernel with this .config."""
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
    """Replace the path `partial` by `cached` in a build directory.

    The path is in the Makefile and in the target of the symbolic link `source`.
    """
    makefile = output / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace(str(partial), str(cached)), encoding="utf-8")
    link = output / _SOURCE
    source = str(link.readlink())
    link.unlink()
    link.symlink_to(source.replace(str(partial), str(cached)))


def main() -> int:
    """Build and install the guest kernel, and print a line about it.

    Return the exit status: 0, 2 if the build was refused or failed, or 130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(description="Build the guest kernel of nagi's virtual lab.")
    parser.add_argument("--to", type=Path, required=True, help="directory to install it in")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--tree", type=Path, help="Linux tree to build instead of Debian's package")
    origin.add_argument("--mirror", help="URL of a Debian archive instead of the one of apt")
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
