# SPDX-License-Identifier: Apache-2.0
"""Reserve a host for one campaign at a time, and restore its settings when the campaign ends.

A separate process, the guard, keeps the state directory locked. It waits for SIGTERM, or until the
lease expires because nobody renewed it, for example because the controller died. Then the guard
ends the agent if one still runs, restores all settings, and ends. If the guard itself is killed,
the lock is free, but the journals still exist. The next holder of the host then restores the
settings.

The state directory is on a file system that a reboot empties (/run). A reboot resets the settings
as well.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, Iterator, Optional

from nagi_agent import journal
from nagi_agent.contracts import Holder, Json
from nagi_agent.journal import write_json

# The directory in which a provisioning reserves the host (the Ansible module nagi.testbed.lease).
PROVISIONING_STATE = "/run/nagi-testbed"
SETTINGS_JOURNAL = "settings.json"
INTERFACES_JOURNAL = "interfaces.json"
_JOURNALS = (SETTINGS_JOURNAL, INTERFACES_JOURNAL)  # in the order in which they are restored
_LOCK, _AGENT, _HOLDER, _LOG = "lock", "agent", "holder.json", "guard.log"
_END_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_CHECK_INTERVAL_S = 0.5
_TIMEOUT_S = 20.0  # for an agent to end its run and restore its settings


class HeldError(Exception):
    """Another holder has reserved the host.

    `holder` is that holder, or None if the file holder.json cannot be read.
    """

    def __init__(self, holder: Optional[Holder]) -> None:
        owner, campaign = (holder.owner, holder.campaign) if holder else ("unknown", "unknown")
        super().__init__(f"the host is held by {owner} for {campaign}")
        self.holder = holder


def parse_request(json: Json) -> Holder:
    """Return the holder that a controller's request describes.

    Its `guard` is 0, because the guard is not started yet.
    """
    return Holder.from_json({**json, "guard": 0})


def find_holder(state: str) -> Optional[Holder]:
    """Return who has reserved the host, or None if nobody has.

    Only root can test the lock. For other users, the result is the holder in holder.json, whose
    reservation may have ended. Return None also if holder.json cannot be read.
    """
    try:
        lock = _try_lock(os.path.join(state, _LOCK))
    except PermissionError:
        lock = None  # only root can find out whether the reservation has ended
    if lock is not None:
        lock.close()
        return None
    return _read_holder(os.path.join(state, _HOLDER))


def needs_restore(state: str) -> bool:
    """Return whether an agent or guard died without restoring the settings that it had changed."""
    return find_holder(state) is None and any(
        os.path.exists(os.path.join(state, name)) for name in _JOURNALS
    )


def hold(state: str, holder: Holder) -> bool:
    """Reserve the host, or renew the lease if `holder` has already reserved it.

    If the lease is renewed, an agent that still runs is ended first.

    Args:
        state: directory of the agent's state on this host.
        holder: who reserves the host, and until when.

    Returns:
        Whether this call restored settings that an agent or guard had changed before it died.

    Raises:
        HeldError: Another holder has reserved the host, or it is being provisioned.
        RuntimeError: Settings could not be restored.
    """
    if (provisioner := find_holder(PROVISIONING_STATE)) is not None:
        raise HeldError(provisioner)
    os.makedirs(state, mode=0o755, exist_ok=True)
    lock = _try_lock(os.path.join(state, _LOCK))
    if lock is None:
        current = _read_holder(os.path.join(state, _HOLDER))
        if current is None or current.token != holder.token:
            raise HeldError(current)
        end_agent(state)  # a controller that died may have left it
        _write_holder(state, replace(current, expires_s=holder.expires_s))
        return False
    restored = restore(state)
    _start_guard(state, lock, holder)
    lock.close()
    return restored


def release(state: str, token: Optional[str]) -> bool:
    """End the reservation of the host, if there is one, and restore the host's settings.

    Args:
        state: directory of the agent's state on this host.
        token: token of the holder; None ends any holder's reservation, also that of a provisioning.

    Returns:
        Whether the host was reserved.

    Raises:
        HeldError: A holder with another token has reserved the host.
        RuntimeError: The guard does not end, or settings could not be restored.
    """
    deadline = time.monotonic() + _TIMEOUT_S + 10
    was_held = False
    if token is None and (provisioner := find_holder(PROVISIONING_STATE)) is not None:
        with suppress(ProcessLookupError):
            os.kill(provisioner.guard, signal.SIGTERM)
        was_held = True
    while (current := find_holder(state)) is not None:
        if token is not None and current.token != token:
            raise HeldError(current)
        was_held = True
        if time.monotonic() > deadline:
            raise RuntimeError(f"the guard of this host (process {current.guard}) does not end")
        with suppress(ProcessLookupError):
            os.kill(current.guard, signal.SIGTERM)
        time.sleep(0.05)
    restore(state)
    return was_held


def renew(state: str, token: str, until: float) -> None:
    """Extend the lease to `until` (seconds since the epoch), unless the lease already ends later.

    Raises:
        RuntimeError: The host is not reserved by the holder of `token`.
    """
    current = find_holder(state)
    if current is None or current.token != token:
        raise RuntimeError("this host is no longer reserved for this campaign: the lease expired")
    if current.expires_s < until:
        _write_holder(state, replace(current, expires_s=until))


@contextmanager
def register_agent(state: str) -> Iterator[None]:
    """Register this process as the agent that runs on this host, until the block ends.

    The guard ends a registered agent before it restores the host.

    Raises:
        RuntimeError: Another agent runs on this host.
    """
    os.makedirs(state, mode=0o755, exist_ok=True)
    lock = _try_lock(os.path.join(state, _AGENT))
    if lock is None:
        raise RuntimeError("another agent runs on this host")
    with lock:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def end_agent(state: str) -> None:
    """End the agent that runs on this host, if any. Kill the agent if it does not end in 20 s."""
    path = os.path.join(state, _AGENT)
    deadline = time.monotonic() + _TIMEOUT_S
    is_signalled = False
    while (lock := _try_lock(path)) is None:
        try:
            with open(path, encoding="ascii") as file:
                process = int(file.read() or 0)
            if process and not is_signalled:
                os.kill(process, signal.SIGTERM)
                is_signalled = True
            elif process and time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
        except (OSError, ValueError):
            pass  # the agent has just ended
        time.sleep(0.05)
    lock.close()


def restore(state: str) -> bool:
    """Restore all settings that the journals list. Return whether there was a journal.

    Raises:
        RuntimeError: A setting could not be restored.
    """
    results = [journal.restore(os.path.join(state, name)) for name in _JOURNALS]
    return any(results)


def _try_lock(path: str) -> Optional[IO[str]]:
    """Return the file at `path`, locked by this process, or None if another process locks it.

    Return /dev/null without a lock if the directory of `path` does not exist.
    """
    try:
        file = open(path, "a", encoding="ascii")  # noqa: SIM115
    except FileNotFoundError:
        # There is no state yet, so no process has locked it.
        return open(os.devnull, "a", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _read_holder(path: str) -> Optional[Holder]:
    try:
        with open(path, encoding="utf-8") as file:
            return Holder.from_json(json.load(file))
    except (OSError, ValueError, KeyError):
        return None


def _write_holder(state: str, holder: Holder) -> None:
    write_json(os.path.join(state, _HOLDER), holder.to_json())


def _start_guard(state: str, lock: IO[str], holder: Holder) -> None:
    """Start the guard as a daemon that inherits the lock.

    Return when the guard has written holder.json, which contains the guard's process id.
    """
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        os.setsid()
        if os.fork() == 0:
            _become_daemon(state)
            _write_holder(state, replace(holder, guard=os.getpid()))
            os.close(writable)
            _run_guard(state)
        os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    os.read(readable, 1)  # returns when the guard closes its end
    os.close(readable)


def _become_daemon(state: str) -> None:
    """Detach this process from its terminal and directory, block signals, and open the log."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")
    os.umask(0o022)
    log = os.open(os.path.join(state, _LOG), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for output in (1, 2):
        os.dup2(log, output)


def _run_guard(state: str) -> None:
    """Wait for a signal or the end of the lease, then restore the host and remove holder.json."""
    path = os.path.join(state, _HOLDER)
    while (current := _read_holder(path)) is not None and time.time() < current.expires_s:
        if signal.sigtimedwait(_END_SIGNALS, _CHECK_INTERVAL_S):
            break
    try:
        end_agent(state)
        restore(state)
    except Exception as error:  # the journals stay, and the next holder tries again
        print(f"not restored: {error}", flush=True)
    finally:
        if os.path.exists(path):
            os.unlink(path)
