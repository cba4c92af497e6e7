# SPDX-License-Identifier: Apache-2.0
"""Sample captures of a Debian package, compared with tshark.

Every record is read, and TCP and UDP packets with their payload are the same.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from nagi_captures.reading import Flows, read
from nagi_contracts.errors import InputError

PACKAGE = "golang-github-gopacket-gopacket-dev"
SAMPLES = Path("/usr/share/gocode/src/github.com/gopacket/gopacket")
FILES = sorted(each for each in SAMPLES.rglob("*") if each.suffix in (".pcap", ".pcapng"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason=f"no samples: `apt-get install {PACKAGE}` has some"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark"),
]


def read_lengths_by_tshark(path: Path, protocol: str) -> list[int]:
    """Return the length of each packet's payload; tshark counts other blocks as data."""
    length = {"frame": "frame.len", "tcp": "tcp.len", "udp": "udp.length"}[protocol]
    done = subprocess.run(
        ["tshark", "-n", "-r", path, "-Y", f"{protocol} && !icmp", "-T", "fields",
         "-e", "frame.protocols", "-e", length],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"tshark refuses it: {done.stderr.splitlines()[-1]}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [int(length) for protocols, length in rows if protocols != "data"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_packets_and_payload_are_those_of_tshark(path):
    frames, tcp, udp = (read_lengths_by_tshark(path, name) for name in ("frame", "tcp", "udp"))
    try:
        found = read(path)
    except InputError as error:
        assert not frames, error
        return
    assert found.packets == len(frames)
    assert packets_and_bytes(found, "tcp") == (len(tcp), sum(tcp))
    assert packets_and_bytes(found, "udp") == (len(udp), sum(udp) - 8 * len(udp))


def packets_and_bytes(found: Flows, protocol: str) -> tuple[int, int]:
    mine = found.columns["protocol"] == protocol
    return tuple(int(found.columns[name][mine].sum()) for name in ("packets", "payload_bytes"))
