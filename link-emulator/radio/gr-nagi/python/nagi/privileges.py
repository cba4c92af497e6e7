# SPDX-License-Identifier: Apache-2.0
"""Raises the priority of nagi-sdr and gives up its capabilities.

nagi-sdr starts nagi-link, which needs capabilities and changes to another user.

GNU Radio starts threads when it is imported, and each thread inherits the capabilities of its
creator. So nagi-sdr loads this module before GNU Radio, and this module does not import GNU Radio.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import NoReturn

_NICENESS = -10
_PR_SET_PDEATHSIG = 1
_OWN_CAPABILITIES, _ALL_CAPABILITIES = 16, 112  # cap-ng.h: CAPNG_SELECT_CAPS, CAPNG_SELECT_ALL
_ADD, _EFFECTIVE, _PERMITTED = 1, 1, 2  # cap-ng.h: CAPNG_ADD, CAPNG_EFFECTIVE, CAPNG_PERMITTED
_CAP_KILL = 5
_END_TIMEOUT_S = 5.0  # for nagi-link to end after SIGTERM


def end_with_parent(number: signal.Signals) -> None:
    """Make the kernel send this process a signal when its parent process ends.

    If the parent ends during the call, this process exits with status 1.

    Raises:
        OSError: The kernel refuses the request.
    """
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # the parent ended before the call
        sys.exit(1)


def raise_priority() -> bool:
    """Raise the priority of this process, since packets have deadlines.

    Returns:
        False if the process lacks the permission.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    except PermissionError:
        return False
    return True


def give_up_privileges(kept_capability: int | None = None) -> None:
    """Give up all capabilities except `kept_capability`, for this thread and threads started later.

    nagi-sdr computes waveforms, which needs no capability. The keeper of nagi-link needs CAP_KILL.

    Raises:
        OSError: The kernel refuses the change.
    """
    library = ctypes.CDLL("libcap-ng.so.0", use_errno=True)
    library.capng_get_caps_process()
    has_kept = (
        kept_capability is not None
        and library.capng_have_capability(_PERMITTED, kept_capability) != 0
    )
    library.capng_clear(_ALL_CAPABILITIES)
    if has_kept:
        library.capng_update(_ADD, _EFFECTIVE | _PERMITTED, kept_capability)
    # Clearing the bounding set needs CAP_SETPCAP. A process without it has few capabilities anyway.
    for sets in (_ALL_CAPABILITIES, _OWN_CAPABILITIES):
        if library.capng_apply(sets) == 0:
            return
    raise OSError(ctypes.get_errno(), "cannot give up capabilities")


class Child:
    """nagi-link as the child of a keeper process, which the constructor forks.

    nagi-link changes to another user. The keeper retains only the capability to send signals to
    processes of other users. So the keeper must be forked before this process gives up its
    capabilities. `pid` is the id of the keeper, which ends with nagi-link's exit
    status or signal.
    """

    def __init__(self) -> None:
        self.returncode: int | None = None
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._ours.close()
            _run_keeper(theirs)
        theirs.close()

    def start(self, command: list[str], descriptors: list[int]) -> None:
        """Start `command` once; it inherits the descriptors under their numbers.

        The first word of `command` must be the path of a program, because $PATH is not searched.
        """
        message = json.dumps({"command": command, "descriptors": descriptors}).encode()
        socket.send_fds(self._ours, [message], descriptors)
        self._ours.close()

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs.

        After an end by a signal, the status is the negative number of the signal.
        """
        return self._reap(os.WNOHANG)

    def wait(self) -> int | None:
        return self._reap(0)

    def terminate(self, timeout_s: float) -> None:
        """Send SIGTERM and wait for the end; send SIGKILL after `timeout_s` + 1 seconds."""
        if self.poll() is not None:
            return
        os.kill(self.pid, signal.SIGTERM)
        keeper = os.pidfd_open(self.pid)
        ended, _, _ = select.select([keeper], [], [], timeout_s + 1)
        os.close(keeper)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)  # nagi-link ends with its keeper
        self.wait()

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _run_keeper(theirs: socket.socket) -> NoReturn:
    """Run the keeper process.

    The keeper starts the command that it receives. After SIGTERM, or when nagi-sdr has ended, it
    ends the command. The keeper ends with the exit status or the signal of the command.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nagi-sdr gets the terminal's SIGINT as well
    message, received, _, _ = socket.recv_fds(theirs, 1 << 16, 64)
    theirs.close()
    if not message:  # nagi-sdr ended without starting a command
        os._exit(0)
    task = json.loads(message)
    awaited = {signal.SIGTERM, signal.SIGCHLD}
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        _execute(task["command"], task["descriptors"], received)
    for descriptor in received:
        os.close(descriptor)
    give_up_privileges(kept_capability=_CAP_KILL)
    end_with_parent(signal.SIGTERM)
    status = _wait_for_child(child, awaited)
    if status < 0:  # end by the same signal, without a core file of the keeper
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 1)


def _wait_for_child(child: int, awaited: set[signal.Signals]) -> int:
    """Wait until a child ends, and forward SIGTERM to it.

    Returns:
        The child's exit status, or the negative number of the signal that ended the child.
    """
    is_terminated = False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        received = signal.sigtimedwait(awaited, _END_TIMEOUT_S)
        if received is not None and received.si_signo == signal.SIGTERM:
            os.kill(child, signal.SIGTERM)
            is_terminated = True
        elif received is None and is_terminated:
            os.kill(child, signal.SIGKILL)


def _execute(command: list[str], descriptors: list[int], received: list[int]) -> NoReturn:
    """Execute a program, which inherits `received` under the numbers `descriptors`."""
    # Both sets of numbers may overlap, so the descriptors first get unused numbers.
    spare = [os.dup2(number, 512 + index) for index, number in enumerate(received)]
    for number, target in zip(spare, descriptors, strict=True):
        os.dup2(number, target, inheritable=True)
    os.closerange(512, 512 + len(spare))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"nagi-sdr: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(1)
