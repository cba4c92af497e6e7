# SPDX-License-Identifier: Apache-2.0
"""p4runtime-shell as a client of a P4Runtime server, with the arguments of finsy_client.py.

It runs with a Python that has p4runtime-shell, and imports nothing of nagi.
"""

from __future__ import annotations

import sys

import p4runtime_sh.shell as sh


def main(address: str, programs: str) -> None:
    config = sh.FwdPipeConfig(
        f"{programs}/everything.p4info.txtpb",
        f"{programs}/everything.json",
    )
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)
    try:
        print("pipeline", flush=True)
        for number, timeout_ns in ((9, 0), (10, 300_000_000)):
            entry = sh.TableEntry("ingress.stations")(action="ingress.counted_send")
            entry.match["headers.ethernet.destination"] = f"00:00:00:00:00:{number:02x}"
            entry.action["port"] = "1"
            entry.idle_timeout_ns = timeout_ns
            entry.insert()
        default = sh.TableEntry("ingress.stations")(action="ingress.ask", is_default=True)
        default.action["reason"] = "42"
        default.modify()
        digest = sh.DigestEntry("Learned")
        digest.max_list_size = 1
        digest.insert()
        group = sh.MulticastGroupEntry(5)
        group.add(1, 1).add(2, 1)
        group.insert()
        print("written", flush=True)
        found = list(sh.TableEntry("ingress.stations").read())
        assert len(found) == 2, found
        print("read", flush=True)
        (packet,) = list(sh.PacketIn().sniff(timeout=3))[:1]
        values = [metadata.value for metadata in packet.packet.metadata]
        assert values == [b"\x01", b"\x2a"], packet
        assert packet.packet.payload[6:12] == bytes.fromhex("000000000007"), packet
        print("packet in", flush=True)
        (told,) = list(sh.DigestList().sniff(timeout=3))[:1]
        source, port, _ = told.digest.data[0].struct.members
        assert (source.bitstring, port.bitstring) == (b"\x07", b"\x01"), told
        print("digest", flush=True)
        (idle,) = list(sh.IdleTimeoutNotification().sniff(timeout=3))[:1]
        (entry,) = idle.idle_timeout_notification.table_entry
        assert entry.match[0].exact.value == b"\x0a", idle
        print("idle timeout", flush=True)
        sh.PacketOut(b"\xff" * 64, egress_port="2", padding="0").send()
        print("packet out", flush=True)
    finally:
        sh.teardown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
