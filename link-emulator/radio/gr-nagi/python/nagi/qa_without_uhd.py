#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that without UHD only radios that are UHD devices are refused."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from gnuradio import gr_unittest
from gnuradio.nagi import checks, sdr, settings, usrp

END = {"device": "type=b200", "channel": 0, "tx_gain_db": 40, "rx_gain_db": 30}
CONFIG = {
    "schema_version": 1,
    "links": [
        {
            "name": "air",
            "id": 0,
            "forward": {"loss": {"model": "radio"}, "delay_ns": 20_000_000},
            "backward": {"loss": {"model": "radio"}, "delay_ns": 20_000_000},
            "radio": {
                "by": "uhd", "modem": "ofdm", "modulation": "qpsk", "sample_rate_hz": 2_000_000,
                "code_rate": "none",
                "uhd": {
                    "a": END, "b": {**END, "channel": 1},
                    "frequency_hz": {"forward": 2.45e9, "backward": 2.46e9},
                },
            },
        }
    ],
}  # fmt: skip
DEVICE = ["--device", "type=b200", "--frequency", "2.45e9", "--tx-gain", "40", "--rx-gain", "30"]
WITHOUT = {"gnuradio.nagi.nagi_usrp_python": None}  # an import of it fails


class WithoutUhd(gr_unittest.TestCase):
    def refused(self, *arguments):
        """Run nagi-sdr with arguments, and return its exit status and output."""
        said = io.StringIO()
        with (
            mock.patch.dict(sys.modules, WITHOUT),
            mock.patch.object(sys, "argv", ["nagi-sdr", *arguments]),
            mock.patch.object(sdr, "find_nagi_link", lambda: "/bin/false"),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            status = sdr.main(None)
        self.assertNotEqual(status, 0, said.getvalue())
        return status, said.getvalue()

    def test_the_library_is_missed_by_name(self):
        with (
            mock.patch.dict(sys.modules, WITHOUT),
            self.assertRaisesRegex(usrp.UsrpMissing, "`by: uhd` needs UHD"),
        ):
            usrp.load_bindings()

    def test_a_configuration_with_devices_is_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "config.json"
            path.write_text(json.dumps(CONFIG))
            status, said = self.refused("run", str(path))
        self.assertEqual(status, 2)
        self.assertIn("`by: uhd` needs UHD", said)
        self.assertIn("make sdr", said)

    def test_where_devices_are_told_of_is_for_nagi_sdr_alone(self):
        found = settings.parse_settings({**CONFIG, "radio_account": "radios.json"})
        self.assertEqual(found.radio_account, "radios.json")
        self.assertNotIn("radio_account", found.to_nagi_link({}))
        for wrong in ("", 7):
            with self.assertRaisesRegex(checks.ConfigError, "radio_account is .*name of a file"):
                settings.parse_settings({**CONFIG, "radio_account": wrong})

    def test_commands_for_devices_are_refused(self):
        status, said = self.refused("levels", "--gains", "40", *DEVICE)
        self.assertEqual(status, 2)
        self.assertIn("`by: uhd` needs UHD", said)
        _, said = self.refused("doctor", "--json", *DEVICE)
        first = json.loads(said.splitlines()[0])
        self.assertEqual((first["stage"], first["ok"]), ("library", False))
        self.assertIn("UHD", first["detail"])


if __name__ == "__main__":
    unittest.main()
