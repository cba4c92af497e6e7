# SPDX-License-Identifier: Apache-2.0
"""Shortens the messages of Ansible, ssh and sudo to one line, and finds cures."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

# Regular expression, and the cure of a message that matches it. The first match counts.
_CURES = (
    ("unprotected private key|bad permissions", "`chmod 600` the private key"),
    (
        "host key verification failed|remote host identification",
        "if the host was reinstalled, remove its old key by `ssh-keygen -R ADDRESS`; then accept "
        "the new one by `ssh ADDRESS`",
    ),
    (
        "permission denied|no such identity|invalid format|too many authentication",
        "correct its `ansible_user` or `ansible_ssh_private_key_file`, or add the key to "
        "~/.ssh/authorized_keys of that user there, as `nagi lab bootstrap` does",
    ),
    (
        "could not resolve|not known|name resolution",
        "correct its `ansible_host`, which is neither an address nor a name known here",
    ),
    ("connection refused", "start sshd there, or correct its `ansible_port`"),
    (
        "timed out|no route|unreachable|host is down",
        "switch it on and check its management network, or correct its `ansible_host`",
    ),
    (
        "interpreter .* (was )?not found",
        "install Python there (`apt install python3`), or correct its `ansible_python_interpreter`",
    ),
    (
        "(incorrect|missing) \\w+ password",
        "give the password of its user: let Ansible ask with -K (--ask-become-pass), or set "
        "`ansible_become_password` in the inventory",
    ),
    ("not root", "connect as root (`ansible_user: root`), or set `ansible_become: true`"),
    (
        "sudo|become|privilege",
        "let the user become root there without a password (NOPASSWD in sudoers), or give its "
        "`ansible_become_password`",
    ),
)


def find_cure(message: str, default: str) -> str:
    """Return a cure for a message of Ansible, ssh or sudo.

    Args:
        message: The message.
        default: The cure for messages that match no pattern in _CURES.
    """
    return next((cure for pattern, cure in _CURES if re.search(pattern, message.lower())), default)


def describe_failure(result: dict[str, Any]) -> str:
    """Return the reason why a task failed, in one line.

    Args:
        result: Ansible's result of the task.
    """
    status = result.get("rc")
    if isinstance(status, int) and status < 0:
        return f"killed by signal {-status} ({signal.strsignal(-status)})"
    for key in ("stderr", "msg", "module_stderr", "stdout"):
        text = result.get(key)
        if text:
            message = text if isinstance(text, str) else json.dumps(text)
            return shorten_to_end(message.removeprefix("Task failed: "))
    return "failed without a message"


def shorten_to_end(text: str, length: int = 300) -> str:
    """Return the last `length` characters of a text, in one line."""
    return " ".join(text.split())[-length:]
