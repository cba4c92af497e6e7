# SPDX-License-Identifier: Apache-2.0
"""How a process that computes waveforms is run: soon, and with no capability, though it starts
nagi-link, which needs some.

GNU Radio starts threads as soon as it is imported, and each has the capabilities of its creator. So
nagi-sdr loads this before anything of GNU Radio: nothing of that is imported here.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys

_NICENESS = -10
_PR_SET_PDEATHSIG = 1
_OWN_CAPABILITIES, _ALL_CAPABILITIES = 16, 112  # cap-ng.h: CAPNG_SELECT_CAPS, CAPNG_SELECT_ALL


def end_with_parent(how: signal.Signals) -> None:
    """Whoever started this process takes it along, however that ends."""
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it ended in between
        sys.exit(1)


def hurry() -> bool:
    """Goes before other programs, as packets are due. Whether that was permitted."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    except PermissionError:
        return False
    return True


def give_up_privileges() -> None:
    """What is computed here needs no capabilities, though nagi-link does. Threads that are started
    later have none either. Raises OSError."""
    library = ctypes.CDLL("libcap-ng.so.0", use_errno=True)
    library.capng_clear(_ALL_CAPABILITIES)
    # Only who has CAP_SETPCAP can empty the bounding set; who has not has little to give up.
    for which in (_ALL_CAPABILITIES, _OWN_CAPABILITIES):
        if library.capng_apply(which) == 0:
            return
    raise OSError(ctypes.get_errno(), "cannot give up capabilities")


class Child:
    """A child that waits to become another program, with the capabilities that its parent gives
    up."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._ours.close()
            _become(theirs)
        theirs.close()

    def start(self, command: list[str], descriptors: list[int]) -> None:
        """Makes it `command`, which finds the descriptors under the same numbers."""
        message = json.dumps({"command": command, "descriptors": descriptors}).encode()
        socket.send_fds(self._ours, [message], descriptors)
        self._ours.close()

    def poll(self) -> int | None:
        """Its status, negative a signal's number; None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int | None:
        return self._reap(0)

    def end(self, timeout_s: float) -> None:
        """Asks it to end, and ends it if it takes too long."""
        if self.poll() is not None:
            return
        os.kill(self.pid, signal.SIGTERM)
        ended, _, _ = select.select([os.pidfd_open(self.pid)], [], [], timeout_s)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _become(theirs: socket.socket) -> None:
    """In the child: never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until it is the program
    message, received, _, _ = socket.recv_fds(theirs, 1 << 16, 64)
    if not message:  # the parent ended before
        os._exit(0)
    task = json.loads(message)
    # Out of the way of each other first.
    spare = [os.dup2(number, 512 + place) for place, number in enumerate(received)]
    for number, wanted in zip(spare, task["descriptors"], strict=True):
        os.dup2(number, wanted, inheritable=True)
    os.closerange(512, 512 + len(spare))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.execv(task["command"][0], task["command"])
    except OSError as error:
        print(f"nagi-sdr: {task['command'][0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(1)
