# SPDX-License-Identifier: Apache-2.0
"""Start programs on the host that outlive the module and its connection.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys

_PACKAGE = "ansible_collections.nagi.testbed.plugins.module_utils"


def start_program(name: str, path: str, *arguments: str) -> None:
    """Copy a file of this package to the host, and start the copy as a program.

    Args:
        name: The name of the file, such as "watchdog.py". It uses the standard library only.
        path: The path of the copy, whose directory exists.
        *arguments: The arguments of the program.

    Raises:
        OSError: The file cannot be written.
        subprocess.CalledProcessError: systemd does not start the program.
    """
    content = pkgutil.get_data(_PACKAGE, name)
    if content is None:
        raise FileNotFoundError(name)
    with open(path, "wb") as file:
        file.write(content)
    command = [sys.executable, "-I", path, *arguments]
    if os.path.isdir("/run/systemd/system"):
        # A unit of its own, because logind may end all processes of the SSH session.
        unit = f"--unit=nagi-{name.partition('.')[0]}-{os.getpid()}"
        subprocess.run(["systemd-run", "--quiet", "--collect", unit, *command], check=True)
        return
    subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
