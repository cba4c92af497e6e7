# SPDX-License-Identifier: Apache-2.0
"""Makes the agent one file that Python runs: bundle.py TARGET

Not by zipapp, which notes the time and forgets the exit status: the same agent is to be the same
file, or it would be shipped again and again.
"""

import sys
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom nagi_agent.__main__ import main\nsys.exit(main())\n"


def bundle(target: Path) -> None:
    source = Path(__file__).parent
    files = {"__main__.py": _MAIN.encode()}
    for path in sorted(source.glob("nagi_agent/*.py")):
        files[path.relative_to(source).as_posix()] = path.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    bundle(Path(sys.argv[1]))
