# SPDX-License-Identifier: Apache-2.0
"""What pip installs: the wheel has everything that nagi reads, and works outside the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
from nagi_contracts import paths

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"wheel.cmake": "false"})
"""
# The checkout that is installed in place has a finder of its own, which would go first.
WITHOUT_CHECKOUT = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
"""
LOOK = """
import json
from pathlib import Path
from nagi_contracts import paths
found = {name: str(value) for name, value in vars(paths).items()
         if name.isupper() and not name.startswith("_") and isinstance(value, Path)}
missing = [name for name, path in found.items() if not Path(path).exists()]
print(json.dumps({"found": found, "missing": missing}))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    """Unpack the wheel without the native programs, as pip would install it."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-c", BUILD, str(directory)], cwd=ROOT, check=True)
    (wheel,) = directory.glob("*.whl")
    target = directory / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def python(unpacked: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_CHECKOUT + code],
        cwd=unpacked.parent,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=True,
    )


def in_checkout(*folders: str) -> set[str]:
    """Return the files in these directories that belong to nagi at run time."""
    names = (
        path.relative_to(ROOT)
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    )
    left_out = {"__pycache__", "tests", "bench", "loader", "CMakeLists.txt"}
    return {
        str(name)
        for name in names
        if not left_out & set(name.parts)
        and name.suffix not in (".cpp", ".hpp", ".pyc")
        and not any(part.startswith(".") for part in name.parts)
    }


def test_all_that_nagi_names_is_in_the_wheel(unpacked):
    said = json.loads(python(unpacked, LOOK).stdout)
    assert set(said["found"]) == {
        name for name, value in vars(paths).items() if name.isupper() and isinstance(value, Path)
    } - {"_PACKAGED", "_CHECKOUT"}
    assert all(Path(each).is_relative_to(unpacked) for each in said["found"].values())
    assert said["missing"] == []


def test_no_data_file_is_forgotten(unpacked):
    data = unpacked / "nagi" / "data"
    found = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
    wanted = in_checkout(
        *("experiments/schemas", "experiments/traces", "experiments/calibrations", "hosts"),
        *("p4/control", "p4/examples", "link-emulator/fpga/nagi_fpga"),
    )
    wanted |= {
        f"experiments/{path.name}"
        for path in (ROOT / "experiments").iterdir()
        if path.suffix in (".yaml", ".c")
    }
    assert len(wanted) > 100
    assert wanted - found == set()
    collection = "ansible_collections"
    shipped = {str(p.relative_to(unpacked)) for p in (unpacked / collection).rglob("*.*")}
    assert {str(Path(each).relative_to("ansible")) for each in in_checkout("ansible")} == shipped
    assert found - wanted == {
        "p4/edge.json",
        "p4/edge.p4",
        "p4/edge.p4info.txtpb",
        "link-emulator/radio/gr-nagi/python/nagi/air_time.py",
        "link-emulator/model/bounds.json",
        "link-emulator/model/medium/phys.json",
    }


def test_an_experiment_of_the_wheel_is_read_by_its_name(unpacked):
    read = (
        "from nagi.spec.points import *; "
        "print(len(read_experiment(Path('achievement-2008'), 'quick')))"
    )
    assert int(python(unpacked, read).stdout) == 36
    where = "from nagi import spec; print(spec.__file__)"
    assert python(unpacked, where).stdout.startswith(str(unpacked))


def test_a_file_goes_before_an_experiment_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = Path("achievement-2008.yaml")
    assert paths.find_experiment(name) == paths.EXPERIMENTS / name
    name.touch()
    assert paths.find_experiment(name) == name
    assert paths.find_experiment(Path("none")) == Path("none")
    assert paths.find_experiment(Path("some/achievement-2008")) == Path("some/achievement-2008")


def test_all_parts_have_one_version():
    said = PYPROJECT["project"]["version"]
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", said)  # SemVer
    assert version("nagi") == said
    programs = ["nagi-link", "nagi-tcp", "nagi-traffic", "nagi-switch"]
    if paths.executable("nagi-sdr").exists():
        programs.append("nagi-sdr")
    for program in programs:
        shown = subprocess.run(
            [paths.executable(program), "--version"], capture_output=True, text=True, check=True
        )
        assert shown.stdout.strip() == f"{program} {said}"


def test_pip_installs_nothing_but_files_whose_hashes_are_locked():
    locked: dict[str, dict[str, str]] = {}
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        packages = [line for line in lines if line and not line.startswith("#")]
        assert packages
        for line in packages:
            hashes = r"(\s+--hash=sha256:[0-9a-f]{64})+\s*"
            parts = re.fullmatch(rf"([\w.-]+)==([\w.]+)( ; [^;]+?)?{hashes}", line)
            assert parts, f"{path.name}: {line}"
            locked.setdefault(path.stem, {})[parts[1].lower()] = parts[2]
    nagis = {
        name: on
        for layer in locked
        if layer != "p4runtime-shell"
        for name, on in locked[layer].items()
    }
    project = PYPROJECT["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    for asked in [*project["dependencies"], *extras]:
        if asked.startswith("nagi["):  # the packages of another extra
            continue
        name, version_asked = re.fullmatch(r"([\w.-]+)(?:\[.*\])?==([\w.]+)", asked).groups()
        assert nagis[re.sub("[-_.]+", "-", name).lower()] == version_asked, "make lock"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nagi_works_where_its_wheel_is_installed(tmp_path):
    """Install the sdist's wheel, with all native programs compiled, and execute a run."""
    venv, dist, work = (tmp_path / name for name in ("venv", "dist", "work"))
    work.mkdir()
    python = str(venv / "bin" / "python")

    def run(*command: object, cwd: Path = work) -> str:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", dist, cwd=ROOT)
    (wheel,) = dist.glob("*.whl")
    assert "linux" in wheel.name
    run("/usr/bin/python3", "-m", "venv", venv)
    locked = ("--no-deps", "--require-hashes", "-r", ROOT / "requirements" / "run.txt")
    run(python, "-m", "pip", "install", "-q", *locked)
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel)
    nagi = venv / "bin" / "nagi"
    said = PYPROJECT["project"]["version"]
    assert run(nagi, "--version") == f"nagi {said}\n"
    assert run(venv / "bin" / "nagi-link", "--version") == f"nagi-link {said}\n"
    assert "westwoodvt" in run(nagi, "schemes")
    assert "36 runs" in run(nagi, "plan", "achievement-2008", "--quick")
    by_path = paths.EXPERIMENTS.relative_to(ROOT) / "achievement-2008.yaml"
    (work / "mine.yaml").write_text((ROOT / by_path).read_text(encoding="utf-8"))
    assert "36 runs" in run(nagi, "plan", "mine.yaml", "--quick")
    found = run(python, "-c", "import nagi, nagi_captures_native; print(nagi.__file__)")
    assert str(venv) in found
    run(nagi, "setup", "virtual-lab")
    chosen = ["--only", "capacity=50 Mb/s", "--only", "error_rate=0.1 %", "--only", "scheme=reno"]
    assert "1 valid" in run(nagi, "run", "achievement-2008", "--lab", "virtual", "--quick", *chosen)
    assert (work / "results" / "achievement-2008-quick" / "report.pdf").exists()
