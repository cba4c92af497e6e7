#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares repeatable_fft with numpy's FFT, with the lowest frequency first. Seeded."""

import unittest

import numpy as np
from gnuradio import blocks, gr, gr_unittest, nagi


def transform(block, values):
    flow = gr.top_block()
    size = values.shape[1]
    source = blocks.vector_source_c(values.ravel().tolist(), False, size)
    sink = blocks.vector_sink_c(size)
    flow.connect(source, block, sink)
    flow.run()
    return np.array(sink.data()).reshape(values.shape)


class RepeatableFft(gr_unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(1)
        self.values = rng.normal(size=(50, 64)) + 1j * rng.normal(size=(50, 64))

    def test_forward(self):
        expected = np.fft.fftshift(np.fft.fft(self.values, axis=1), axes=1)
        found = transform(nagi.repeatable_fft(64, True), self.values)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    def test_back_with_a_scale(self):
        expected = 0.5 * 64 * np.fft.ifft(np.fft.ifftshift(self.values, axes=1), axis=1)
        found = transform(nagi.repeatable_fft(64, False, 0.5), self.values)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    def test_wrong_sizes_are_refused(self):
        for size in (0, 63, 1 << 17):
            with self.assertRaisesRegex(ValueError, "size"):
                nagi.repeatable_fft(size, True)


if __name__ == "__main__":
    unittest.main()
