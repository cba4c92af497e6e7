# SPDX-License-Identifier: Apache-2.0
"""What Ansible, ssh and sudo say when something fails, in one line; and what helps."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

# What ssh or sudo says, and what helps; the first that is found counts.
_CURES = (
    ("unprotected private key|bad permissions", "`chmod 600` its key"),
    (
        "host key verification failed|remote host identification",
        "if it was installed anew, take out its old key by `ssh-keygen -R ADDRESS`; then take in "
        "the new one by `ssh ADDRESS`",
    ),
    (
        "permission denied|no such identity|invalid format|too many authentication",
        "mend its `ansible_user` or `ansible_ssh_private_key_file`, or add the key to that user's "
        "~/.ssh/authorized_keys there: `nagi lab bootstrap` does",
    ),
    (
        "could not resolve|not known|name resolution",
        "mend its `ansible_host`: it is no address, nor a name that is known here",
    ),
    ("connection refused", "start sshd there, or mend its `ansible_port`"),
    (
        "timed out|no route|unreachable|host is down",
        "switch it on and look at its management network, or mend its `ansible_host`",
    ),
    (
        "interpreter .* (was )?not found",
        "install Python there (`apt install python3`), or mend its `ansible_python_interpreter`",
    ),
    (
        "(incorrect|missing) \\w+ password",
        "give the password of its user: with -K (--ask-become-pass) it is asked for, with "
        "`ansible_become_password` it is in the inventory",
    ),
    ("not root", "connect as root (`ansible_user: root`), or become it (`ansible_become: true`)"),
    (
        "sudo|become|privilege",
        "let the user become root there without a password (NOPASSWD in sudoers), or give its "
        "`ansible_become_password`",
    ),
)


def find_cure(said: str, otherwise: str) -> str:
    """What helps against what ssh or sudo says."""
    return next((cure for words, cure in _CURES if re.search(words, said.lower())), otherwise)


def describe_failure(result: dict[str, Any]) -> str:
    """Why a task failed, of its result."""
    status = result.get("rc")
    if isinstance(status, int) and status < 0:
        return f"killed by signal {-status} ({signal.strsignal(-status)})"
    for key in ("stderr", "msg", "module_stderr", "stdout"):
        text = result.get(key)
        if text:
            said = text if isinstance(text, str) else json.dumps(text)
            return shorten_to_end(said.removeprefix("Task failed: "))
    return "failed without a word"


def shorten_to_end(text: str, length: int = 300) -> str:
    """The end of a text, in one line."""
    return " ".join(text.split())[-length:]
