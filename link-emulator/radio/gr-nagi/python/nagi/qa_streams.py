#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of streams cut into packets and joined again, also over a modem, and of refused values."""

import os
import struct
import subprocess
import sys
import unittest

import numpy as np
import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu

SIZES = (1, 2, 300, 1530, 40)
TIMEOUT_S = 60


def packets(sizes=SIZES):
    rng = np.random.default_rng(5)
    return [rng.bytes(size) for size in sizes]


def add_length(packet):
    return struct.pack("!H", len(packet)) + packet


def make_tag(offset, value):
    made = gr.tag_t()
    made.offset, made.key, made.value = offset, pmt.intern("len"), value
    return made


def make_tags(sizes, value=pmt.from_long):
    begins = np.cumsum([0, *sizes[:-1]])
    return [make_tag(int(at), value(size)) for at, size in zip(begins, sizes, strict=True)]


class Window(gr.basic_block):
    """Records the number of unfinished packets whenever a packet is finished."""

    def __init__(self, splitter):
        gr.basic_block.__init__(self, "window", None, None)
        self.splitter, self.ended, self.most = splitter, 0, 0
        self.message_port_register_in(pmt.intern("packets"))
        self.set_msg_handler(pmt.intern("packets"), self.take)
        self.message_port_register_out(pmt.intern("outcomes"))

    def take(self, message):
        self.most = max(self.most, self.splitter.packets() - self.ended)
        self.ended += 1
        self.message_port_pub(pmt.intern("outcomes"), message)


def run_broken_stream(stream, tags=(), length_tag=""):
    """Run a flowgraph with an invalid stream, which ends the process that calls this."""
    source = blocks.vector_source_b(list(stream), False, 1, list(tags))
    splitter = nagi.stream_to_packets(length_tag, max_packet=1530)
    flowgraph = gr.top_block(catch_exceptions=False)
    flowgraph.connect(source, splitter)
    flowgraph.run()


BROKEN = {
    "a packet of 0 bytes, not 1 to 1530": lambda: run_broken_stream(b"\x00\x01a\x00\x00"),
    "byte 0: a packet of 1531 bytes, not 1 to 1530": lambda: run_broken_stream(
        add_length(bytes(1531))
    ),
    "byte 3 belongs to no packet: it has no tag len": lambda: run_broken_stream(
        b"abcd", [make_tag(0, pmt.from_long(3))], "len"
    ),
    "byte 2 begins a packet within another one": lambda: run_broken_stream(
        b"abcd", [make_tag(0, pmt.from_long(3)), make_tag(2, pmt.from_long(2))], "len"
    ),
    "byte 0: its tag len is three, not a number of bytes": lambda: run_broken_stream(
        b"abc", [make_tag(0, pmt.intern("three"))], "len"
    ),
}


class Streams(gr_unittest.TestCase):
    def cut(self, stream, count, tags=(), length_tag=""):
        source = blocks.vector_source_b(list(stream), False, 1, list(tags))
        splitter = nagi.stream_to_packets(length_tag, max_packet=1530)
        sink = blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.connect(source, splitter)
        flowgraph.msg_connect(splitter, "packets", sink, "store")
        flowgraph.start(7)  # items at once, so that packets are cut
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == count, timeout=TIMEOUT_S))
        flowgraph.stop()
        flowgraph.wait()
        found = [open_pdu(sink.get_message(i)) for i in range(sink.num_messages())]
        self.assertEqual([meta for meta, _ in found], [{"number": i} for i in range(len(found))])
        self.assertEqual(splitter.packets(), len(found))
        return [data for _, data in found]

    def test_lengths_in_the_stream(self):
        self.assertEqual(self.cut(b"".join(map(add_length, packets())), len(SIZES)), packets())

    def test_lengths_in_tags(self):
        for value in (pmt.from_long, pmt.from_uint64):
            cut = self.cut(b"".join(packets()), len(SIZES), make_tags(SIZES, value), "len")
            self.assertEqual(cut, packets())

    def test_a_cut_packet_does_not_leave(self):
        self.assertEqual(self.cut(add_length(b"whole") + b"\x00\x05cut", 1), [b"whole"])

    def through_a_modem(self, sizes, length_tag="", window=0):
        source = blocks.vector_source_b(list(b"".join(map(add_length, packets(sizes)))))
        splitter = nagi.stream_to_packets(window=window)
        ends = Window(splitter)
        chain = [
            (nagi.packet_framer("1/2", max_payload=1530), "packets", "frames"),
            (nagi.modem_tx("ofdm", "qpsk"), "pdus", "bursts"),
            (nagi.channel(1, 0, 2e6, snr_db=20.0), "bursts", "bursts"),
            (nagi.modem_rx("ofdm", "qpsk", soft_bits=True), "bursts", "pdus"),
            (nagi.packet_deframer("1/2", max_payload=1530), "frames", "packets"),
            (ends, "packets", "outcomes"),
        ]
        joiner, sink = nagi.packets_to_stream(length_tag), blocks.vector_sink_b()
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.connect(source, splitter)
        before = (splitter, "packets")
        for block, port_in, port_out in chain:
            flowgraph.msg_connect(*before, block, port_in)
            before = (block, port_out)
        flowgraph.msg_connect(*before, joiner, "packets")
        flowgraph.msg_connect(*before, splitter, "outcomes")
        flowgraph.connect(joiner, sink)
        flowgraph.start()
        parts = packets(sizes) if length_tag else map(add_length, packets(sizes))
        expected = b"".join(parts)
        self.assertTrue(self.waitFor(lambda: len(sink.data()) >= len(expected), timeout=TIMEOUT_S))
        flowgraph.stop()
        flowgraph.wait()
        self.assertEqual(bytes(sink.data()), expected)
        self.assertEqual(joiner.lost(), 0)
        return ends, sink

    def test_through_a_modem_and_back(self):
        self.through_a_modem(SIZES)

    def test_through_a_modem_to_a_tagged_stream(self):
        _, sink = self.through_a_modem(SIZES, "len")
        lengths = [pmt.to_python(each.value) for each in sink.tags()]
        self.assertEqual(lengths, list(SIZES))

    def test_no_more_packets_are_under_way_than_the_window_has(self):
        sizes = 60 * (100,)
        ends, _ = self.through_a_modem(sizes, window=3)
        self.assertEqual(ends.ended, len(sizes))
        self.assertLessEqual(ends.most, 3)

    def test_a_flowgraph_ends_while_its_stream_waits(self):
        source = blocks.vector_source_b(list(4 * add_length(b"packet")))
        splitter = nagi.stream_to_packets(window=2)
        sink = blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.connect(source, splitter)
        flowgraph.msg_connect(splitter, "packets", sink, "store")
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == 2, timeout=TIMEOUT_S))
        flowgraph.stop()
        flowgraph.wait()
        self.assertEqual(sink.num_messages(), 2)

    def test_what_is_refused(self):
        for longest in (0, 65_536):
            with self.assertRaisesRegex(ValueError, "max_packet"):
                nagi.stream_to_packets(max_packet=longest)
        with self.assertRaisesRegex(ValueError, "window"):
            nagi.stream_to_packets(window=-1)

    def test_a_stream_that_cannot_be_cut_ends_the_flowgraph(self):
        programs = {
            what: subprocess.Popen(
                [sys.executable, "-B", __file__, "broken", what],
                env=os.environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for what in BROKEN
        }
        for what, program in programs.items():
            with self.subTest(what):
                _, said = program.communicate(timeout=TIMEOUT_S)
                self.assertNotEqual(program.returncode, 0)
                self.assertIn(f"stream_to_packets: {what}" if what[0] == "b" else what, said)


if __name__ == "__main__":
    if sys.argv[1:2] == ["broken"]:
        BROKEN[sys.argv[2]]()
    else:
        unittest.main()
