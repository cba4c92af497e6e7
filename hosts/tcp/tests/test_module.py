# SPDX-License-Identifier: Apache-2.0
"""Build schemes as modules by `make module` against a kernel's headers, without loading them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nagi.plan.schemes import read_receivers, read_schemes
from nagi_contracts.paths import executable, scheme_object

ROOT = Path(__file__).resolve().parents[3]
SCHEMES = sorted(
    each.object for each in [*read_schemes().values(), *read_receivers().values()] if each.object
)
# meaning (unit, minimum to maximum, default value) (type)
DESCRIBED = re.compile(r"(.+?):(.+) \((.+), (\d+) to (\d+), default (\d+)\) \(uint\)")


def make_module(build: Path, kernel: Path, *others: str) -> subprocess.CompletedProcess[str]:
    # If `make test` runs this test, its settings must not reach the inner make.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    settings = [f"BUILD={build}", f"KERNEL_BUILD={kernel}", "KCFLAGS=-Wall -Werror", *others]
    return subprocess.run(
        ["make", "module", *settings],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def sources() -> dict[Path, int]:
    """Return the source files of hosts/tcp with the time of their last change, in ns."""
    room = ROOT / "hosts" / "tcp"
    return {file: file.stat().st_mtime_ns for file in room.rglob("*") if "tests" not in file.parts}


@pytest.fixture(scope="module")
def kernel() -> Path:
    """Provide the headers of the last installed kernel; without headers, skip the tests."""
    found = sorted(Path("/lib/modules").glob("*/build/Makefile"))
    if not found:
        pytest.skip("needs headers of a kernel, which `make` installs (linux-headers-*)")
    return found[-1].parent


@pytest.fixture(scope="module")
def modules(kernel, tmp_path_factory) -> Iterator[Path]:
    """Build the modules of all schemes, and provide their directory."""
    build = tmp_path_factory.mktemp("module")
    before = sources()
    done = make_module(build, kernel)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr  # modpost's
    assert sources() == before
    yield build / "module"
    shutil.rmtree(build)


def read_module_field(module: Path, field: str) -> list[str]:
    """Return the lines that modinfo prints for `field`."""
    command = ["/sbin/modinfo", "-F", field, str(module)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return output.splitlines()


def test_one_module_each_scheme(modules):
    assert sorted(file.stem for file in modules.glob("*.ko")) == [f"nagi_{s}" for s in SCHEMES]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_says_what_it_is(modules, kernel, scheme):
    module = modules / f"nagi_{scheme}.ko"
    assert read_module_field(module, "license") == ["GPL"]
    assert read_module_field(module, "description") == [f"nagi's TCP congestion control {scheme}"]
    assert read_module_field(module, "alias") == [f"tcp_nagi_{scheme}"]
    assert read_module_field(module, "depends") == [""]
    release = (kernel / "include/generated/utsrelease.h").read_text().split('"')[1]
    assert read_module_field(module, "vermagic")[0].split()[0] == release


@pytest.mark.parametrize("scheme", SCHEMES)
def test_has_the_parameters_of_the_ebpf_object(modules, scheme):
    described = subprocess.run(
        [str(executable("nagi-tcp")), "describe", str(scheme_object(scheme))],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {}
    for line in read_module_field(modules / f"nagi_{scheme}.ko", "parm"):
        each = DESCRIBED.fullmatch(line)
        assert each, line
        name, meaning, unit, minimum, maximum, default = each.groups()
        numbers = {"minimum": int(minimum), "maximum": int(maximum), "default": int(default)}
        found[name] = {"meaning": meaning, "unit": unit, **numbers}
    assert found == json.loads(described.stdout)["parameters"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tells_events_by_a_tracepoint(modules, scheme):
    listed = subprocess.run(
        ["nm", str(modules / f"nagi_{scheme}.ko")], capture_output=True, text=True, check=True
    )
    symbols = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert f"__tracepoint_nagi_{scheme}" in symbols


@pytest.mark.parametrize(
    ("system", "headers"),
    [
        ("ID=debian", None),
        ("ID=raspbian\nID_LIKE=debian", None),
        ("ID=ubuntu\nID_LIKE=debian", "generic"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"', "generic"),
    ],
)
def test_refuses_what_has_no_headers(tmp_path, system, headers):
    if headers is None:
        named = ["dpkg", "--print-architecture"]
        headers = subprocess.run(named, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "os-release").write_text(system)
    done = make_module(tmp_path / "build", tmp_path, f"OS_RELEASE={tmp_path / 'os-release'}")
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first.startswith(
        f"nagi: {tmp_path} has no kernel headers; as root, install linux-headers-{headers} (for"
    )
    assert all(line.startswith("make: ***") for line in rest)
    assert not (tmp_path / "build").exists()
