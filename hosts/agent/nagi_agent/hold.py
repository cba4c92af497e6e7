# SPDX-License-Identifier: Apache-2.0
"""Holding a host: one campaign at a time, and everything as it was before once it is let go.

A guard, a process of its own, keeps the state directory's lock. It waits until it is told to let go
(SIGTERM) or the lease has run out because nobody renewed it, as when the controller died. Then it
ends the agent that may still be at work, puts back what was set, and ends. If the guard itself is
killed, the lock is free and the journals are still there: whoever holds the host next restores it.

The state directory is on a file system that does not outlive the boot (/run): settings do not
either.
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

SETTINGS_JOURNAL = "settings.json"
INTERFACES_JOURNAL = "interfaces.json"
_JOURNALS = (SETTINGS_JOURNAL, INTERFACES_JOURNAL)  # in the order in which they are undone
_LOCK, _AGENT, _HOLDER, _LOG = "lock", "agent", "holder.json", "guard.log"
_LET_GO = {signal.SIGTERM, signal.SIGINT}
_LOOK_EVERY = 0.5
_TIMEOUT_S = 20.0  # for an agent to end its run and put back its settings


class Held(Exception):
    """Somebody else holds the host; None: it cannot be read who does."""

    def __init__(self, holder: Optional[Holder]) -> None:
        owner, campaign = (holder.owner, holder.campaign) if holder else ("unknown", "unknown")
        super().__init__(f"the host is held by {owner} for {campaign}")
        self.holder = holder


def read_request(json: Json) -> Holder:
    """Who asks for the host, as the controller says it. There is no guard yet."""
    return Holder.from_json({**json, "guard": 0})


def holder_of(state: str) -> Optional[Holder]:
    """Who holds the host. None: nobody does."""
    try:
        lock = _locked(os.path.join(state, _LOCK))
    except PermissionError:
        lock = None  # only root can tell whether the file is out of date
    if lock is not None:
        lock.close()
        return None
    return _read(os.path.join(state, _HOLDER))


def to_restore(state: str) -> bool:
    """Whether settings of an agent or guard that died are still there."""
    return holder_of(state) is None and any(
        os.path.exists(os.path.join(state, name)) for name in _JOURNALS
    )


def hold(state: str, holder: Holder) -> bool:
    """Holds the host for `holder`, or renews its lease. Returns whether settings that a dead agent
    or guard had left were put back. Raises Held, or RuntimeError if they could not be."""
    os.makedirs(state, mode=0o755, exist_ok=True)
    lock = _locked(os.path.join(state, _LOCK))
    if lock is None:
        present = _read(os.path.join(state, _HOLDER))
        if present is None or present.token != holder.token:
            raise Held(present)
        end_agent(state)  # of a controller that died
        _write(state, replace(present, expires_s=holder.expires_s))
        return False
    restored = restore(state)
    _start_guard(state, lock, holder)
    lock.close()
    return restored


def release(state: str, token: Optional[str]) -> bool:
    """Lets the host go; with no token, whoever holds it. Returns whether it was held. Raises Held
    by another token, or RuntimeError if something could not be put back."""
    deadline = time.monotonic() + _TIMEOUT_S + 10
    held = False
    while (present := holder_of(state)) is not None:
        if token is not None and present.token != token:
            raise Held(present)
        held = True
        if time.monotonic() > deadline:
            raise RuntimeError(f"the guard of this host (process {present.guard}) does not end")
        with suppress(ProcessLookupError):
            os.kill(present.guard, signal.SIGTERM)
        time.sleep(0.05)
    restore(state)
    return held


def renew(state: str, token: str, until: float) -> None:
    """Keeps the host until `until` at least. Raises RuntimeError if it is not held for `token`."""
    present = holder_of(state)
    if present is None or present.token != token:
        raise RuntimeError("this host is no longer held for this campaign: its lease has run out")
    if present.expires_s < until:
        _write(state, replace(present, expires_s=until))


@contextmanager
def at_work(state: str) -> Iterator[None]:
    """While an agent works on a host, its process is known to the guard. Raises RuntimeError if
    another agent is at work."""
    os.makedirs(state, mode=0o755, exist_ok=True)
    lock = _locked(os.path.join(state, _AGENT))
    if lock is None:
        raise RuntimeError("another agent is at work on this host")
    with lock:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def end_agent(state: str) -> None:
    """Ends the agent that is at work, if there is one; by force if it takes too long."""
    path = os.path.join(state, _AGENT)
    deadline = time.monotonic() + _TIMEOUT_S
    reported = False
    while (lock := _locked(path)) is None:
        try:
            with open(path, encoding="ascii") as file:
                process = int(file.read() or 0)
            if process and not reported:
                os.kill(process, signal.SIGTERM)
                reported = True
            elif process and time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
        except (OSError, ValueError):
            pass  # it has just ended
        time.sleep(0.05)
    lock.close()


def restore(state: str) -> bool:
    """Puts back whatever was set; whether there was anything. Raises RuntimeError."""
    found = [journal.restore(os.path.join(state, name)) for name in _JOURNALS]
    return any(found)


def _locked(path: str) -> Optional[IO[str]]:
    """The file at `path`, locked by us; None if another process has it."""
    try:
        file = open(path, "a", encoding="ascii")  # noqa: SIM115
    except FileNotFoundError:
        return open(os.devnull, "a", encoding="ascii")  # no state yet: nobody has it
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _read(path: str) -> Optional[Holder]:
    try:
        with open(path, encoding="utf-8") as file:
            return Holder.from_json(json.load(file))
    except (OSError, ValueError, KeyError):
        return None


def _write(state: str, holder: Holder) -> None:
    write_json(os.path.join(state, _HOLDER), holder.to_json())


def _start_guard(state: str, lock: IO[str], holder: Holder) -> None:
    """Starts the guard: a daemon that inherits the lock. Returns when it has written who holds the
    host, and its own process number."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        os.setsid()
        if os.fork() == 0:
            _become_daemon(state)
            _write(state, replace(holder, guard=os.getpid()))
            os.close(writable)
            _guard(state)
        os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    os.read(readable, 1)  # ends when the guard closes its side
    os.close(readable)


def _become_daemon(state: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _LET_GO)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")
    os.umask(0o022)
    log = os.open(os.path.join(state, _LOG), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for output in (1, 2):
        os.dup2(log, output)


def _guard(state: str) -> None:
    path = os.path.join(state, _HOLDER)
    while (present := _read(path)) is not None and time.time() < present.expires_s:
        if signal.sigtimedwait(_LET_GO, _LOOK_EVERY):
            break
    try:
        end_agent(state)
        restore(state)
    except Exception as error:  # the journals stay; whoever holds the host next tries again
        print(f"not put back: {error}", flush=True)
    finally:
        if os.path.exists(path):
            os.unlink(path)
