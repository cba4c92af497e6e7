#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams of bytes to packets and back, through a modem too."""

import struct
import unittest

import numpy as np
import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu

SIZES = (1, 2, 300, 1530, 40)


def packets():
    rng = np.random.default_rng(5)
    return [rng.bytes(size) for size in SIZES]


def prefixed(each):
    return struct.pack("!H", len(each)) + each


def tag(offset, length):
    made = gr.tag_t()
    made.offset, made.key, made.value = offset, pmt.intern("len"), pmt.from_long(length)
    return made


class Streams(gr_unittest.TestCase):
    def cut(self, stream, count, tags=(), length_tag=""):
        source = blocks.vector_source_b(list(stream), False, 1, list(tags))
        splitter = nagi.stream_to_packets(length_tag, max_packet=1530)
        sink = blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.connect(source, splitter)
        flowgraph.msg_connect(splitter, "packets", sink, "store")
        flowgraph.start(7)  # items at once, so that packets are cut
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == count, timeout=20))
        flowgraph.stop()
        flowgraph.wait()
        found = [open_pdu(sink.get_message(i)) for i in range(sink.num_messages())]
        self.assertEqual([meta for meta, _ in found], [{"number": i} for i in range(len(found))])
        self.assertEqual(splitter.packets(), len(found))
        return [data for _, data in found]

    def test_lengths_in_the_stream(self):
        self.assertEqual(self.cut(b"".join(map(prefixed, packets())), len(SIZES)), packets())

    def test_lengths_in_tags(self):
        begins = np.cumsum([0, *SIZES[:-1]])
        tags = [tag(int(at), size) for at, size in zip(begins, SIZES, strict=True)]
        self.assertEqual(self.cut(b"".join(packets()), len(SIZES), tags, "len"), packets())

    def test_a_cut_packet_does_not_leave(self):
        self.assertEqual(self.cut(prefixed(b"whole") + b"\x00\x05cut", 1), [b"whole"])

    def test_through_a_modem_and_back(self):
        for length_tag in ("", "len"):
            source = blocks.vector_source_b(list(b"".join(map(prefixed, packets()))))
            splitter = nagi.stream_to_packets()
            chain = [
                (nagi.packet_framer("1/2", max_payload=1530), "packets", "frames"),
                (nagi.modem_tx("ofdm", "qpsk"), "pdus", "bursts"),
                (nagi.channel(1, 0, 2e6, snr_db=20.0), "bursts", "bursts"),
                (nagi.modem_rx("ofdm", "qpsk", soft_bits=True), "bursts", "pdus"),
                (nagi.packet_deframer("1/2", max_payload=1530), "frames", "packets"),
            ]
            joiner, sink = nagi.packets_to_stream(length_tag), blocks.vector_sink_b()
            flowgraph = gr.top_block(catch_exceptions=False)
            flowgraph.connect(source, splitter)
            before = (splitter, "packets")
            for block, port_in, port_out in chain:
                flowgraph.msg_connect(*before, block, port_in)
                before = (block, port_out)
            flowgraph.msg_connect(*before, joiner, "packets")
            flowgraph.connect(joiner, sink)
            flowgraph.start()
            expected = b"".join(packets() if length_tag else map(prefixed, packets()))
            self.assertTrue(self.waitFor(lambda: len(sink.data()) >= len(expected), timeout=20))
            flowgraph.stop()
            flowgraph.wait()
            self.assertEqual(bytes(sink.data()), expected)
            self.assertEqual(joiner.lost(), 0)
            if length_tag:
                lengths = [pmt.to_python(each.value) for each in sink.tags()]
                self.assertEqual(lengths, list(SIZES))

    def test_what_is_refused(self):
        for longest in (0, 65_536):
            with self.assertRaisesRegex(ValueError, "max_packet"):
                nagi.stream_to_packets(max_packet=longest)


if __name__ == "__main__":
    unittest.main()
