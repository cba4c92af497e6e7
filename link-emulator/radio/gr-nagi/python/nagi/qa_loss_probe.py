#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that loss_probe counts each outcome once, and reports on request."""

import unittest

import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import pdu


class LossProbe(gr_unittest.TestCase):
    def test_counts_by_cause_and_reports(self):
        probe, sink = nagi.loss_probe(), blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(probe, "losses", sink, "store")
        post = probe.to_basic_block()._post
        for outcome, data in [(0, b"a"), (1, b""), (2, b""), (2, b""), (3, b"")]:
            post(pmt.intern("outcomes"), pdu({"outcome": outcome}, data))
        post(pmt.intern("outcomes"), pdu({}, b"a"))
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: probe.payload_errors() == 1 and probe.received() == 2))
        post(pmt.intern("report"), pmt.PMT_T)
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == 1))
        flowgraph.stop()
        flowgraph.wait()
        self.assertEqual((probe.not_detected(), probe.header_errors()), (1, 2))
        self.assertEqual(
            pmt.to_python(sink.get_message(0)),
            {"received": 2, "not_detected": 1, "header_error": 2, "payload_error": 1},
        )


if __name__ == "__main__":
    unittest.main()
