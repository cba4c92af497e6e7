# SPDX-License-Identifier: Apache-2.0
"""Run experiments over a link that a simulated FPGA core emulates.

If the core has to fail, a script replaces nagi-fpga.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from doubles import write_shell_double
from fpga_specs import FPGA
from nagi_contracts.links import Links
from nagi_contracts.paths import executable
from nagi_contracts.records import Verdict
from prefixes import make_prefix

needs_nagi_fpga = pytest.mark.skipif(
    not executable("nagi-fpga").is_file(), reason="needs nagi-fpga: `make fpga-simulation`"
)


def run(
    directory: Path, text: str = FPGA, *, lab: str, script: str = "", tries: int = 1, name="out"
) -> tuple[str, Path]:
    """Run an experiment; return nagi's output and the run's directory.

    Args:
        directory: Where the experiment and its results are written.
        text: The experiment.
        lab: The name of the lab.
        script: A shell script that replaces nagi-fpga; PROGRAM in it is the path of nagi-fpga.
        tries: The maximum number of attempts. Other load on the machine can make a run invalid.
        name: The name of the results' directory.
    """
    spec, out = directory / f"{name}.yaml", directory / name
    spec.write_text(text)
    environment = dict(os.environ)
    if script:
        program = executable("nagi-fpga").resolve()
        prefix = make_prefix(directory / "prefix", without=["nagi-fpga"])
        environment["NAGI_PREFIX"] = str(prefix)
        write_shell_double(prefix / "bin" / "nagi-fpga", script, program)
    done = subprocess.run(
        [executable("nagi"), "run", str(spec),
         "--lab", lab, "--out", str(out), "--tries", str(tries)],
        capture_output=True, text=True, timeout=800, check=False, env=environment,
    )  # fmt: skip
    (found,) = (path for path in (out / "runs").iterdir() if ".invalid-" not in path.name)
    return done.stdout + done.stderr, found


def check(said: str, directory: Path, status: str = "valid") -> None:
    """Check that the run's verdict is `status`, and that the core kept its times.

    Packets arrive at ticks of the core, and leave the core at the next tick.
    """
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == status, said
    values = {check.name: check.value for check in verdict.checks}
    assert values["replay_differences"] == values["unaccounted"] == 0
    assert values["core_late_releases"] == values["core_memory_overflows"] == 0
    link = Links.read(directory / "links.json").links[1]
    assert link.name == "wireless"
    for account in (link.forward, link.backward):
        assert account.core is not None
        assert account.core.max_late_ns < account.core.tick_ns == 8
    assert link.forward.packets.channel_losses > 0
    table = pd.read_parquet(directory / "packets.parquet")
    mine = table[table["link"] == "wireless"]
    assert len(mine) == link.forward.packets.offered + link.backward.packets.offered
    assert (mine["arrived_ns"] % 8 == 0).all()
    assert (mine["left_ns"] % 8 != 0).any()  # the model's instants, not ticks
