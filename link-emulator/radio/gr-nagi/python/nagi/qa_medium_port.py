#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that medium_port follows its protocol, answers in order and ends with its socket."""

import select
import socket
import struct
import subprocess
import sys
import unittest

import pmt
from gnuradio import blocks, gr, gr_unittest, nagi

TRANSMISSION = struct.Struct("<IIqq")
ANSWER = struct.Struct("<IBBh")


class Mirror(gr.basic_block):
    """Answers transmissions with `outcome_of`(number): (outcome, snr_db or None)."""

    def __init__(self, outcome_of):
        gr.basic_block.__init__(self, "mirror", None, None)
        self.outcome_of = outcome_of
        self.metas = []
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self.answer)
        self.message_port_register_out(pmt.intern("outcomes"))

    def answer(self, message):
        meta, data = pmt.car(message), pmt.cdr(message)
        self.metas.append(pmt.to_python(meta))
        outcome, snr_db = self.outcome_of(self.metas[-1]["number"])
        meta = pmt.dict_add(meta, pmt.intern("outcome"), pmt.from_long(outcome))
        if snr_db is not None:
            meta = pmt.dict_add(meta, pmt.intern("snr_db"), pmt.from_double(snr_db))
        data = data if outcome == 0 else pmt.init_u8vector(0, [])
        self.message_port_pub(pmt.intern("outcomes"), pmt.cons(meta, data))


class MediumPort(gr_unittest.TestCase):
    def setUp(self):
        self.link, radio = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link.settimeout(20)
        self.port = nagi.medium_port(radio.detach())
        self.flowgraph = gr.top_block(catch_exceptions=False)

    def tearDown(self):
        self.link.close()

    def start(self, outcome_of):
        self.mirror = Mirror(outcome_of)
        self.flowgraph.msg_connect(self.port, "frames", self.mirror, "frames")
        self.flowgraph.msg_connect(self.mirror, "outcomes", self.port, "outcomes")
        self.flowgraph.start()

    def transmit(self, number, packet, begin_ns=0, mode=0):
        self.link.send(TRANSMISSION.pack(number, mode, begin_ns, begin_ns + 1000) + packet)

    def receive(self):
        message = self.link.recv(70000)
        return (*ANSWER.unpack_from(message), message[ANSWER.size :])

    def wait_closed(self):
        readable, _, _ = select.select([self.port.closed_descriptor()], [], [], 20)
        self.assertTrue(readable)
        self.assertTrue(self.port.closed())

    def test_every_outcome_in_order(self):
        answers = [(0, 12.25), (1, None), (2, -3.0), (3, float("nan")), (0, 1e9)]
        self.start(lambda number: answers[number % 5])
        packets = [bytes([i]) * (1 + i * 30) for i in range(50)]
        for number, packet in enumerate(packets):
            self.transmit(number, packet, begin_ns=number * 10**12, mode=number % 16)
        snrs = [1225, -32768, -300, -32768, 32767]
        for number, packet in enumerate(packets):
            outcome = answers[number % 5][0]
            received = packet if outcome == 0 else b""
            self.assertEqual(self.receive(), (number, outcome, 0, snrs[number % 5], received))
        begin = 7 * 10**12
        self.assertEqual(
            self.mirror.metas[7],
            {"number": 7, "mode": 7, "begin_ns": begin, "end_ns": begin + 1000},
        )
        self.assertFalse(self.port.closed())
        self.link.close()
        self.flowgraph.wait()
        self.wait_closed()
        self.assertEqual(self.port.error(), "")

    def test_what_was_sent_before_the_end_is_answered(self):
        self.start(lambda number: (0, None))
        for number in range(100):
            self.transmit(2**32 - 50 + number if number < 50 else number - 50, b"p")
        self.link.shutdown(socket.SHUT_WR)
        numbers = [self.receive()[0] for _ in range(100)]
        self.assertEqual(numbers, [*range(2**32 - 50, 2**32), *range(50)])
        self.flowgraph.wait()
        self.assertTrue(self.port.closed())

    def test_the_flowgraph_ends_with_the_carrier(self):
        self.start(lambda number: (0, None))
        sink = blocks.message_debug(False)
        self.link.close()
        self.flowgraph.wait()  # would never return
        self.assertTrue(self.port.closed())
        self.assertEqual(sink.num_messages(), 0)

    def test_a_broken_message_ends_it_with_an_error(self):
        self.start(lambda number: (0, None))
        self.link.send(b"short")
        self.flowgraph.wait()
        self.wait_closed()
        self.assertIn("5 bytes", self.port.error())

    def test_stop_does_not_wait_for_the_carrier(self):
        self.start(lambda number: (0, None))
        self.flowgraph.stop()
        self.flowgraph.wait()
        self.assertFalse(self.port.closed())

    def test_an_answer_nobody_waits_for_ends_the_process(self):
        for answered, expected in ((7, "expected none"), (8, "expected 7")):
            program = f"""
import socket, pmt
from gnuradio import gr, nagi
link, radio = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
port, flowgraph = nagi.medium_port(radio.detach()), gr.top_block(catch_exceptions=False)
class Answer(gr.basic_block):
    def __init__(self):
        gr.basic_block.__init__(self, "answer", None, None)
        self.message_port_register_in(pmt.intern("in"))
        self.message_port_register_out(pmt.intern("out"))
        self.set_msg_handler(pmt.intern("in"), self.answer)
    def answer(self, message):
        meta = pmt.dict_add(pmt.car(message), pmt.intern("outcome"), pmt.from_long(1))
        meta = pmt.dict_add(meta, pmt.intern("number"), pmt.from_uint64({answered}))
        for _ in range(2):
            self.message_port_pub(pmt.intern("out"), pmt.cons(meta, pmt.cdr(message)))
answer = Answer()
flowgraph.msg_connect(port, "frames", answer, "in")
flowgraph.msg_connect(answer, "out", port, "outcomes")
flowgraph.start()
link.send({TRANSMISSION.pack(7, 0, 0, 1) + b"p"!r})
flowgraph.wait()
"""
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stdout + done.stderr)

    def test_only_such_sockets(self):
        stream, other = socket.socketpair()
        with stream, other, self.assertRaisesRegex(ValueError, "SOCK_SEQPACKET"):
            nagi.medium_port(stream.fileno())


if __name__ == "__main__":
    unittest.main()
