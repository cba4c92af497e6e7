# SPDX-License-Identifier: Apache-2.0
"""Where the parts of nagi are: in its checkout, installed in place (`make`), or in a wheel.

A wheel has the files that nagi reads below nagi/data, in the places where the checkout has them
(pyproject.toml). Native programs are below one prefix with the command nagi, or below the one that
NAGI_PREFIX of the environment names.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

_PACKAGED = Path(__file__).resolve().parents[1] / "nagi" / "data"
_CHECKOUT = Path(__file__).resolve().parents[2]
IN_CHECKOUT = not _PACKAGED.is_dir()

ROOT = _CHECKOUT if IN_CHECKOUT else _PACKAGED
# The Ansible collection nagi.testbed, where Ansible looks for collections beside Python's packages.
COLLECTION = (
    ROOT / "ansible" if IN_CHECKOUT else _PACKAGED.parents[1]
) / "ansible_collections/nagi/testbed"
AGENT = ROOT / "hosts" / "agent"
GUEST = ROOT / "hosts" / "guest"
TCP = ROOT / "hosts" / "tcp"
P4 = ROOT / "p4"
P4_CONTROL = P4 / "control"
FPGA = ROOT / "link-emulator" / "fpga"
AIR_TIME = ROOT / "link-emulator" / "radio" / "gr-nagi" / "python" / "nagi" / "air_time.py"
BOUNDS = ROOT / "link-emulator" / "model" / "bounds.json"
PHYS = ROOT / "link-emulator" / "model" / "medium" / "phys.json"
SCHEMES = ROOT / "hosts" / "schemes.yaml"
PROFILES = ROOT / "hosts" / "profiles.yaml"
EXPERIMENTS = ROOT / "experiments"
SCHEMAS = EXPERIMENTS / "schemas"


def prefix() -> Path:
    """Below which bin/ and lib/nagi/ are: NAGI_PREFIX, where pip installed a wheel's programs, or
    where `make` did."""
    chosen = os.environ.get("NAGI_PREFIX")
    return Path(chosen) if chosen else _installed()


@cache
def _installed() -> Path:
    for file in distribution("nagi").files or []:
        if file.name == "nagi-link":
            return Path(str(file.locate())).resolve().parents[1]
    return Path(sys.prefix)


def executable(name: str) -> Path:
    """A native program of nagi's."""
    return prefix() / "bin" / name


def scheme_object(program: str) -> Path:
    """The eBPF object of a scheme of ours (`program` in hosts/schemes.yaml)."""
    return prefix() / "lib" / "nagi" / "tcp" / f"{program}.bpf.o"


def fpga_images() -> Path:
    """The bitstreams of this machine: a directory a board, as `make fpga` leaves them."""
    return prefix() / "lib" / "nagi" / "fpga"


def module_at(source: Path) -> ModuleType:
    """A Python file of nagi's that is in none of its packages, loaded."""
    spec = importlib.util.spec_from_file_location(f"nagi_{source.stem}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def experiment(named: Path) -> Path:
    """The experiment file that is meant: `named`, or if there is no such file and it is only a
    name, with or without .yaml, the one that comes with nagi."""
    if named.exists() or named.parent != Path():
        return named
    own = EXPERIMENTS / named.with_suffix(".yaml")
    return own if own.is_file() else named
