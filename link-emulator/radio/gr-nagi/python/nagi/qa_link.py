#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the block link: losses, delays, queue and marks in real time, and refused values."""

import json
import struct
import time
import unittest

import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu, pdu

MS = 10**6


def ipv4(size, ecn):
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, ecn, size, 1, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
    )
    checksum = ~ones_complement_sum(head) & 0xFFFF
    return head[:10] + struct.pack("!H", checksum) + head[12:] + bytes(size - 20)


def ones_complement_sum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Link(gr_unittest.TestCase):
    def run_link(self, config, packets, count, seed=1, **settings):
        """Return delivered packets (meta, data, arrival) and lost packets (meta, data)."""
        self.link = nagi.link(json.dumps(config), seed, 1, **settings)
        delivered, lost = blocks.message_debug(False), blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(self.link, "frames", delivered, "store")
        flowgraph.msg_connect(self.link, "losses", lost, "store")
        for number, packet in enumerate(packets):
            self.link.to_basic_block()._post(pmt.intern("frames"), pdu({"number": number}, packet))
        flowgraph.start()
        deadline = time.monotonic() + 20
        while delivered.num_messages() + lost.num_messages() < count:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)
        self.ended_ns = time.monotonic_ns()
        flowgraph.stop()
        flowgraph.wait()
        return tuple(
            [open_pdu(sink.get_message(i)) for i in range(sink.num_messages())]
            for sink in (delivered, lost)
        )

    def test_loses_what_the_model_says(self):
        config = {"loss": {"model": "trace", "lost": [3, 4, 17], "length": 50}}
        delivered, lost = self.run_link(config, [b"p"] * 100, 100)
        self.assertEqual([m["number"] for m, _ in lost], [3, 4, 17, 53, 54, 67])
        self.assertEqual({m["fate"] for m, _ in lost}, {"channel_loss"})
        self.assertEqual(len(delivered), 94)
        counts = (self.link.offered(), self.link.delivered(), self.link.channel_losses())
        self.assertEqual(counts, (100, 94, 6))

    def test_losses_repeat_by_seed_and_way(self):
        config = {"loss": {"model": "bernoulli", "probability": 0.5}}

        def lost(**settings):
            _, losses = self.run_link(config, [b"p"] * 200, 200, **settings)
            return [m["number"] for m, _ in losses]

        self.assertEqual(lost(seed=5), lost(seed=5))
        self.assertNotEqual(lost(seed=5), lost(seed=6))
        self.assertNotEqual(lost(seed=5), lost(seed=5, direction="backward"))

    def test_rate_and_delay(self):
        begun_ns = time.monotonic_ns()
        config = {"rate_bps": 800_000, "delay_ns": 30 * MS}  # 1 ms for each 100 bytes
        sizes = [100, 500, 1000, 100]
        delivered, _ = self.run_link(config, [bytes([i]) * n for i, n in enumerate(sizes)], 4)
        due = [meta["due_ns"] for meta, _ in delivered]
        self.assertGreaterEqual(due[0], begun_ns + 31 * MS)
        for i in range(1, 4):
            self.assertGreaterEqual(due[i] - due[i - 1], sizes[i] // 100 * MS)
        self.assertGreaterEqual(self.ended_ns, due[-1])  # none was let go before its time
        self.assertEqual(
            [data for _, data in delivered], [bytes([i]) * n for i, n in enumerate(sizes)]
        )

    def test_sizes_are_ip_bytes(self):
        config = {"rate_bps": 8000}  # 1 ms for each byte
        for carries, size in (("ip", 40), ("ethernet", 54)):
            # The second comes while the first is sent, if this machine gives us 40 ms: till then.
            between = 0
            deadline = time.monotonic() + 20
            while between != 40 * MS and time.monotonic() < deadline:
                delivered, _ = self.run_link(config, [bytes(size)] * 2, 2, carries=carries)
                between = delivered[1][0]["due_ns"] - delivered[0][0]["due_ns"]
            self.assertEqual(between, 40 * MS)

    def test_a_full_queue_drops(self):
        config = {"rate_bps": 8, "queue": {"packets": 2}}  # 100 s for each packet
        delivered, lost = self.run_link(config, [bytes(100)] * 10, 7)
        self.assertEqual(delivered, [])
        self.assertEqual([m["number"] for m, _ in lost], [3, 4, 5, 6, 7, 8, 9])
        self.assertEqual({m["fate"] for m, _ in lost}, {"queue_overflow"})
        self.assertEqual((self.link.queue_overflows(), self.link.held()), (7, 3))

    def test_marks_packets_that_may_be_marked(self):
        config = {
            "rate_bps": 80_000,  # 10 ms for each packet
            "mark": {"threshold_packets": 1, "weight": 1.0},
        }
        for carries, head in (("ip", b""), ("ethernet", bytes(12) + b"\x08\x00")):
            packets = [head + ipv4(100, ecn) for ecn in (2, 2, 2, 2, 0, 2, 1)]
            delivered, _ = self.run_link(config, packets, len(packets), carries=carries)
            changed = []
            for (_, data), before in zip(delivered, packets, strict=True):
                packet = data[len(head) :]
                self.assertEqual(ones_complement_sum(packet[:20]), 0xFFFF)
                if data != before:
                    changed.append(packet[1])
            self.assertEqual(changed, [3] * self.link.marked())
            self.assertGreaterEqual(self.link.marked(), 1)

    def test_what_is_refused(self):
        for config, what in (
            ("{", "not JSON"),
            ("[" * 100_000, "64 levels"),
            ('{"rate": 5}', "rate"),
            ('{"rate_bps": 8, "queue": {"packets": 0}}', "/queue/packets"),
            ('{"loss": {"model": "bernoulli", "probability": 2}}', "/loss/probability"),
        ):
            with self.assertRaisesRegex(ValueError, what):
                nagi.link(config, 1, 1)
        with self.assertRaisesRegex(ValueError, "direction"):
            nagi.link("{}", 1, 1, "up")
        with self.assertRaisesRegex(ValueError, "carries"):
            nagi.link("{}", 1, 1, carries="arp")


if __name__ == "__main__":
    unittest.main()
