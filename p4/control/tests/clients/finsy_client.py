# SPDX-License-Identifier: Apache-2.0
"""finsy as a client of a P4Runtime server.

Arguments: the server's address, and a directory with everything.json and its P4Info. Frames from
00:00:00:00:00:07 arrive at port 1 all the time. Prints a line for each thing that works.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import finsy as fy

DESTINATION = "destination"  # what finsy calls headers.ethernet.destination


def station(address: str, **rest: object) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "stations",
        match=fy.Match(**{DESTINATION: address}),
        action=fy.Action("counted_send", port=1),
        **rest,
    )


async def main(address: str, programs: Path) -> None:
    options = fy.SwitchOptions(
        p4info=programs / "everything.p4info.txtpb", p4blob=programs / "everything.json"
    )
    async with fy.Switch("switch", address, options) as switch:
        print("pipeline", flush=True)
        await switch.delete_all()
        await switch.write(
            [
                +station("00:00:00:00:00:09"),
                +station("00:00:00:00:00:0a", idle_timeout_ns=300_000_000),
                +fy.P4DigestEntry("Learned", max_list_size=1),
                ~fy.P4TableEntry(
                    "stations", is_default_action=True, action=fy.Action("ask", reason=42)
                ),
                +fy.P4MulticastGroupEntry(5, replicas=[1, 2]),
            ]
        )
        print("written", flush=True)
        read = switch.read(fy.P4TableEntry("stations"))
        found = [entry async for entry in read]  # type: ignore[attr-defined]
        assert len(found) == 2, found
        assert {entry[DESTINATION] for entry in found} == {9, 10}, found
        print("read", flush=True)
        packets = switch.read_packets()
        async for packet in packets:
            assert packet["reason"] == 42 and packet["ingress_port"] == 1, packet
            assert packet.payload[6:12] == bytes.fromhex("000000000007"), packet
            break
        print("packet in", flush=True)
        async for digest in switch.read_digests("Learned"):
            (learned,) = list(digest)
            assert learned["source"] == 7 and learned["port"] == 1, learned
            await switch.write([digest.ack()])
            break
        print("digest", flush=True)
        async for timeout in switch.read_idle_timeouts():
            (entry,) = list(timeout)
            assert entry[DESTINATION] == 10, entry
            break
        print("idle timeout", flush=True)
        await switch.write([fy.P4PacketOut(b"\xff" * 64, egress_port=2, padding=0)])
        print("packet out", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
