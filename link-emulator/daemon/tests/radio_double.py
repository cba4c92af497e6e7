# SPDX-License-Identifier: Apache-2.0
"""A double of nagi-sdr: starts nagi-link and answers each transmission by rules.

So tests can cause outcomes that are rare with radios.

    python3 radio_double.py NAGI_LINK CONFIG RULES

RULES (JSON): "outcomes": {number: outcome}, all other packets are received; "late_s": delay of
every answer; "altered": numbers of packets that are received with another last byte; "ends_after":
number of transmissions after which the radio ends; "silent_from": number from which no transmission
is answered. The backward direction has no losses. CONFIG is the configuration of nagi-link or
nagi-sdr with one radio.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque

nagi_link, config_path, rules_text = sys.argv[1:]
rules = json.loads(rules_text)
outcomes = {int(number): outcome for number, outcome in rules.get("outcomes", {}).items()}
altered = set(rules.get("altered", []))
late_s = rules.get("late_s", 0.0)
silent_from = rules.get("silent_from", 1 << 32)

with open(config_path, encoding="utf-8") as file:  # noqa: PTH123
    config = json.load(file)
pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
theirs = [pair[1].fileno() for pair in pairs]
(link,) = (
    entry for entry in config["links"] if entry["forward"].get("loss", {}).get("model") == "radio"
)
link.pop("radio", None)
link["sockets"] = {"forward": theirs[0], "backward": theirs[1]}
with open(config_path, "w", encoding="utf-8") as file:  # noqa: PTH123
    json.dump(config, file)
process = subprocess.Popen([nagi_link, "run", config_path], pass_fds=theirs)
signal.signal(signal.SIGTERM, lambda *_: process.terminate())
for _, end in pairs:
    end.close()


def answer(forward: bool, message: bytes) -> bytes | None:
    number, _, begin, end = struct.unpack_from("<IIqq", message)
    assert begin < end
    if forward and number >= silent_from:
        return None
    packet = bytearray(message[24:])
    outcome = outcomes.get(number, 0) if forward else 0
    if forward and number in altered:
        packet[-1] ^= 1
    return struct.pack("<IBBh", number, outcome, 0, 1234) + (b"" if outcome else bytes(packet))


selector = selectors.DefaultSelector()
for index, (ours, _) in enumerate(pairs):
    selector.register(ours, selectors.EVENT_READ, index == 0)
waiting: deque[tuple[float, socket.socket, bytes]] = deque()
carried = 0
while process.poll() is None and carried < rules.get("ends_after", 1 << 31):
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, ours, reply = waiting.popleft()
        ours.send(reply)
    timeout_s = max(waiting[0][0] - now, 0) if waiting else 0.05
    for key, _ in selector.select(timeout_s):
        assert isinstance(key.fileobj, socket.socket)
        message = key.fileobj.recv(1 << 16)
        if not message:
            selector.unregister(key.fileobj)
            continue
        carried += 1
        reply = answer(key.data, message)
        if reply is not None:
            waiting.append((time.monotonic() + late_s, key.fileobj, reply))
for ours, _ in pairs:
    ours.close()
sys.exit(process.wait(10))
