# SPDX-License-Identifier: Apache-2.0
"""Pack the agent into one file that Python executes: bundle.py TARGET [NAME=FILE ...].

The file holds the packages nagi_agent, nagi_p4, nagi_p4runtime and nagi_fpga, the pipeline edge.p4
of switches, and each FILE: as objects/NAME of nagi_agent, or as NAME if NAME contains a directory.

The standard module zipapp is not used. It stores the current time and drops the exit status of the
agent. Equal sources must give equal files, because a changed file is shipped to all hosts again.
"""

import sys
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom nagi_agent.__main__ import main\nsys.exit(main())\n"


def bundle(target: Path, objects: dict[str, Path]) -> None:
    """Write the agent as one executable zip file.

    Args:
        target: path of the file; its directory is created if necessary.
        objects: name in the agent -> file to add (the NAME=FILE of the command line).
    """
    source = Path(__file__).resolve().parent
    p4 = source.parents[1] / "p4"
    files = {"__main__.py": _MAIN.encode()}
    control = p4 / "control"
    for parent, package in (
        (source, "nagi_agent"),
        (control, "nagi_p4"),
        (control, "nagi_p4runtime"),
        (source.parents[1] / "link-emulator" / "fpga", "nagi_fpga"),
    ):
        for path in sorted(parent.glob(f"{package}/**/*.py")):
            if path.name != "registers.py":  # generates files of nagi_fpga, and needs PyYAML
                files[path.relative_to(parent).as_posix()] = path.read_bytes()
    for name in ("edge.json", "edge.p4info.txtpb"):
        files[f"nagi_p4/{name}"] = (p4 / name).read_bytes()
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
