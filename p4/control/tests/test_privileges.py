# SPDX-License-Identifier: Apache-2.0
"""What nagi-p4runtime keeps of its rights."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("kept", "left"), [("", 0), ("CAP_NET_RAW", 1 << 13)])
def test_capabilities_are_given_up_for_good(kept, left):
    """Root's, too, and those of all that it starts."""
    code = (
        "import subprocess\n"
        "from nagi_p4runtime.privileges import CAP_NET_RAW, give_up_capabilities\n"
        f"give_up_capabilities([{kept}])\n"
        "print(open('/proc/self/status').read(), flush=True)\n"
        "subprocess.run(['cat', '/proc/self/status'], check=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [line.split(":\t") for line in done.stdout.splitlines() if ":\t" in line]
    capabilities = {
        int(value, 16) for name, value in found if name in ("CapPrm", "CapEff", "CapInh", "CapAmb")
    }
    assert capabilities <= {0, left if os.geteuid() == 0 else 0}
    assert [value for name, value in found if name == "NoNewPrivs"] == ["1", "1"]
