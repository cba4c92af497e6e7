#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the module's docstrings: each class and function has parameters and errors.

The manifest, which CGRAN reads, is tested as well.
"""

import inspect
import pathlib
import re
import unittest

import yaml
from gnuradio import gr_unittest, nagi

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def parameters(thing):
    """Return the names of the parameters of a class or function."""
    made = thing.__init__ if inspect.isclass(thing) else thing
    try:
        names = list(inspect.signature(made).parameters)
    except ValueError:  # of pybind11: its docstring begins with the signature
        names = re.findall(r"[(,] (\w+): ", (made.__doc__ or "").splitlines()[0].replace("(", "( "))
    return [name for name in names if name not in ("self", "args", "kwargs")]


class Docstrings(gr_unittest.TestCase):
    def test_parameters_are_described(self):
        described = 0
        for name in nagi.__all__:
            with self.subTest(name):
                thing = getattr(nagi, name)
                said = inspect.getdoc(thing)
                self.assertGreater(len(said or ""), 40)
                self.assertNotIn("\\", said)  # no commands of Doxygen
                self.assertNotIn("std::", said)
                for parameter in parameters(thing):
                    self.assertIn(parameter.removeprefix("code_"), said)
                    described += 1
        self.assertGreater(described, 80)

    def test_units_and_errors_are_said(self):
        said = inspect.getdoc(nagi.channel)
        self.assertIn("sample_rate: Hz", said)
        self.assertIn("Raises ValueError, naming the value", said)
        self.assertIn("Raises ValueError", inspect.getdoc(nagi.modem_rx))
        self.assertIn("in dB", inspect.getdoc(nagi.snr_evm_probe.snr_db))

    def test_the_manifest_has_what_cgran_asks_for(self):
        head, rest = (SOURCE / "MANIFEST.md").read_text().split("\n---\n")
        manifest = yaml.safe_load(head)
        for key in ("title", "brief", "tags", "author", "copyright_owner", "license"):
            self.assertTrue(manifest[key])
        self.assertEqual(str(manifest["gr_supported_version"]), "3.10")
        self.assertTrue(rest.strip())


if __name__ == "__main__":
    unittest.main()
