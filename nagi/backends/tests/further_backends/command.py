# SPDX-License-Identifier: Apache-2.0
"""Run nagi with further backends, which are in FOLDER: command.py FOLDER ARGUMENT..."""

from __future__ import annotations

import sys

from nagi import backends

if __name__ == "__main__":
    backends.__path__.append(sys.argv.pop(1))
    from nagi.cli.main import main

    main()
