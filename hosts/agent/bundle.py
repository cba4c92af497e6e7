# SPDX-License-Identifier: Apache-2.0
"""Pack the agent into one file that Python executes: bundle.py TARGET [NAME=FILE ...].

TARGET is a zip file. It contains

- the packages nagi_agent, nagi_p4, nagi_p4runtime and nagi_fpga,
- the modules of nagi's backends that run on hosts (`host.py` or `host/`),
- the compiled pipeline edge.p4 of switches,
- each FILE, as nagi_agent/objects/NAME, or as nagi_agent/NAME if NAME contains a slash.

nagi must be installed in the Python that runs this script, because the script packs the backends
that the installed nagi finds.

The standard module zipapp is not used, because it stores the current time and drops the exit status
of the agent. Equal sources must give equal zip files, because nagi ships a changed file to all
hosts again.
"""

import sys
import zipfile
from pathlib import Path

from nagi import backends
from nagi.backends.names import list_backends

_MAIN = "import sys\nfrom nagi_agent.__main__ import main\nsys.exit(main())\n"
_AGENT = Path(__file__).resolve().parent
_P4 = _AGENT.parents[1] / "p4"
_FPGA = _AGENT.parents[1] / "link-emulator" / "fpga"


def list_sources() -> dict[str, Path]:
    """Return the Python files that every agent needs, as path in the zip file -> source file.

    The package nagi_p4runtime is not included, because only agents of P4Runtime switches need it.
    """
    return {
        **_list_package(_AGENT, "nagi_agent"),
        **_list_package(_P4 / "control", "nagi_p4"),
        **_list_package(_FPGA, "nagi_fpga"),
        **_list_backend_sources(),
    }


def _list_package(parent: Path, package: str) -> dict[str, Path]:
    return {
        path.relative_to(parent).as_posix(): path
        for path in sorted(parent.glob(f"{package}/**/*.py"))
        if path.name != "registers.py"  # generates files of nagi_fpga, and needs PyYAML
    }


def _list_backend_sources() -> dict[str, Path]:
    """Return the backends' modules that run on hosts, and the modules that load backends.

    Returns:
        Path in the zip file -> source file.
    """
    folder, *further_folders = map(Path, backends.__path__)
    sources = {
        "nagi/__init__.py": folder.parent / "__init__.py",
        "nagi/backends/__init__.py": folder / "__init__.py",
        "nagi/backends/names.py": folder / "names.py",
    }
    for name in list_backends():
        parents = [parent for parent in (folder, *further_folders) if (parent / name).is_dir()]
        backend = parents[0] / name
        files = [*sorted(backend.glob("host.py")), *sorted(backend.glob("host/**/*.py"))]
        for file in [backend / "__init__.py", *files] if files else []:
            sources[f"nagi/backends/{file.relative_to(parents[0]).as_posix()}"] = file
    return sources


def bundle(target: Path, objects: dict[str, Path]) -> None:
    """Write the agent as one executable zip file.

    Args:
        target: path of the zip file; its directory is created if necessary.
        objects: NAME -> FILE of the command line (see the docstring of this module).
    """
    files = {"__main__.py": _MAIN.encode()}
    sources = list_sources() | _list_package(_P4 / "control", "nagi_p4runtime")
    for name, path in sources.items():
        files[name] = path.read_bytes()
    for name in ("edge.json", "edge.p4info.txtpb"):
        files[f"nagi_p4/{name}"] = (_P4 / name).read_bytes()
    for name, path in sorted(objects.items()):
        inner_path = name if "/" in name else f"objects/{name}"
        files[f"nagi_agent/{inner_path}"] = path.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    pairs = [argument.split("=", 1) for argument in sys.argv[2:]]
    bundle(Path(sys.argv[1]), {name: Path(file) for name, file in pairs})
