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
    """Compile `source` and the headers beside it, which need these modules of ns-3, to `program`.

    Raises:
        InputError: ns-3 or the compiler is missing, or the compilation fails.
    """
    found = importlib.util.find_spec("ns3")
    if found is None or not found.submodule_search_locations:
        raise refuse("there is no ns-3", "install it: `make ns3` does")
    if shutil.which("g++") is None:
        raise refuse("there is no g++", "install it: `apt-get install g++ nlohmann-json3-dev`")
    ns3 = Path(found.submodule_search_locations[0])
    sources = [source, *source.parent.glob("*.hpp")]
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in sources):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-std=c++20", "-O2", f"-I{ns3 / 'include'}", str(source), "-o", str(program)]
    command += [f"-L{ns3 / 'lib64'}", f"-Wl,-rpath,{ns3 / 'lib64'}"]
    command += [f"-lns{VERSION}-{module}" for module in modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "")
        raise refuse(f"{source.name} does not compile: {first}", f"this needs ns-3 {VERSION}")
    return program


def run_program(program: Path, settings: dict[str, Any], kept: Path) -> dict[str, Any]:
    """Run the program with `settings` and return its results.

    The results are stored in `kept` with the settings, and read from there the next time.

    Raises:
        InputError: The program fails.
    """
    if kept.exists() and kept.stat().st_mtime > program.stat().st_mtime:
        found: dict[str, Any] = json.loads(kept.read_text())
        if found["settings"] == settings:
            return found
    kept.parent.mkdir(parents=True, exist_ok=True)
    given = kept.with_suffix(".settings.json")
    given.write_text(json.dumps(settings))
    done = subprocess.run([program, given], capture_output=True, text=True, check=False)
    given.unlink()
    if done.returncode != 0:
        raise refuse(f"ns-3 ended with {done.returncode}: {done.stderr.strip()}", "see above")
    found = {"settings": settings, **json.loads(done.stdout)}
    write_atomically(kept, json.dumps(found))
    return found
