# SPDX-License-Identifier: Apache-2.0
"""Run experiments over a link that is a radio.

If the radio has to behave as it rarely does, a double replaces nagi-sdr.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from nagi.backends.radio.program import locate_nagi_sdr
from nagi_contracts.links import Links
from nagi_contracts.paths import ROOT, executable
from nagi_contracts.records import Verdict
from prefixes import make_prefix
from specs import two_links

needs_nagi_sdr = [
    pytest.mark.radio,
    pytest.mark.skipif(
        not executable("nagi-sdr").is_file(), reason="needs nagi-sdr: `make sdr` installs it"
    ),
]
UHD_DOUBLE = locate_nagi_sdr().parents[1] / "lib" / "nagi" / "uhd-double" / "libnagi-uhd-double.so"
needs_uhd_double = pytest.mark.skipif(
    not UHD_DOUBLE.is_file(), reason="needs UHD: `make sdr` installs it"
)
DEVICES = "type=nagi_double,channels=2,tx_cable=x|y,rx_cable=y|x"
DOUBLE = ROOT / "link-emulator" / "daemon" / "tests" / "radio_double.py"
SPEC = two_links(
    "radio",
    "rate: 10 Mb/s, delay: 10 ms",
    "emulator: sdr, delay: 15 ms, queue: 20 packets, "
    "radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: $snr}",
    "scheme: newreno, payload: 1000 bytes",
    """\
duration: 5 s
warmup: 1 s
matrix: {snr: [13 dB]}
report: {x: snr, series: snr}
""",
    radio_name="wireless",
)


def over_schemes(text: str) -> str:
    """Return the experiment with an axis of schemes instead of the axis of SNRs."""
    for old, new in (
        ("scheme: newreno", "scheme: $scheme"),
        ("matrix: {snr: [13 dB]}", "matrix: {scheme: [newreno]}"),
        ("report: {x: snr, series: snr}", "report: {x: scheme}"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


def over_the_double(more: str = "") -> str:
    """Return the experiment, 1.5 s long, with devices instead of a simulated channel."""
    radio = SPEC[SPEC.index("radio: {") : SPEC.index("}", SPEC.index("radio: {")) + 1]
    names = SPEC[SPEC.index("wireless: {") :].split("[")[1].split("]")[0].split(", ")
    ends = ", ".join(
        f'{name}: {{device: "{DEVICES}{more}", channel: {channel}, tx_gain: 66 dB, rx_gain: 40 dB}}'
        for channel, name in enumerate(names)
    )
    devices = (
        "radio: {by: uhd, modem: ofdm, modulation: qpsk, sample_rate: 2 MHz, "
        f"uhd: {{frequency: 2450 MHz, ends: {{{ends}}}}}}}"
    )
    text = over_schemes(SPEC.replace(radio, devices))
    for old, new in (("duration: 5 s", "duration: 1.5 s"), ("warmup: 1 s", "warmup: 0.5 s")):
        assert old in text
        text = text.replace(old, new)
    return text


def run(
    tmp_path, text=SPEC, *, lab="netns", double: dict[str, Any] | None = None, tries=8, name="out"
) -> tuple[str, Path]:
    """Run an experiment; return nagi's output and the run's directory.

    `double` has the rules of the double; without rules, nagi-sdr itself runs. `tries` is the
    maximum number of attempts, because other load on the machine can make a run invalid.
    """
    spec, out = tmp_path / "spec.yaml", tmp_path / name
    spec.write_text(text)
    environment = dict(os.environ)
    if double:
        prefix = make_prefix(tmp_path / "prefix", without=["nagi-sdr"])
        environment["NAGI_PREFIX"] = str(prefix)
        program = prefix / "bin" / "nagi-sdr"
        rules = json.dumps(double)
        # A guest sees the system's Python, and nothing of the checkout.
        asked = "nagi_link, config_path, rules_text = sys.argv[1:]"
        code = DOUBLE.read_text()
        assert asked in code
        told = f'[__import__("os").environ["NAGI_LINK"], sys.argv[2], {rules!r}]'
        program.write_text(
            "#!/usr/bin/python3\n" + code.replace(asked, asked.replace("sys.argv[1:]", told))
        )
        program.chmod(0o755)
    done = subprocess.run(
        [executable("nagi"), "run", str(spec),
         "--lab", lab, "--out", str(out), "--tries", str(tries)],
        capture_output=True, text=True, timeout=800, check=False, env=environment,
    )  # fmt: skip
    (directory,) = (path for path in (out / "runs").iterdir() if ".invalid-" not in path.name)
    return done.stdout + done.stderr, directory


def check(said: str, directory: Path) -> None:
    """Check that a run is valid, and that all records agree on what the radio lost."""
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", said
    values = {check.name: check.value for check in verdict.checks}
    assert values["radio_unanswered"] == values["replay_differences"] == 0
    radio = Links.read(directory / "links.json").links[1]
    counts = radio.forward.transmissions
    assert counts.sent > 100
    table = pd.read_parquet(directory / "transmissions.parquet")
    mine = table[(table["link"] == "wireless") & (table["direction"] == "forward")]
    causes = {
        "not detected": counts.not_detected,
        "header error": counts.header_errors,
        "payload error": counts.payload_errors,
    }
    for outcome, counted in causes.items():
        assert len(mine[mine["outcome"] == outcome]) == counted
    assert radio.forward.packets.channel_losses == sum(causes.values()) > 0
    assert counts.undetected_errors == 0
    told = {(each.name, each.subject): each.value for each in verdict.information}
    # The receiver's own estimate takes symbols for the nearest points, so it is a little low.
    assert told["radio_snr", "wireless forward"] == pytest.approx(13, abs=0.4)
    assert (directory.parents[1] / "figures" / "topology.svg").exists()
