# SPDX-License-Identifier: Apache-2.0
"""Compile and run C++ programs that use ns-3.

The programs link to the libraries of the package `ns3`, and exchange JSON with nagi.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from nagi_contracts.base import write_atomically
from nagi_contracts.errors import refuse

VERSION = "3.44"


def compile_program(source: Path, modules: tuple[str, ...], program: Path) -> Path:
    """Compile a C++ program if it is missing or older than its sources, and return its path.

    Args:
        source: The source file, which may include headers (*.hpp) in its directory.
        modules: The modules of ns-3 to link to.
        program: The path of the program.

    Raises:
        InputError: ns-3 or the compiler is missing, or the compilation fails.
    """
    package = importlib.util.find_spec("ns3")
    if package is None or not package.submodule_search_locations:
        raise refuse("ns-3 is not installed", "install it: `make ns3`")
    if shutil.which("g++") is None:
        raise refuse("g++ is not installed", "install it: `apt-get install g++ nlohmann-json3-dev`")
    ns3 = Path(package.submodule_search_locations[0])
    sources = [source, *source.parent.glob("*.hpp")]
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in sources):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-std=c++20", "-O2", f"-I{ns3 / 'include'}", str(source), "-o", str(program)]
    command += [f"-L{ns3 / 'lib64'}", f"-Wl,-rpath,{ns3 / 'lib64'}"]
    command += [f"-lns{VERSION}-{module}" for module in modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first_error = next((line for line in done.stderr.splitlines() if "error" in line), "")
        raise refuse(f"{source.name} does not compile: {first_error}", f"install ns-3 {VERSION}")
    return program


def run_program(program: Path, settings: dict[str, Any], cache: Path) -> dict[str, Any]:
    """Run the program with `settings`, and return its results, with the key "settings" added.

    The results are stored in the file `cache`. If `cache` already has results of this program with
    these settings, the program is not run.

    Raises:
        InputError: The program fails.
    """
    if cache.exists() and cache.stat().st_mtime > program.stat().st_mtime:
        results: dict[str, Any] = json.loads(cache.read_text())
        if results["settings"] == settings:
            return results
    cache.parent.mkdir(parents=True, exist_ok=True)
    settings_file = cache.with_suffix(".settings.json")
    settings_file.write_text(json.dumps(settings))
    done = subprocess.run([program, settings_file], capture_output=True, text=True, check=False)
    settings_file.unlink()
    if done.returncode != 0:
        raise refuse(f"ns-3 ended with {done.returncode}: {done.stderr.strip()}", "see above")
    results = {"settings": settings, **json.loads(done.stdout)}
    write_atomically(cache, json.dumps(results))
    return results
