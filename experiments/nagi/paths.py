# SPDX-License-Identifier: Apache-2.0
"""Where the parts of nagi are. nagi is used from its checkout, installed in place."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANSIBLE = ROOT / "ansible"
AGENT = ROOT / "hosts" / "agent"
GUEST = ROOT / "hosts" / "guest"
P4 = ROOT / "p4"
P4_CONTROL = P4 / "control"
GR_NAGI = ROOT / "link-emulator" / "gr-nagi"
SCHEMES = ROOT / "hosts" / "schemes.yaml"
PROFILES = ROOT / "hosts" / "profiles.yaml"
SCHEMAS = ROOT / "experiments" / "schemas"


def native_program(name: str) -> Path:
    """A program of nagi's that `make` has built, beside the Python that runs this one."""
    return Path(sys.prefix) / "bin" / name


def scheme_object(program: str) -> Path:
    """The eBPF object of a scheme of ours (`program` in hosts/schemes.yaml), beside nagi-tcp."""
    return Path(sys.prefix) / "lib" / "nagi" / "tcp" / f"{program}.bpf.o"
