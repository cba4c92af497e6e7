#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GNU Radio Companion's view: block descriptions name what there is, and the examples compile."""

import os
import pathlib
import py_compile
import re
import subprocess
import sys
import tempfile
import time
import unittest

import yaml
from gnuradio import gr_unittest, nagi

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class Grc(gr_unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.out = pathlib.Path(scratch.name)

    def compile(self, example):
        environment = os.environ | {
            "GRC_BLOCKS_PATH": str(SOURCE / "grc"),
            "HOME": str(self.out),  # where it keeps a cache
        }
        command = ["grcc", "-o", str(self.out), str(SOURCE / "examples" / f"{example}.grc")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.out / f"{example}.py"

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
        examples = sorted((SOURCE / "examples").glob("*.grc"))
        self.assertGreaterEqual(len(examples), 2)
        for example in examples:
            with self.subTest(example.stem):
                py_compile.compile(str(self.compile(example.stem)), doraise=True)

    def test_an_example_runs(self):
        self.compile("measure_symbols")
        sys.path.insert(0, str(self.out))
        self.addCleanup(sys.path.remove, str(self.out))
        import measure_symbols

        flowgraph = measure_symbols.measure_symbols()
        flowgraph.start()
        deadline = time.monotonic() + 20
        while flowgraph.quality.packets() < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        flowgraph.stop()
        flowgraph.wait()
        # 400 symbols at 20 dB: the estimate's deviation is 4.343 / sqrt(400) dB, here times 4.
        self.assertLess(abs(flowgraph.quality.snr_db() - 20.0), 0.87)


if __name__ == "__main__":
    unittest.main()
