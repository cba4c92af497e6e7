# SPDX-License-Identifier: Apache-2.0
"""The paths of nagi's files, in a checkout or in an installed wheel.

In a wheel, the data files are below nagi/data, with the same relative paths as in a checkout
(pyproject.toml). Native programs are below the directory in the environment variable NAGI_PREFIX,
or by default below the directory in which the command nagi was installed.
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
# The Ansible collection nagi.testbed. In a wheel it is next to the Python packages, where Ansible
# searches for collections.
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
    """Return the directory that has nagi's native programs in bin/ and lib/nagi/.

    It is NAGI_PREFIX, or the directory into which pip or `make` installed the programs.
    """
    configured = os.environ.get("NAGI_PREFIX")
    return Path(configured) if configured else _find_installed_prefix()


@cache
def _find_installed_prefix() -> Path:
    """Return the prefix of the installed nagi-link, or Python's if nagi-link is not installed."""
    for file in distribution("nagi").files or []:
        if file.name == "nagi-link":
            return Path(str(file.locate())).resolve().parents[1]
    return Path(sys.prefix)


def executable(name: str) -> Path:
    """Return the path of one of nagi's native programs, which may not be installed."""
    return prefix() / "bin" / name


def scheme_object(program: str) -> Path:
    """Return the path of the eBPF object of a scheme (`program` in hosts/schemes.yaml)."""
    return prefix() / "lib" / "nagi" / "tcp" / f"{program}.bpf.o"


def fpga_images() -> Path:
    """Return the directory of bitstreams that `make fpga` built, with a subdirectory per board."""
    return prefix() / "lib" / "nagi" / "fpga"


def load_module(source: Path) -> ModuleType:
    """Execute a Python file STEM.py that belongs to no package; return its module, nagi_STEM."""
    spec = importlib.util.spec_from_file_location(f"nagi_{source.stem}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses need their module there
    spec.loader.exec_module(module)
    return module


def find_experiment(path: Path) -> Path:
    """Return the path of an experiment file.

    If `path` does not exist and is only a name, with or without .yaml, return the path of the
    experiment with that name in nagi's folder `experiments`. If no experiment has this name, return
    `path`.
    """
    if path.exists() or path.parent != Path():
        return path
    included = EXPERIMENTS / path.with_suffix(".yaml")
    return included if included.is_file() else path
