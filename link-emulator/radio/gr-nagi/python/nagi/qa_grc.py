#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests for GNU Radio Companion: block descriptions match the blocks, and examples compile."""

import os
import pathlib
import py_compile
import re
import subprocess
import sys
import tempfile
import unittest

import yaml
from gnuradio import gr_unittest, nagi

try:
    from gnuradio import qtgui
except ImportError:
    qtgui = None

TIMEOUT_S = 60
SOURCE = pathlib.Path(__file__).resolve().parents[2]


class Grc(gr_unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Compile all examples at once."""
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.out = pathlib.Path(scratch.name)
        cls.examples = sorted((SOURCE / "examples").glob("*.grc"))
        environment = os.environ | {
            "GRC_BLOCKS_PATH": str(SOURCE / "grc"),
            "HOME": str(cls.out),  # where it keeps a cache
        }
        command = ["grcc", "-o", str(cls.out), *map(str, cls.examples)]
        cls.compiled = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        sys.path.insert(0, str(cls.out))
        cls.addClassCleanup(sys.path.remove, str(cls.out))

    def test_descriptions_name_what_there_is(self):
        descriptions = sorted((SOURCE / "grc").glob("*.block.yml"))
        self.assertGreaterEqual(len(descriptions), 8)
        listed = (SOURCE / "grc" / "CMakeLists.txt").read_text()
        for path in descriptions:
            with self.subTest(path.name):
                block = yaml.safe_load(path.read_text())
                self.assertEqual(path.name, f"{block['id']}.block.yml")
                self.assertIn(path.name, listed)
                make = block["templates"]["make"]
                self.assertTrue(make.startswith(f"nagi.{block['id'].removeprefix('nagi_')}("))
                self.assertTrue(hasattr(nagi, block["id"].removeprefix("nagi_")))
                given = {parameter["id"] for parameter in block.get("parameters", [])}
                self.assertEqual(given, set(re.findall(r"\$\{(\w+)\}", make)))

    def test_every_example_compiles(self):
        self.assertEqual(self.compiled.returncode, 0, self.compiled.stdout + self.compiled.stderr)
        self.assertGreaterEqual(len(self.examples), 5)
        for example in self.examples:
            with self.subTest(example.stem):
                py_compile.compile(str(self.out / f"{example.stem}.py"), doraise=True)

    def test_symbols_are_measured(self):
        import measure_symbols

        flowgraph = measure_symbols.measure_symbols()
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: flowgraph.quality.packets() >= 2, timeout=TIMEOUT_S))
        flowgraph.stop()
        flowgraph.wait()
        # 400 symbols at 20 dB: the estimate's deviation is 4.343 / sqrt(400) dB, here times 4.
        self.assertLess(abs(flowgraph.quality.snr_db() - 20.0), 0.87)

    def test_a_file_crosses_a_radio(self):
        import file_over_radio

        content = bytes(i * i % 251 for i in range(20_250))
        source, target = self.out / "source", self.out / "target"
        source.write_bytes(content)
        flowgraph = file_over_radio.file_over_radio(source=str(source), target=str(target))
        flowgraph.start()
        self.assertTrue(
            self.waitFor(lambda: target.stat().st_size >= len(content), timeout=TIMEOUT_S)
        )
        flowgraph.stop()
        flowgraph.wait()
        self.assertEqual(target.read_bytes(), content)

    @unittest.skipIf(qtgui is None, "GNU Radio has no gr-qtgui here")
    def test_a_modem_is_watched(self):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        import watch_a_modem
        from PyQt5 import Qt

        application = Qt.QApplication([])
        flowgraph = watch_a_modem.watch_a_modem()
        flowgraph.start()
        flowgraph.show()
        sinks = (flowgraph.spectrum, flowgraph.constellation)
        self.assertTrue(
            self.waitFor(
                lambda: all(sink.nitems_read(0) > 100_000 for sink in sinks), timeout=TIMEOUT_S
            )
        )
        flowgraph.set_snr_db(0.0)  # 16-QAM needs more: what a slider does
        self.assertTrue(self.waitFor(lambda: lost(flowgraph.losses) > 3, timeout=TIMEOUT_S))
        self.assertFalse(flowgraph.grab().isNull())
        flowgraph.stop()
        flowgraph.wait()
        application.quit()


def lost(probe):
    return probe.not_detected() + probe.header_errors() + probe.payload_errors()


if __name__ == "__main__":
    unittest.main()
