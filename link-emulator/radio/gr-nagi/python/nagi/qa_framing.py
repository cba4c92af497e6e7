#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of frames (sizes, damage, error correction) and of the blocks that make and read them."""

import random
import unittest
import zlib

import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu, pdu

CODE_RATES = ("none", "1/2", "2/3", "3/4")


def flip(framed: bytes, bits: list[int]) -> bytes:
    damaged = bytearray(framed)
    for bit in bits:
        damaged[bit // 8] ^= 0x80 >> bit % 8
    return bytes(damaged)


class Framing(gr_unittest.TestCase):
    def test_every_size_comes_back(self):
        data = random.Random(1).randbytes(1600)
        for code_rate in CODE_RATES:
            framing = nagi.framing(code_rate, whiten=True, max_payload=1600)
            for size in (*range(1, 70), 255, 256, 576, 1499, 1500, 1501, 1600):
                framed = framing.frame(size + 2**31, data[:size])
                self.assertEqual(len(framed), nagi.framed_bytes(size, code_rate))
                self.assertEqual(framing.deframe(framed), (size + 2**31, data[:size]))

    def test_layout(self):
        payload = b"payload"
        head = b"\x07\x00\x04\x03\x02\x01\x00" + payload
        expected = head + zlib.crc32(head).to_bytes(4, "little")
        self.assertEqual(nagi.framing("none", whiten=False).frame(0x01020304, payload), expected)
        self.assertEqual(nagi.framed_bytes(7), len(expected))
        # 171/133 (octal) at rate 1/2, 6 tail bits, whole bytes
        self.assertEqual(nagi.framed_bytes(7, "1/2"), 2 * len(expected) + 2)

    def test_whitening_is_the_sequence_of_dvb_t(self):
        payload = bytes(range(20))
        plain = nagi.framing("none", whiten=False).frame(1, payload)
        white = nagi.framing("none", whiten=True).frame(1, payload)
        sequence = bytes(a ^ b for a, b in zip(plain, white, strict=True))
        # EN 300 744, figure 3: the sequence begins 0000 0011.
        self.assertEqual(sequence[0], 0b00000011)
        bits = [byte >> (7 - i) & 1 for byte in sequence for i in range(8)]
        for i in range(15, len(bits)):
            self.assertEqual(bits[i], bits[i - 14] ^ bits[i - 15])

    def test_a_damaged_frame_is_refused(self):
        framing = nagi.framing("none")
        framed = framing.frame(5, b"x" * 40)
        for bit in range(8 * len(framed)):
            self.assertIsNone(framing.deframe(flip(framed, [bit])))
        for length in range(len(framed)):
            self.assertIsNone(framing.deframe(framed[:length]))
        self.assertIsNone(framing.deframe(framed + b"\0"))
        self.assertIsNone(framing.deframe(bytes(5000)))

    def test_frames_of_another_configuration_are_refused(self):
        framed = nagi.framing("1/2").frame(5, b"x" * 40)
        self.assertIsNone(nagi.framing("none").deframe(framed))
        self.assertIsNone(nagi.framing("1/2", whiten=False).deframe(framed))

    def test_the_code_corrects(self):
        framing = nagi.framing("1/2")
        payload = bytes(1000)
        framed = framing.frame(9, payload)
        # Free distance 10: any 4 errors are corrected, wherever they are.
        draw = random.Random(2)
        for _ in range(200):
            bits = draw.sample(range(8 * len(framed)), 4)
            self.assertEqual(framing.deframe(flip(framed, bits)), (9, payload))
        # A burst as long as a column of the interleaver (some 127 bits) too; it would be too much
        # if it hit adjacent code bits.
        for start in range(0, 8 * len(framed) - 120, 997):
            bits = list(range(start, start + 120))
            self.assertEqual(framing.deframe(flip(framed, bits)), (9, payload))
        # Errors at random: at 1 % of the bits the code wins by far, at 15 % it has lost.
        for share, survives in ((0.01, True), (0.15, False)):
            for _ in range(20):
                bits = [b for b in range(8 * len(framed)) if draw.random() < share]
                self.assertEqual(framing.deframe(flip(framed, bits)) is not None, survives)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(ValueError, "1 to 100"):
            nagi.framing("none", whiten=True, max_payload=100).frame(0, bytes(101))
        with self.assertRaisesRegex(ValueError, "1 to 100"):
            nagi.framing("none", whiten=True, max_payload=100).frame(0, b"")
        with self.assertRaisesRegex(ValueError, "turbo"):
            nagi.packet_framer("turbo")
        with self.assertRaisesRegex(ValueError, "max_payload"):
            nagi.packet_deframer("none", max_payload=0)


class Blocks(gr_unittest.TestCase):
    def run_through(self, messages: list, block: object, port_in: str, port_out: str) -> list:
        sink = blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(block, port_out, sink, "store")
        for message in messages:
            block.to_basic_block()._post(pmt.intern(port_in), message)
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == len(messages)))
        flowgraph.stop()
        flowgraph.wait()
        return [sink.get_message(i) for i in range(len(messages))]

    def test_packets_come_back_with_their_outcome(self):
        packets = [bytes([i]) * (i + 1) for i in range(50)]
        numbered = [{"number": 2**32 - 20 + i, "begin_ns": i} for i in range(50)]
        messages = [pdu(*parts) for parts in zip(numbered, packets, strict=True)]
        frames = self.run_through(messages, nagi.packet_framer("1/2"), "packets", "frames")
        frames[7] = pmt.cons(pmt.car(frames[8]), pmt.cdr(frames[7]))  # another's number
        loss = pdu({"number": 9, "outcome": 1}, b"")
        frames[9] = loss
        got = self.run_through(frames, nagi.packet_deframer("1/2"), "frames", "packets")
        for i, message in enumerate(got):
            meta, data = open_pdu(message)
            if i == 7:
                self.assertEqual((meta["outcome"], data), (3, b""))
            elif i == 9:
                self.assertTrue(pmt.equal(message, loss))
            else:
                self.assertEqual(meta, numbered[i] | {"outcome": 0})
                self.assertEqual(data, packets[i])

    def test_packets_without_a_number_get_one(self):
        messages = [pdu({}, b"a")] * 3
        frames = self.run_through(messages, nagi.packet_framer(), "packets", "frames")
        self.assertEqual([open_pdu(frame)[0]["number"] for frame in frames], [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
