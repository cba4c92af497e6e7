# SPDX-License-Identifier: Apache-2.0
"""Reserve a host for one provisioning at a time.

A guard process on the host holds a lock and keeps holder.json, until the provisioning releases the
host or the lease ends. This file is the program of the guard, too. holder.json has the format of a
campaign's reservation (hosts/agent/nagi_agent/hold.py), so that agents can read it.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

DIRECTORY = "/run/nagi-testbed"
LEASE_S = 600.0  # each call of nagi.testbed.owned renews the lease
_TIMEOUT_S = 20.0
_POLL_INTERVAL_S = 0.05
_GUARD_INTERVAL_S = 0.5


class LeaseError(Exception):
    """The lease could not be taken or given back. The message says why."""


def acquire(
    start_guard: Callable[[dict], None], owner: str, purpose: str, token: str, replaced_token: str
) -> dict:
    """Reserve the host, or renew the lease of `token`.

    Args:
        start_guard: A function that starts this file as a program, for a holder (run_guard()).
        owner: The owner of the lease, for messages: user@machine.
        purpose: What the host is reserved for, such as "provisioning".
        token: A text that identifies the owner's process.
        replaced_token: The token of a lease that ends for this one; "" for none.

    Returns:
        The holder, which has another token if somebody else has reserved the host.

    Raises:
        LeaseError: The guard does not start, or the guard of `replaced_token` does not end.
    """
    now_s = time.time()
    holder = {
        "schema_version": 1,
        "owner": owner,
        "campaign": purpose,
        "token": token,
        "since_s": now_s,
        "expires_s": now_s + LEASE_S,
    }
    is_started = False
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        if _is_locked():
            current = _read_holder()
            if current is not None and current["token"] == token:
                renew()
                return current
            if current is not None and current["token"] != replaced_token:
                return current
            if current is not None:
                _end_guard(current)
        elif not is_started:
            os.makedirs(DIRECTORY, mode=0o755, exist_ok=True)
            start_guard(holder)
            is_started = True
        time.sleep(_POLL_INTERVAL_S)
    raise LeaseError(f"the guard in {DIRECTORY} does not start or end; `rm -r {DIRECTORY}`")


def release(token: str) -> None:
    """Give the host back if it is reserved by the owner of `token`.

    Raises:
        LeaseError: The guard does not end.
    """
    current = _read_holder()
    if current is None or current["token"] != token:
        return
    deadline = time.monotonic() + _TIMEOUT_S
    while _is_locked():
        if time.monotonic() > deadline:
            raise LeaseError(f"the guard of this host (process {current['guard']}) does not end")
        _end_guard(current)
        time.sleep(_POLL_INTERVAL_S)
    shutil.rmtree(DIRECTORY, ignore_errors=True)


def renew() -> None:
    """Extend the lease, if there is one. The caller is a part of the provisioning that holds it."""
    current = _read_holder()
    if current is not None:
        _write_holder({**current, "expires_s": time.time() + LEASE_S})


def _path(name: str) -> str:
    return os.path.join(DIRECTORY, name)


def _is_locked() -> bool:
    """Return whether a guard runs."""
    try:
        with open(_path("lock"), encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _read_holder() -> dict | None:
    try:
        with open(_path("holder.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _write_holder(holder: dict) -> None:
    partial = _path(f"holder.{os.getpid()}.partial")
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(holder, file)
    os.rename(partial, _path("holder.json"))


def _end_guard(holder: dict) -> None:
    with suppress(ProcessLookupError):
        os.kill(holder["guard"], signal.SIGTERM)


def run_guard(holder: dict) -> None:
    """Hold the lock until SIGTERM, the end of the lease, or the end of holder.json.

    Do nothing if another guard holds the lock.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with open(_path("lock"), "w", encoding="ascii") as lock:
        deadline = time.monotonic() + 1.0  # others may test the lock just now
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return
                time.sleep(_POLL_INTERVAL_S)
        _write_holder({**holder, "guard": os.getpid()})
        # The provisioning may set the clock, so the lease is measured by another one.
        last_expires_s = renewed_s = 0.0
        while (current := _read_holder()) is not None:
            now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
            if current["expires_s"] != last_expires_s:
                last_expires_s, renewed_s = current["expires_s"], now_s
            if now_s > renewed_s + LEASE_S or signal.sigtimedwait(signals, _GUARD_INTERVAL_S):
                break
        if os.path.exists(_path("holder.json")):
            os.unlink(_path("holder.json"))


if __name__ == "__main__":
    run_guard(json.loads(sys.argv[1]))
