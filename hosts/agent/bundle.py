# SPDX-License-Identifier: Apache-2.0
"""Pack the agent into one file that Python executes: bundle.py TARGET [NAME=FILE ...].

The file holds the packages nagi_agent, nagi_p4, nagi_p4runtime and nagi_fpga, the host parts of
nagi's backends, the pipeline edge.p4 of switches, and each FILE: as objects/NAME of nagi_agent, or
as NAME if NAME contains a directory. The Python that packs must have nagi, whose backends it finds.

The standard module zipapp is not used. It stores the current time and drops the exit status of the
agent. Equal sources must give equal files, because a changed file is shipped to all hosts again.
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
    """Return the Python files that every agent runs, as name in the agent's file -> file.

    The package nagi_p4runtime is not among them: only agents of P4Runtime switches run it.
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
    """Return the host parts of all backends, and what imports them."""
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
        target: path of the file; its directory is created if necessary.
        objects: name in the agent -> file to add (the NAME=FILE of the command line).
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
