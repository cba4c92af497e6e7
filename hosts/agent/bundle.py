# SPDX-License-Identifier: Apache-2.0
"""Makes the agent one file that Python runs: bundle.py TARGET [NAME=FILE ...]

With the agent come the named files, which it finds among its own as programs/NAME.

Not by zipapp, which notes the time and forgets the exit status: the same agent is to be the same
file, or it would be shipped again and again.
"""

import sys
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom nagi_agent.__main__ import main\nsys.exit(main())\n"


def bundle(target: Path, programs: dict[str, Path]) -> None:
    source = Path(__file__).parent
    files = {"__main__.py": _MAIN.encode()}
    for path in sorted(source.glob("nagi_agent/*.py")):
        files[path.relative_to(source).as_posix()] = path.read_bytes()
    for name, path in sorted(programs.items()):
        files[f"nagi_agent/programs/{name}"] = path.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    named = [argument.split("=", 1) for argument in sys.argv[2:]]
    bundle(Path(sys.argv[1]), {name: Path(file) for name, file in named})
