# SPDX-License-Identifier: Apache-2.0
"""Runs STF files on nagi-switch: python -m stf PROGRAM.json FILE.stf..."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nagi_contracts.paths import executable
from nagi_p4.operations import Refused

from stf import execution
from stf.execution import Failure
from stf.syntax import StfError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stf", description=__doc__)
    parser.add_argument("program", type=Path, help="the JSON that p4c made of a program")
    parser.add_argument("files", type=Path, nargs="+", help="STF")
    chosen = parser.parse_args()
    failed = 0
    for file in chosen.files:
        try:
            execution.run_file(chosen.program, file, executable("nagi-switch"))
        except Failure as error:
            failed += 1
            print(f"{file}: failed\n{error}")
        except (OSError, Refused, StfError) as error:
            print(f"nagi: {error}", file=sys.stderr)
            return 2
        else:
            print(f"{file}: passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
