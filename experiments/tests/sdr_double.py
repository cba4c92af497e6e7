# SPDX-License-Identifier: Apache-2.0
"""In the place of nagi-sdr, where GNU Radio need not be: takes nagi-sdr's configuration, runs
nagi-link with it, and answers for every transmission at once, without waveforms.

    sdr_double.py run CONFIG

All are received, with the SNR that was asked for; from number SILENT_FROM (environment) on, none
from a to b is answered.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

SILENT_FROM = int(os.environ["SILENT_FROM"])


def answer(message: bytes, way: str, snr_db: float) -> bytes | None:
    number, zero, begin, end = struct.unpack_from("<IIqq", message)
    assert zero == 0 and begin < end
    if way == "a_to_b" and number >= SILENT_FROM:
        return None
    return struct.pack("<IBBh", number, 0, 0, round(snr_db * 100)) + message[24:]


def main() -> int:
    path = Path(sys.argv[2])
    config = json.loads(path.read_text())
    selector = selectors.DefaultSelector()
    theirs = []
    for link in config["links"]:
        radio = link.pop("radio", None)
        if radio is None:
            continue
        link["carriers"] = {}
        for way in ("a_to_b", "b_to_a"):
            ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.append(other)
            link["carriers"][way] = other.fileno()
            selector.register(ours, selectors.EVENT_READ, (way, radio[way]["snr_db"]))
    carried = path.with_name("carried.json")
    carried.write_text(json.dumps(config))
    process = subprocess.Popen(
        [os.environ["NAGI_LINK"], "run", carried], pass_fds=[each.fileno() for each in theirs]
    )
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGTERM))
    for each in theirs:
        each.close()
    while selector.get_map():
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            message = key.fileobj.recv(1 << 16)
            if not message:  # nagi-link has ended
                selector.unregister(key.fileobj)
                continue
            said = answer(message, *key.data)
            if said is not None:
                key.fileobj.send(said)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
