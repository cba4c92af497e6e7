# SPDX-License-Identifier: Apache-2.0
"""`nagi-p4runtime`: a P4Runtime server over a running switch."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from nagi_p4runtime.command import run
    except ModuleNotFoundError as error:  # its libraries are an optional dependency of nagi
        print(
            f"nagi-p4runtime: no module {error.name}; install nagi with its extra: "
            "pip install 'nagi[p4runtime]'",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(run())


if __name__ == "__main__":
    main()
