# SPDX-License-Identifier: Apache-2.0
"""The virtual lab and the netns lab do the same. The latter runs in real time."""

from __future__ import annotations

import pandas as pd
import pytest
from kernels import needs_our_schemes
from marks import in_virtual_time, needs_root
from test_virtual_lab import (  # noqa: F401 - a fixture
    no_guest_left,
    run,
    runs_of,
    written,
)

pytestmark = [*in_virtual_time, pytest.mark.slow]


@needs_root
@needs_our_schemes
def test_modules_in_a_guest_and_ebpf_on_this_kernel_do_the_same_for_the_same_drops(tmp_path):
    """Compare the segment and the windows before and after each reaction to a loss.

    A list determines the lost packets, so that the losses do not depend on timing.
    """
    lost = {300, 700, 701, 1100, 1500, 1502, 1504}
    (tmp_path / "x.loss").write_text(
        " ".join(str(int(index in lost)) for index in range(100_000)) + "\n"
    )
    schemes = "tahoe, reno, westwoodnr, reno-ackthin, real"
    spec = written(tmp_path, schemes, "{model: trace, file: x.loss}", "ns2")
    # The level must not change: changes of the measured rate depend on timing.
    level = "parameters: {real: {initial_level: 24, initial_threshold: 1}}\n"
    text = spec.read_text().replace("queue: 20 packets", "queue: 1000 packets")
    spec.write_text(text + level)
    traces: dict[str, dict[str, list[tuple[object, ...]]]] = {}
    for lab in ("virtual", "netns"):
        insist = ["--tries", "8", "--keep-going"] if lab == "netns" else []
        run(spec, tmp_path / lab, *insist, lab=lab)
        traces[lab] = {}
        for scheme, directory in runs_of(tmp_path / lab).items():
            told = pd.read_parquet(directory / "scheme_events.parquet")
            began = int(told["una"].iloc[0])
            reactions = told[told["event"].isin(["three_duplicates", "partial_ack", "timeout"])]
            columns = ["event", "verdict", "cwnd_before", "cwnd", "ssthresh"]
            if scheme in ("westwoodnr", "real"):  # their windows follow from times
                columns = ["event", "verdict"]
            traces[lab][scheme] = [
                ((int(una) - began) % 2**32, *rest)
                for una, *rest in reactions[["una", *columns]].itertuples(index=False)
            ]
    for scheme, trace in traces["virtual"].items():
        assert len(trace) >= 5, scheme
        assert trace == traces["netns"][scheme], scheme
