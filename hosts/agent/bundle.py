# SPDX-License-Identifier: Apache-2.0
"""Makes the agent one file that Python runs: bundle.py TARGET [NAME=FILE ...]

With the agent come nagi_p4, nagi_p4runtime, nagi_fpga and the pipeline of switches, and the named
files, which it finds among its own as objects/NAME, or as NAME if that has a directory.

Not by zipapp, which notes the time and forgets the exit status: the same agent is to be the same
file, or it would be shipped again and again.
"""

import sys
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom nagi_agent.__main__ import main\nsys.exit(main())\n"


def bundle(target: Path, objects: dict[str, Path]) -> None:
    source = Path(__file__).resolve().parent
    p4 = source.parents[1] / "p4"
    files = {"__main__.py": _MAIN.encode()}
    control = p4 / "control"
    for room, package in (
        (source, "nagi_agent"),
        (control, "nagi_p4"),
        (control, "nagi_p4runtime"),
        (source.parents[1] / "link-emulator" / "fpga", "nagi_fpga"),
    ):
        for path in sorted(room.glob(f"{package}/**/*.py")):
            if path.name != "registers.py":  # writes nagi_fpga's files, and needs PyYAML
                files[path.relative_to(room).as_posix()] = path.read_bytes()
    for name in ("edge.json", "edge.p4info.txtpb"):
        files[f"nagi_p4/{name}"] = (p4 / name).read_bytes()
    for name, path in sorted(objects.items()):
        place = name if "/" in name else f"objects/{name}"
        files[f"nagi_agent/{place}"] = path.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    named = [argument.split("=", 1) for argument in sys.argv[2:]]
    bundle(Path(sys.argv[1]), {name: Path(file) for name, file in named})
