# SPDX-License-Identifier: Apache-2.0
"""How a process that computes waveforms is run: soon, and with no capability, though it starts
nagi-link, which needs some and becomes another user.

GNU Radio starts threads as soon as it is imported, and each has the capabilities of its creator. So
nagi-sdr loads this before anything of GNU Radio: nothing of that is imported here.
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
_ADD, _EFFECTIVE, _PERMITTED = 1, 1, 2  # there, too: CAPNG_ADD, CAPNG_EFFECTIVE, CAPNG_PERMITTED
_CAP_KILL = 5
_END_TIMEOUT_S = 5.0  # of nagi-link, once it is to end


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


def give_up_privileges(kept: int | None = None) -> None:
    """Give up all capabilities but `kept`, also of threads that are started later: what is computed
    here needs none, though nagi-link does. Raises OSError."""
    library = ctypes.CDLL("libcap-ng.so.0", use_errno=True)
    library.capng_get_caps_process()
    stays = kept is not None and library.capng_have_capability(_PERMITTED, kept) != 0
    library.capng_clear(_ALL_CAPABILITIES)
    if stays:
        library.capng_update(_ADD, _EFFECTIVE | _PERMITTED, kept)
    # Only who has CAP_SETPCAP can empty the bounding set; who has not has little to give up.
    for which in (_ALL_CAPABILITIES, _OWN_CAPABILITIES):
        if library.capng_apply(which) == 0:
            return
    raise OSError(ctypes.get_errno(), "cannot give up capabilities")


class Child:
    """nagi-link below a keeper: a process that has the capability to end it, though it becomes
    another user, and can do nothing else. The keeper takes its capabilities before this process
    gives them up."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._ours.close()
            _keep(theirs)
        theirs.close()

    def start(self, command: list[str], descriptors: list[int]) -> None:
        """Starts `command`, which finds the descriptors under the same numbers."""
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
        keeper = os.pidfd_open(self.pid)
        ended, _, _ = select.select([keeper], [], [], timeout_s + 1)
        os.close(keeper)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)  # which takes nagi-link along
        self.wait()

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _keep(theirs: socket.socket) -> NoReturn:
    """Be the keeper: start what is asked for, end it when asked to or once nagi-sdr is gone, and
    end as it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for nagi-sdr, too
    message, received, _, _ = socket.recv_fds(theirs, 1 << 16, 64)
    theirs.close()
    if not message:  # nagi-sdr ended before
        os._exit(0)
    task = json.loads(message)
    awaited = {signal.SIGTERM, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _become(task["command"], task["descriptors"], received)
    for descriptor in received:
        os.close(descriptor)
    give_up_privileges(kept=_CAP_KILL)
    end_with_parent(signal.SIGTERM)
    status = _status_of(child, awaited)
    if status < 0:  # end by the same signal, but leave no core of its own
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 1)


def _status_of(child: int, awaited: set[signal.Signals]) -> int:
    """Waits for a child's end, which this process asks for when it is to end itself. Returns its
    status, negative a signal's number."""
    is_asked = False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        came = signal.sigtimedwait(awaited, _END_TIMEOUT_S)
        if came is not None and came.si_signo == signal.SIGTERM:
            os.kill(child, signal.SIGTERM)
            is_asked = True
        elif came is None and is_asked:
            os.kill(child, signal.SIGKILL)


def _become(command: list[str], descriptors: list[int], received: list[int]) -> NoReturn:
    """Becomes another program, for which what was `received` has the numbers of `descriptors`."""
    # Out of the way of each other first.
    spare = [os.dup2(number, 512 + place) for place, number in enumerate(received)]
    for number, wanted in zip(spare, descriptors, strict=True):
        os.dup2(number, wanted, inheritable=True)
    os.closerange(512, 512 + len(spare))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"nagi-sdr: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(1)
